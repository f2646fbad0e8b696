"""Vectors of grammars: matchers that walk texts, generators under grammars, and documents. Every grammar stands with
all of its texts, written by hand from what its source means.
"""

from __future__ import annotations

import json
from typing import Any

from tests.vectors.ops import ARGMAX, MODEL, WARM, Op, collected, generate, op, prompt, report, state

PERSON = {
    "type": "object",
    "properties": {"kind": {"const": "person"}, "age": {"enum": [7, 70]}, "ok": {"type": "boolean"}},
    "required": ["kind", "ok"],
    "additionalProperties": False,
}
NUMBERS = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2}


def source(kind: str, text: Any, texts: list[str], **rest: Any) -> Op:
    """A grammar with its texts, as operations and options name it."""
    return {"kind": kind, "source": text if isinstance(text, str) else json.dumps(text), "texts": texts, **rest}


def ages(*ends: str) -> list[str]:
    """The documents of `PERSON`."""
    return [f'{{"kind":"person",{age}"ok":{end}}}' for age in ("", '"age":7,', '"age":70,') for end in ends]


SOURCES: dict[str, Op] = {
    "optional": source("regex", "ab?", ["a", "ab"]),
    "counted": source("regex", "[a-c]{2}", [first + second for first in "abc" for second in "abc"]),
    "fixed": source("regex", "xyz{3}", ["xyzzz"]),
    "branches": source("regex", "le(ft|ave) it", ["left it", "leave it"]),
    "letters": source("regex", "ö|ü|öü", ["ö", "ü", "öü"]),
    "pairs": source("ebnf", 'root ::= "a" root "b" | "ab"', ["a" * n + "b" * n for n in range(1, 41)]),
    "rules": source("ebnf", 'start: "x" | "yy" TAIL?\nTAIL: /[pq]/', ["x", "yy", "yyp", "yyq"]),
    "choice": source("json_schema", {"enum": ["one", "two", None, 1, 10]}, ['"one"', '"two"', "null", "1", "10"]),
    "object": source("json_schema", PERSON, ages("true", "false")),
    "array": source("json_schema", NUMBERS, [*(f"[{a}]" for a in (1, 2)), *(f"[{a},{b}]" for a in (1, 2) for b in (1, 2))]),
}
BAD = {
    "back reference": ("regex", "(a)\\1"),
    "endless": ("ebnf", "start: start"),
    "no rule": ("ebnf", "start: x"),
    "no document": ("json_schema", "{"),
    "keyword": ("json_schema", '{"uniqueItems": true}'),
    "nothing": ("json_schema", "false"),
}
END = min(MODEL.end_tokens)
(TOKEN_1,) = MODEL.chat.encode("1")
LONG = '"a long text, which takes more tokens"'


def letters(text: str) -> list[int]:
    """A token each byte."""
    return [MODEL.vocabulary.token(bytes([byte])) for byte in text.encode()]


def look(name: str) -> list[Op]:
    """What can be seen of a matcher."""
    return [op(f"matcher_{what}", matcher=name) for what in ("forced", "mask", "ended")]


def accept(name: str, *tokens: int) -> Op:
    """Goes on."""
    return op("matcher_accept", matcher=name, tokens=list(tokens))


def matchers() -> list[Op]:
    """A matcher allows the tokens with which a text goes on, of text that must follow the next of its tokens alone, and
    stop tokens where a text may end. It ends where nothing else could follow.
    """
    ops = []
    for name, given in SOURCES.items():
        ops += [op("grammar", as_=name, **given), op("matcher", as_=name, grammar=name), *look(name)]
        for text in given["texts"][:6]:
            for tokens in (MODEL.chat.encode(text), letters(text)):
                ops.append(op("matcher_reset", matcher=name))
                for token in tokens:
                    ops += [accept(name, token), *look(name)]
            # All at once, and what ends it.
            ops += [op("matcher_reset", matcher=name), accept(name, *tokens), op("matcher_ended", matcher=name)]
            ops += [accept(name, END), *look(name)]
    anything = source("any_json", "", ['{"a":[1,true]}'], is_part=True)
    ops += [op("grammar", as_="any", **anything), op("matcher", as_="any", grammar="any")]
    for token in MODEL.chat.encode('{"a":[1,true]}'):
        ops += [op("matcher_ended", matcher="any"), accept("any", token)]
    return [*ops, op("matcher_ended", matcher="any"), op("matcher_mask", matcher="any")]


