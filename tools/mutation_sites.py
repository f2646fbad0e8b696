"""Places in a source at which a mutation can be made: small changes of code that a test should notice.

Reads code as text. Comments, texts, attributes and what is compiled for tests alone are no code. That a change does not
compile is found out by building.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OPPOSITE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "==="}
ARITHMETIC = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
TRUTH = {"true": "false", "false": "true", "True": "False", "False": "True", "&&": "||", "||": "&&", "and": "or", "or": "and"}

_LITERALS = {
    ".rs": re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#+)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']*|[^\'\\])\'|#!?\[[^\n]*\]', re.DOTALL),
    ".py": re.compile(r'#[^\n]*|[rbfu]{0,2}"""(?:\\.|.)*?"""|[rbfu]{0,2}"(?:\\.|[^"\\\n])*"|[rbfu]{0,2}\'(?:\\.|[^\'\\\n])*\'', re.DOTALL),
    ".ts": re.compile(r'//[^\n]*|/\*.*?\*/|`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL),
}
_FOR_TESTS = re.compile(r"#\[cfg\((?:all\()?test\b")
_DECLARES = re.compile(r"\s*(?:pub\b|use\b|import\b|export\b|const\b|static\b|type\b|from\b|class\b|def\b|interface\b)")
"""A line of a declaration: a number or a bound of it is a part of a type, or of an interface."""

_COMPARISON = re.compile(r"(?<= )(<=|>=|===|!==|==|!=|<|>)(?= )")
_ARITHMETIC = re.compile(r"(?<=[\w)\]] )(\+=|-=|\+|-)(?= )")
_TRUTH = re.compile(r"\b(true|false|True|False)\b|(?<= )(?<!move )(?<!= )(&&|\|\||and|or)(?= )")
_NUMBER = re.compile(r"(?<![\w.\"'<])(\d{1,6})(?![\w.\"'>])")
_CONDITION = {
    ".rs": re.compile(r"\b(?:if|while) (?!let\b)([^{};\n]*[^{};\s])(?= \{)"),
    ".py": re.compile(r"^\s*(?:if|elif|while) ([^\n]*)(?=:[ ]*$)", re.MULTILINE),
    ".ts": re.compile(r"\bif \(([^\n]*)(?=\) (?:\{|return|throw|continue|break|[a-z.]+\())"),
}
_STATEMENT = {
    ".rs": re.compile(
        r"^[ ]+(?!let\b|return\b|use\b|pub\b|const\b|static\b|type\b|mod\b|break\b|continue\b|\})([a-z_*][^;{}\n]*;)$", re.MULTILINE
    ),
    ".py": re.compile(
        r"^[ ]{4,}(?!return\b|raise\b|pass\b|yield\b|import\b|from\b|global\b|assert\b)([a-z_][\w.]*(?:\([^\n]*\)| [+-]?= [^\n]*))$", re.M
    ),
    ".ts": re.compile(
        r"^[ ]+(?!return\b|throw\b|const\b|let\b|export\b|import\b|break\b|continue\b|super\b)([a-z#][^;{}\n]*;)$", re.MULTILINE
    ),
}


@dataclass(frozen=True)
class Site:
    """One change of one source."""

    path: Path
    kind: str
    start: int
    end: int
    line: int
    old: str
    new: str

    def apply(self, text: str) -> str:
        """The source with the change."""
        return text[: self.start] + self.new + text[self.end :]


def sites(path: Path, text: str) -> list[Site]:
    """Every change that can be made in the source, in its order."""
    language = ".ts" if path.suffix in {".js", ".mjs"} else path.suffix
    code = masked(text, language)
    return sorted(_sites(path, language, code, text), key=lambda site: (site.start, site.kind))


def masked(text: str, language: str) -> str:
    """The code of the source in its places: blanks stand for all that is no code."""
    code = _LITERALS[language].sub(lambda hit: re.sub(r"[^\n]", " ", hit[0]), text)
    for marked in _FOR_TESTS.finditer(text):
        end = _item_end(code, marked.start())
        code = code[: marked.start()] + re.sub(r"[^\n]", " ", code[marked.start() : end]) + code[end:]
    return code


def _item_end(code: str, start: int) -> int:
    """Where the item behind an attribute ends: at its semicolon, or where its braces close."""
    depth = 0
    for place in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[place], 0)
        if (code[place] == "}" and depth == 0) or (code[place] == ";" and depth == 0):
            return place + 1
    return len(code)


def _sites(path: Path, language: str, code: str, text: str) -> Iterator[Site]:
    def site(kind: str, start: int, end: int, new: str) -> Site:
        return Site(path, kind, start, end, code.count("\n", 0, start) + 1, text[start:end], new)

    def declares(place: int) -> bool:
        start = code.rfind("\n", 0, place) + 1
        return _DECLARES.match(code, start) is not None

    for hit in _COMPARISON.finditer(code):
        if not declares(hit.start()):
            yield site("comparison", *hit.span(), OPPOSITE[hit[0]])
    for hit in _ARITHMETIC.finditer(code):
        # Bounds of types are sums too.
        if not re.match(r"[+-] (?:'|Send\b|Sync\b|use<|[A-Z]\w*[<>,\s]*$)", code[hit.start() : code.find("\n", hit.start())]):
            yield site("arithmetic", *hit.span(), ARITHMETIC[hit[0]])
    for hit in _TRUTH.finditer(code):
        if not declares(hit.start()):
            yield site("truth", *hit.span(), TRUTH[hit[0]])
    for hit in _NUMBER.finditer(code):
        # Array types and fields of tuples have numbers too.
        if not declares(hit.start()) and code[hit.start() - 1] != "." and not code[: hit.start()].endswith("; "):
            yield site("constant", *hit.span(), str(int(hit[0]) + 1))
    for hit in _CONDITION[language].finditer(code):
        negated = f"not ({text[slice(*hit.span(1))]})" if language == ".py" else f"!({text[slice(*hit.span(1))]})"
        yield site("condition", *hit.span(1), negated)
    for hit in _STATEMENT[language].finditer(code):
        if code.count("(", *hit.span(1)) == code.count(")", *hit.span(1)):
            yield site("statement", *hit.span(1), "pass" if language == ".py" else ";")
