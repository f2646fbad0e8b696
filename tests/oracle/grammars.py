"""Regular expressions, grammars and schemas with few values, by which the engine is compared with others."""

from __future__ import annotations

import re
from typing import Any

REGEXES = (
    "abc", "a*", "a+b?", "[a-z]{3}", "(ab|cd)+x", "[0-9]{4}-[0-9]{2}", "a?b*c", "x(y|z){2,4}", "[^abc\n]{2}", r"\d+(\.\d{1,2})?",
    r"\w{1,4}", r"\W", r"[\w-]+", r"[ \t]?x[ \t]?", r"\S{2}", r"\D{1,3}", "(?:a|b)*abb", "(a|b|)c", "[a-c][d-f][g-i]", "[]a]{2}",
    r"[\]\\^-]{2}", "a{2}", "a{2,}", "a{0,3}b", "(a{2}){2}", "((a|b)(c|d)){1,2}", "x|y|zz", "a(b(c(d)?)?)?", "(0|[1-9][0-9]*)",
    "-?(0|[1-9][0-9]{0,3})", "#[0-9a-fA-F]{6}", "(true|false|null)", '"[^"\\\\\n]*"', "[A-Z][a-z]+( [A-Z][a-z]+)?", "é+", "[à-ü]{2}",
    "[😀-😂]", "漢?字", r"\t\n", r"\x41\u0042", r"\.\*\+\?", r"[.*+?]{2}", r"a\/b", r"\(\)\[\]\{\}", "(a|ab)(c|bcd)", "(a*)*b", "(|a)+",
    "[+-]?[0-9]+([eE][+-]?[0-9]+)?", "(([0-9]|1[0-9])[.]){2}[0-9]", "(?:(?:ab)?c){3}",
)  # fmt: skip
"""Fifty, each of whose meaning is the same in Python and in ECMAScript for the texts of `alphabet`."""

GRAMMARS: dict[str, str] = {
    "word": 'root ::= [a-z]+',
    "sum": 'root ::= term ("+" term)*\nterm ::= [0-9]+',
    "nested": 'root ::= "(" root ")" | "x"',
    "balanced": 'root ::= ("[" root "]")*',
    "two": 'root ::= "a" root "b" | "c"',
    "palindrome": 'root ::= "a" root "a" | "b" root "b" | "c"',
    "list": 'root ::= "[" (item ("," item)*)? "]"\nitem ::= [0-9] | root',
    "pairs": 'root ::= pair (";" pair)*\npair ::= key "=" value\nkey ::= [a-c]+\nvalue ::= [0-9]+ | "(" root ")"',
    "left": 'root ::= root "-" [0-9] | [0-9]',
    "both": 'root ::= root root | "a" | "(" root ")"',
    "optional": 'root ::= "x"? "y"? "z"',
    "counts": 'root ::= [a-b]{2,3} "c"{2}',
    "negated": 'root ::= "<" [^<>]* ">"',
    "date": 'root ::= year "-" month\nyear ::= [0-9]{4}\nmonth ::= "0" [1-9] | "1" [0-2]',
    "signed": 'root ::= ("+" | "-")? [1-9] [0-9]*',
    "boolean": 'root ::= or\nor ::= and ("|" and)*\nand ::= not ("&" not)*\nnot ::= "!" not | "t" | "f" | "(" or ")"',
    "lisp": 'root ::= atom | "(" root (" " root)* ")"\natom ::= [a-d]',
    "csv": 'root ::= row ("\\n" row)*\nrow ::= cell ("," cell)*\ncell ::= [a-z0-9]*',
    "path": 'root ::= ("/" name)+\nname ::= [a-z] [a-z0-9_]*',
    "even": 'root ::= ([0-9] [0-9])*',
    "tags": 'root ::= "<a>" root "</a>" | "<b>" root "</b>" | [x-z]*',
    "ternary": 'root ::= "t" | "f" | root "?" root ":" root',
    "indirect": 'root ::= one\none ::= two "a" | "b"\ntwo ::= one "c"',
    "empty": 'root ::= ("a" root)?',
    "alternatives": 'root ::= ("cat" | "dog" | "bird") "s"?',
    "escapes": 'root ::= "\\"" [a-c\\\\]* "\\""',
    "unicode": 'root ::= [à-ü]+ "→" [à-ü]+',
    "call": 'root ::= name "(" (argument ("," argument)*)? ")"\nname ::= [f-h]\nargument ::= [0-9] | root',
    "json": 'root ::= object | array | string | "1" | "null"\nobject ::= "{" (string ":" root ("," string ":" root)*)? "}"\n'
            'array ::= "[" (root ("," root)*)? "]"\nstring ::= "\'" [a-c]* "\'"',
    "hex": 'root ::= "0x" ([0-9] | [a-f]){1,4}',
}  # fmt: skip
"""Thirty in the `root ::=` dialect. In none of them is a string the beginning of another that may stand there too, so
that they say the same in the dialect of Lark, whose lexer takes the longest match.
"""