def bad_grammars() -> list[Op]:
    """A source that does not parse or cannot be enforced is refused, as are tokens that go on to no text: none of them
    is taken. A copy goes on by itself.
    """
    ops = [op("grammar", as_="bad", kind=kind, source=text) for kind, text in BAD.values()]
    ops += [*prompt("c", 1), *(generate("c", "g", constrain=[{"kind": kind, "source": text}]) for kind, text in BAD.values())]
    a, b = letters("ab")
    ops += [op("grammar", as_="g", **SOURCES["optional"]), op("matcher", as_="m", grammar="g")]
    for tokens in ([b], [a, a], [a, b, b], [END], [a, b, END], [4_000_000], [MODEL.chat.closing()[0]]):
        ops += [accept("m", *tokens), *look("m")]
    ops += [accept("m", a), op("matcher_fork", matcher="m", as_="n"), accept("m", b), accept("m", END), *look("m"), *look("n")]
    ops += [accept("n", END), *look("n"), op("matcher_fork", matcher="n", as_="o"), *look("o"), op("matcher_reset", matcher="n")]
    return [*ops, accept("m"), accept("m", b), *look("n"), *look("o")]


def under_grammars() -> list[Op]:
    """A generator under a grammar draws one of its texts. Text that must follow is accepted with the step before, so
    that the tokens are the same step by step and collected. It ends with the grammar: `constraint`.
    """
    ops = []
    for name, given in SOURCES.items():
        for seed in (1, 2, 3):
            made = [(way, f"{name}/{seed}/{way}") for way in ("steps", "collect_tokens", "collect_text")]
            for way, gen in made:
                ops += [*prompt(gen, 41, 42), generate(gen, gen, WARM, 90, seed=seed, constrain=[given])]
                ops += [op("step", gen=gen)] * 12 if way == "steps" else [op(way, gen=gen)]
                ops += [*report(gen), *state(gen)]
    return ops


def beside_grammars() -> list[Op]:
    """Grammars, masks and stop tokens together allow what all of them allow; a stop token only where the text may end.
    Where nothing is left the step fails, and the context is as before.
    """
    a, b = letters("ab")
    few = [min(a, b), 1, abs(a - b) - 1, 1]
    optional, counted, pairs = SOURCES["optional"], SOURCES["counted"], SOURCES["pairs"]
    short = source("regex", "a{1,3}b{1,3}", ["a" * n + "b" * m for n in (1, 2, 3) for m in (1, 2, 3)])
    cases: dict[str, Op] = {
        "two": {"constrain": [pairs, short]},
        "same": {"constrain": [SOURCES["object"]] * 2},
        "mask": {"constrain": [counted], "logit_mask": few},
        "masks": {"constrain": [counted, {"masks": [few, [b, 1], []]}]},
        "fixed": {"constrain": [SOURCES["fixed"], {"masks": [[]]}]},
        "stop": {"constrain": [source("regex", "a[ab]?", ["a", "aa", "ab"])], "stop": [b]},
        "no stop": {"constrain": [SOURCES["branches"]], "stop": letters("t")},
        "endless": {"constrain": [optional], "ignore_eos": True},
        "cut": {"constrain": [SOURCES["pairs"]], "n": 1},
    }
    ops = []
    for name, options in cases.items():
        for seed in (1, 2, 3):
            gen = f"{name}/{seed}"
            ops += [*prompt(gen, 51, 52), generate(gen, gen, WARM, **({"n": 90} | options), seed=seed)]
            ops += [*[op("step", gen=gen)] * 2, op("collect_tokens", gen=gen), *report(gen), *state(gen), op("constraint_log", gen=gen)]
    # One that is added later begins where it is added.
    ops += [
        *prompt("late", 51, 52),
        generate("late", "late", n=50),
        op("step", gen="late"),
        op("constrain", gen="late", constrain=[counted]),
    ]
    ops += [op("collect_tokens", gen="late"), *report("late"), op("constrain", gen="late", constrain=[optional])]
    for name, other in {"mask": {"masks": [[END, 1]]}, "grammar": SOURCES["fixed"]}.items():
        ops += [*prompt(name, 51, 52), generate(name, name, n=5, constrain=[counted, other]), op("step", gen=name)]
        ops += [*state(name), *report(name), *collected(name, f"{name}/after", ARGMAX, 2)]
    return ops


def documents() -> list[Op]:
    """A document is collected beside what constrains its generator already. One that `max_tokens` cut is `json-cut`."""
    ops = []
    for name in ("choice", "object", "array"):
        for seed in (1, 2, 3):
            gen = f"{name}/{seed}"
            ops += [*prompt(gen, 61, 62), generate(gen, gen, WARM, 90, seed=seed, constrain=[SOURCES[name]])]
            ops += [op("collect_json", gen=gen), *report(gen), *state(gen)]
    long = source("json_schema", {"const": json.loads(LONG)}, [LONG])
    ops += [*prompt("cut", 61, 62), generate("cut", "cut", n=3, constrain=[long]), op("collect_json", gen="cut"), *report("cut")]
    # One that ends with the last token that there is room for is whole.
    for n in (len(MODEL.chat.encode(LONG)) - 1, len(MODEL.chat.encode(LONG))):
        for how in ("collect_json", "collect_text"):
            gen = f"{n} tokens/{how}"
            ops += [*prompt(gen, 61, 62), generate(gen, gen, n=n, constrain=[long]), op(how, gen=gen), *report(gen)]
    # Where a stop token ended it, it is whole too.
    ops += [
        *prompt("stopped", 61, 62),
        generate("stopped", "stopped", n=9, constrain=[SOURCES["choice"], {"masks": [[TOKEN_1, 1], [END, 1]]}]),
    ]
    ops += [op("collect_json", gen="stopped"), *report("stopped")]
    return ops


def given_up() -> list[Op]:
    """A collection that is given up before its result is taken leaves no trace: context and generator are as they were,
    the tokens before it are in the buffer still, and the seed of the generator counts for no other. Until then nothing
    is seen of it, and the context is busy. It is so with a grammar and without.
    """
    # So long that nobody is at its end when it is given up.
    digits = {"kind": "regex", "source": "[12]{10000}", "letters": "12", "n": 10_000, "around": ""}
    schema = {"type": "string", "pattern": "^[12]{10000}$"}
    document = {"kind": "json_schema", "source": json.dumps(schema), "letters": "12", "n": 10_000, "around": '"'}
    ops = []
    for name, how, options in (
        ("plain", "collect_tokens", {"ignore_eos": True}),
        ("plain text", "collect_text", {"ignore_eos": True}),
        ("tokens", "collect_tokens", {"constrain": [digits]}),
        ("text", "collect_text", {"constrain": [digits]}),
        ("document", "collect_json", {"constrain": [document]}),
    ):
        # A document whose first tokens were stepped is none by itself.
        for is_stepped in (False,) if name == "document" else (False, True):
            one, beside, again = (f"{name}/{is_stepped}/{what}" for what in ("one", "beside", "again"))
            # Long enough that what runs by itself is not at its end first.
            ops += [*prompt(one, 71, 72), generate(one, one, WARM, 12_000, **options)]
            ops += [op("step", gen=one)] * 2 if is_stepped else []
            ops += [*prompt(beside, 73), generate(beside, beside, n=2, ignore_eos=True)]
            seen = [*report(one), *state(one), op("append", ctx=one, tokens=[5]), op("truncate", ctx=one, n=1)]
            ops += [op("give_up", gen=one, how=how, beside=beside, seen=seen), *report(one), *state(one)]
            ops += [op("set_max_tokens", gen=one, n=20)]
            # A context made afresh draws by the seed that this one would have drawn by.
            if not is_stepped:
                ops += [op("context", as_=again), op("append", ctx=again, tokens=[71, 72]), generate(again, again, WARM, 20, **options)]
                ops += [op(how, gen=again), *report(again), *state(again)]
            ops += [op(how, gen=one), *report(one), *state(one)]
    return ops


VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    function.__name__: (function(), {}) for function in (matchers, bad_grammars, under_grammars, beside_grammars, documents, given_up)
}

SHOWS = {
    "matchers": "JS-126..130 JS-136..140 PY-118..122 PY-128..132 RS-146..152",
    "documents": "JS-072 PY-069 RS-067",
}

DOCS = {
    function.__name__: " ".join((function.__doc__ or "").split())
    for function in (matchers, bad_grammars, under_grammars, beside_grammars, documents, given_up)
}