def as_lark(grammar: str) -> str:
    """A grammar of `GRAMMARS` in the dialect of Lark."""
    # Brackets in strings are no classes.
    strings_and_classes = r'("(?:\\.|[^"\\])*")|\[(?:\\.|[^\]\\])+\]'
    lark = re.sub(strings_and_classes, lambda found: found[1] or "/" + found[0] + "/", grammar)
    lark = lark.replace("::=", ":").replace("root", "start")
    return re.sub(r"(\S)\{(\d+),(\d+)\}", r"\1~\2..\3", re.sub(r"(\S)\{(\d+)\}", r"\1~\2", lark)) + "\n"


FINITE: tuple[tuple[dict[str, Any], list[Any]], ...] = (
    ({"enum": ["a", 1, None, True]}, ["a", 1, None, True]),
    ({"type": "boolean"}, [True, False]),
    ({"type": "integer", "minimum": -2, "maximum": 2}, [-2, -1, 0, 1, 2]),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 40, "multipleOf": 13}, [13, 26, 39]),
    ({"type": "string", "pattern": "^[ab]{1,2}$"}, ["a", "b", "aa", "ab", "ba", "bb"]),
    ({"type": "string", "enum": ["x", "y", "z"], "not": {"const": "y"}}, ["x", "z"]),
    ({"type": ["null", "boolean"]}, [None, True, False]),
    ({"type": "array", "items": {"type": "boolean"}, "maxItems": 1}, [[], [True], [False]]),
    ({"type": "array", "items": {"const": 0}, "minItems": 1, "maxItems": 3}, [[0], [0, 0], [0, 0, 0]]),
    ({"type": "array", "prefixItems": [{"enum": [1, 2]}, {"const": "x"}], "items": False}, [[], [1], [2], [1, "x"], [2, "x"]]),
    (
        {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"const": 3}}, "required": ["a"], "additionalProperties": False},
        [{"a": 1}, {"a": 2}, {"a": 1, "b": 3}, {"a": 2, "b": 3}],
    ),
    (
        {
            "type": "object",
            "properties": {name: {"const": 0} for name in "abc"},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 2,
        },
        [{"a": 0}, {"b": 0}, {"c": 0}, {"a": 0, "b": 0}, {"a": 0, "c": 0}, {"b": 0, "c": 0}],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"const": 0}, "b": {"const": 0}},
            "dependentRequired": {"a": ["b"]},
            "additionalProperties": False,
        },
        [{}, {"b": 0}, {"a": 0, "b": 0}],
    ),
    (
        {
            "type": "object",
            "properties": {"on": {"type": "boolean"}, "level": {"enum": [1, 2]}},
            "required": ["on"],
            "if": {"properties": {"on": {"const": True}}},
            "then": {"required": ["level"]},
            "else": {"properties": {"level": False}},
            "additionalProperties": False,
        },
        [{"on": False}, {"on": True, "level": 1}, {"on": True, "level": 2}],
    ),
    ({"anyOf": [{"const": 1}, {"type": "null"}, {"enum": ["x", 1]}]}, [1, None, "x"]),
    ({"oneOf": [{"type": "integer", "minimum": 0, "maximum": 3}, {"type": "integer", "minimum": 2, "maximum": 5}]}, [0, 1, 4, 5]),
    ({"allOf": [{"enum": [1, 2, 3]}, {"minimum": 2}]}, [2, 3]),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"enum": ["p", "q"]}}}, ["p", "q"]),
    ({"type": "string", "nullable": True, "pattern": "^a?$"}, [None, "", "a"]),
    (
        {"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [{"const": 0}, {"type": "array", "items": {"const": 1}, "maxItems": 1}]}}},
        [0, [], [1]],
    ),
)
"""Twenty schemas with all of their values."""

REFUSED: dict[str, Any] = {
    "uniqueItems": {"uniqueItems": True},
    "contains": {"contains": {"const": 1}},
    "minContains": {"minContains": 1},
    "maxContains": {"maxContains": 1},
    "propertyNames": {"propertyNames": {"maxLength": 3}},
    "unevaluatedItems": {"unevaluatedItems": False},
    "unevaluatedProperties": {"unevaluatedProperties": False},
    "dependencies": {"dependencies": {"a": ["b"]}},
    "$dynamicRef": {"$dynamicRef": "#x"},
    "$dynamicAnchor": {"$dynamicAnchor": "x"},
    "$recursiveRef": {"$recursiveRef": "#"},
    "contentSchema": {"contentSchema": {}},
    "format": {"format": "iri"},
    "minProperties": {"type": "object", "minProperties": 3},
    "not": {"not": {"type": "array", "items": {"const": 1}}},
    "oneOf": {"oneOf": [{"type": "array"}, {"type": "array", "items": {"type": "null"}}]},
    "$ref": {"$ref": "other.json"},
    "pattern": {"pattern": "(?=a)b"},
    "unknown": {"unknown": 1},
}
"""Keywords that cannot be enforced, each with a schema that needs it."""
