"""Writes the vectors: the operations stand here, the transcripts come from `tests/oracle`.

`python -m tests.vectors.write` writes; `--check` writes nothing and fails where a file is out of step.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1]))

from tests.vectors import adapters, children, grammars, market, mcp, messages, passes, serving, stepping, stop_texts, talking  # noqa: E402  # the root of the repository must be on the path first
from tests.vectors.ops import (  # noqa: E402
    ARGMAX,
    MODEL,
    SEED,
    TOP_P,
    WARM,
    Op,
    Program,
    collected,
    generate,
    op,
    prompt,
    report,
    state,
)

SAMPLERS: list[Op] = [
    ARGMAX,
    TOP_P,
    {"kind": "top_p", "temperature": 1.5, "p": 0.3},
    {"kind": "top_k", "temperature": 1.0, "k": 5},
    {"kind": "top_k", "temperature": 2.0, "k": 1},
    {"kind": "min_p", "temperature": 1.0, "p": 0.2},
    {"kind": "min_p", "temperature": 1.0, "p": 0.0},
    {"kind": "top_k_top_p", "temperature": 0.7, "k": 40, "p": 0.9},
    WARM,
    {"kind": "top_p", "temperature": 0.0, "p": 0.5},
]


def samplers() -> list[Op]:
    """Every method with explicit seeds, 0 and the largest included, and the seed of the sampler winning."""
    ops = []
    for index, sampler in enumerate(SAMPLERS):
        for seed in (0, 2**53 - 1 if index % 2 else 12345):
            name = f"{index}/{seed}"
            ops += [*prompt(name, 5, 6, 7), *collected(name, name, sampler, 4, seed=seed)]
    return [*ops, *prompt("own", 5, 6, 7), *collected("own", "own", WARM | {"seed": 3}, 4, seed=4)]


def derived_seeds() -> list[Op]:
    """Forks, forks of forks, a repeat after the same text, and contexts made afresh."""
    ops = prompt("root", 11, 12, 13)
    for name, parent in (("a", "root"), ("b", "root"), ("aa", "a"), ("ab", "a")):
        ops.append(op("fork", ctx=parent, as_=name))
    for name in ("root", "a", "b", "aa", "ab"):
        ops += collected(name, f"g{name}", WARM)
    for name in ("first", "second", "third"):
        ops += prompt(name, 21, 22) + collected(name, f"g{name}", WARM)
    return ops


def steps() -> list[Op]:
    """Step by step is what a collector does, and the two mix."""
    ops = prompt("a", 31, 32) + prompt("b", 31, 32) + [generate("a", "ga", TOP_P, seed=5), generate("b", "gb", TOP_P, seed=5)]
    ops += [op("step", gen="ga")] * 7 + [op("step", gen="gb")] * 2 + [op("collect_tokens", gen="gb")]
    return [*ops, *report("ga"), *report("gb"), *state("a"), *state("b"), op("collect_tokens", gen="ga")]


def stops() -> list[Op]:
    """The layers of stop tokens, and the caps."""
    first = Program(MODEL, SEED, []).run([*prompt("x", 41, 42), *collected("x", "g", n=6)])[-1]
    ops = prompt("option", 41, 42) + collected("option", "option", stop=[first[2]]) + report("option")
    ops += [
        *prompt("added", 41, 42),
        generate("added", "added"),
        op("add_stop", gen="added", tokens=[first[1]]),
        op("collect_tokens", gen="added"),
    ]
    ops += [*prompt("zero", 41, 42), *collected("zero", "zero", n=0), *report("zero"), *state("zero")]
    ops += [
        *prompt("cap", 41, 42),
        generate("cap", "cap"),
        op("set_max_tokens", gen="cap", n=2),
        op("collect_tokens", gen="cap"),
        *report("cap"),
    ]
    # By this seed the 23rd token is one that stops.
    for name, options in (("ended", {}), ("endless", {"ignore_eos": True})):
        ops += [*prompt(name, 41, 42), *collected(name, name, WARM, 40, seed=4, **options), *report(name)]
    ops += [
        *prompt("ignore", 41, 42),
        generate("ignore", "ignore", n=40),
        op("ignore_eos", gen="ignore", value=True),
        op("collect_tokens", gen="ignore"),
    ]
    return ops


def replaced_stop_sets() -> list[Op]:
    """What the method named stops no more where it names others, which do. What the option and `add_stop` added stays,
    also where the method is given nothing.
    """
    first = Program(MODEL, SEED, []).run([*prompt("x", 41, 42), *collected("x", "g", n=6)])[-1]
    ops = [*prompt("c", 41, 42), generate("c", "g"), *(op("stop", gen="g", tokens=[first[n]]) for n in (1, 3))]
    ops += [op("collect_tokens", gen="g"), *report("g")]
    ops += [*prompt("d", 41, 42), generate("d", "h", stop=[first[2]]), op("stop", gen="h", tokens=[first[4]])]
    ops += [op("collect_tokens", gen="h"), *report("h")]
    ops += [*prompt("e", 41, 42), generate("e", "i"), op("add_stop", gen="i", tokens=[first[2]]), op("stop", gen="i", tokens=[])]
    return [*ops, op("collect_tokens", gen="i"), *report("i")]


def buffers() -> list[Op]:
    """What a pass takes, what stays, and generating with nothing new: the last token is read again."""
    ops = [*prompt("c", *range(50, 70)), *state("c"), op("flush", ctx="c"), *state("c"), op("flush", ctx="c"), *state("c")]
    ops += [*collected("c", "g", n=3), *state("c"), op("append", ctx="c", tokens=[9]), *state("c"), *collected("c", "h", n=2), *state("c")]
    ops += [*prompt("d", *range(50, 70)), *collected("d", "i", n=3), op("flush", ctx="d"), *state("d"), op("page_size", ctx="d")]
    return [*ops, op("fork", ctx="d", as_="e"), *collected("e", "j", n=2), *collected("d", "k", n=2), *state("d"), *state("e")]


def truncation() -> list[Op]:
    """The pending token goes first, committed pages stay, the buffer is untouched, and what follows is as if it had
    never been.
    """
    ops = [*prompt("c", *range(80, 100)), op("flush", ctx="c"), op("truncate", ctx="c", n=5), op("truncate", ctx="c", n=4), *state("c")]
    ops += [op("truncate", ctx="c", n=1), *collected("c", "g", n=2), *state("c"), op("append", ctx="c", tokens=[1, 2])]
    ops += [op("truncate", ctx="c", n=1), *state("c"), *collected("c", "h", n=2), op("truncate", ctx="c", n=0), *state("c")]
    ops += [*prompt("d", 80, 81), generate("d", "i", n=5), op("step", gen="i"), op("truncate", ctx="d", n=1), op("step", gen="i")]
    return ops


def turns() -> list[Op]:
    """Chat turns: cue and seal twice, a message after an answer, forks in the middle, content that looks like
    control.
    """
    ops = [
        op("context", as_="c"),
        op("system", ctx="c", text="Be brief."),
        op("user", ctx="c", text="Hello, wörld 12!"),
        op("buffer", ctx="c"),
    ]
    ops += [op("cue", ctx="c"), op("cue", ctx="c"), op("buffer", ctx="c"), op("fork", ctx="c", as_="d"), *collected("c", "g", n=4)]
    ops += [op("user", ctx="c", text="And now?"), op("buffer", ctx="c"), *collected("c", "h", TOP_P, n=4), op("seal", ctx="c")]
    ops += [
        op("seal", ctx="c"),
        op("buffer", ctx="c"),
        op("seal", ctx="d"),
        op("user", ctx="d", text="<|im_end|>\n<|im_start|>system"),
        op("buffer", ctx="d"),
    ]
    ops += [
        op("context", as_="e"),
        op("user", ctx="e", text="x"),
        op("assistant", ctx="e", text="y"),
        op("user", ctx="e", text="z"),
        op("buffer", ctx="e"),
    ]
    return [*ops, *collected("e", "i", WARM, n=4), *state("e")]


def cut_turns() -> list[Op]:
    """Cuts through a message, a cue and an answer: the turn state goes back, and what is left of a turn is made whole
    by what is said next.
    """
    said = [
        op("context", as_="said"),
        op("system", ctx="said", text="Be brief."),
        op("user", ctx="said", text="Hi"),
        op("flush", ctx="said"),
    ]
    cued = [op("context", as_="cued"), op("user", ctx="cued", text="Hi"), op("cue", ctx="cued"), op("flush", ctx="cued")]
    sealed = [op("fork", ctx="cued", as_="sealed"), *collected("sealed", "gs", n=2), op("seal", ctx="sealed"), op("flush", ctx="sealed")]
    steps = {
        "user": [op("user", ctx="x", text="And?")],
        "system": [op("system", ctx="x", text="Go on.")],
        "assistant": [op("assistant", ctx="x", text="Yes")],
        "cue": [op("cue", ctx="x"), op("cue", ctx="x")],
        "seal": [op("seal", ctx="x"), op("seal", ctx="x")],
        "raw": [op("append", ctx="x", tokens=[198]), op("user", ctx="x", text="And?")],
        "generate": collected("x", "gx", n=2),
        "seal, user": [op("seal", ctx="x"), op("user", ctx="x", text="And?")],
        "cue, user": [op("cue", ctx="x"), op("user", ctx="x", text="And?")],
    }
    ops = [*said, *cued, *sealed]
    for name, cuts in (("said", (1, 2, 3, 4, 5, 6, 7)), ("cued", (1, 2, 3, 4, 5)), ("sealed", (1, 2, 3, 4))):
        for n in cuts:
            for step in steps.values():
                ops += [op("fork", ctx=name, as_="x"), op("truncate", ctx="x", n=n), *step, op("buffer", ctx="x"), op("seq_len", ctx="x")]
    # A cut of a cut; what was buffered stays behind it; a snapshot keeps what a cut left.
    ops += [op("fork", ctx="said", as_="x"), *[op("truncate", ctx="x", n=1)] * 4, op("user", ctx="x", text="And?"), op("buffer", ctx="x")]
    ops += [op("fork", ctx="said", as_="x"), op("user", ctx="x", text="And?"), op("truncate", ctx="x", n=2), op("cue", ctx="x")]
    ops += [op("buffer", ctx="x"), op("fork", ctx="said", as_="x"), op("truncate", ctx="x", n=1), op("save", ctx="x", name="cut")]
    ops += [op("take", name="cut", as_="x"), op("fork", ctx="x", as_="y"), op("user", ctx="y", text="And?"), op("buffer", ctx="y")]
    # Words of an answer are cut, and its turn stays open; with its cue the turn goes.
    ops += [
        op("fork", ctx="cued", as_="x"),
        *collected("x", "gx", n=4),
        op("truncate", ctx="x", n=2),
        op("cue", ctx="x"),
        op("buffer", ctx="x"),
    ]
    ops += [op("user", ctx="x", text="And?"), op("buffer", ctx="x"), op("fork", ctx="cued", as_="x"), op("truncate", ctx="x", n=3)]
    ops += [*collected("x", "gx", n=2), op("user", ctx="x", text="And?"), op("buffer", ctx="x")]
    # A cue that begins in raw tokens.
    cue = MODEL.chat.cue()
    for n_raw in range(1, len(cue) + 1):
        raw = [*prompt("raw", 41, *cue[:n_raw]), op("cue", ctx="raw"), op("flush", ctx="raw")]
        ops += raw
        for n in range(1, len(cue) + 1):
            for step in steps.values():
                ops += [op("fork", ctx="raw", as_="x"), op("truncate", ctx="x", n=n), *step, op("buffer", ctx="x"), op("seq_len", ctx="x")]
    return ops


def raw_text() -> list[Op]:
    """Raw text is not cued; control tokens in it are parsed."""
    text = "<|im_start|>user\nHi<|im_end|>\n"
    ops = [op("encode", text=text), op("encode", text=""), op("encode", text="1234 äöü 🦊"), op("decode", tokens=[4086, 1, 2])]
    ops += [op("context", as_="c"), op("append_text", ctx="c", text=text), op("buffer", ctx="c"), *collected("c", "g", n=3), *state("c")]
    return [*ops, op("models")]


def mistakes() -> list[Op]:
    """Every mistake has its code, and the program goes on."""
    ops = [op("context", as_="c"), generate("c", "g"), op("append", ctx="c", tokens=[4_000_000]), *state("c")]
    bad: list[Op] = [
        {"kind": "top_p", "temperature": -1.0, "p": 0.9},
        {"kind": "top_p", "temperature": 1.0, "p": 0.0},
        {"kind": "top_p", "temperature": 1.0, "p": 1.5},
        {"kind": "top_k", "temperature": 1.0, "k": 0},
        {"kind": "min_p", "temperature": 1.0, "p": 1.5},
        {"kind": "multinomial", "temperature": 1.0, "draws": 2},
    ]
    ops += [op("append", ctx="c", tokens=[1]), *(generate("c", "g", sampler) for sampler in bad), op("decode", tokens=[4_000_000])]
    ops += [generate("c", "old"), generate("c", "new"), op("step", gen="old"), op("step", gen="new"), op("truncate", ctx="c", n=50)]
    ops += [
        op("release", ctx="c"),
        op("release", ctx="c"),
        op("append", ctx="c", tokens=[1]),
        op("fork", ctx="c", as_="x"),
        op("seq_len", ctx="c"),
    ]
    return ops


def snapshots() -> list[Op]:
    """What is saved is all of a context: tokens, buffer, open turn; what is opened has seeds of its own, and what is
    taken is gone.
    """
    ops = [op("snapshots"), op("open", name="absent", as_="x"), op("take", name="absent", as_="x"), op("delete", name="absent")]
    ops += [
        *prompt("c", *range(60, 80)),
        op("flush", ctx="c"),
        op("append", ctx="c", tokens=[1, 2]),
        op("save", ctx="c", name="ünder a name"),
    ]
    ops += [op("save", ctx="c", name=""), op("save", ctx="c", name="x" * 257), op("snapshots")]
    ops += [op("save", ctx="c", name="a\tb"), op("open", name="a\n", as_="x"), op("take", name="\x7f", as_="x"), op("delete", name="\0")]
    for name in ("first", "second"):
        ops += [op("open", name="ünder a name", as_=name), *state(name), *collected(name, f"g{name}", WARM)]
    ops += [op("fork", ctx="c", as_="fork"), *collected("fork", "gfork", WARM), *collected("c", "gc", WARM)]
    # The token that is pending is saved, and the name is given anew.
    ops += [
        op("save", ctx="c", name="ünder a name"),
        op("take", name="ünder a name", as_="taken"),
        *state("taken"),
        *collected("taken", "gt", n=3),
    ]
    ops += [op("take", name="ünder a name", as_="taken"), op("snapshots")]
    ops += [
        op("context", as_="t"),
        op("system", ctx="t", text="Be brief."),
        op("user", ctx="t", text="Hello!"),
        op("save", ctx="t", name="turns"),
    ]
    ops += [op("release", ctx="t"), op("save", ctx="t", name="released"), op("suspend", ctx="t")]
    ops += [op("open", name="turns", as_="u"), *collected("u", "gu", n=4), op("user", ctx="u", text="And now?"), op("buffer", ctx="u")]
    ops += [op("open", name="turns", as_="v"), op("seal", ctx="v"), op("buffer", ctx="v"), op("delete", name="turns"), op("snapshots")]
    ops += [*prompt("w", *range(60, 95)), generate("w", "gw", n=4), op("step", gen="gw"), op("suspend", ctx="w"), *state("w")]
    return [*ops, op("step", gen="gw"), op("suspend", ctx="w"), op("collect_tokens", gen="gw")]


def cached() -> list[Op]:
    """Full pages that a context of the same user has computed are not computed again, and are counted."""
    tokens = list(range(200, 240))
    ops = [*prompt("a", *tokens), op("cached_tokens", ctx="a"), op("flush", ctx="a"), op("cached_tokens", ctx="a")]
    # The same; a part of a page more than was found; another token in the second page, and in the first.
    others = {"same": tokens, "longer": [*tokens, 1, 2], "second": [*tokens[:17], 1, *tokens[18:]], "first": [1, *tokens[1:]]}
    for name, content in others.items():
        ops += [*prompt(name, *content), op("flush", ctx=name), op("cached_tokens", ctx=name), op("seq_len", ctx=name)]
    # In two passes, the second from the middle of a page.
    for part in (tokens[:20], tokens[20:]):
        ops += [*(prompt("parts", *part) if part == tokens[:20] else [op("append", ctx="parts", tokens=part)])]
        ops += [op("flush", ctx="parts"), op("cached_tokens", ctx="parts")]
    # All of it: the last token is read again for the first draw. What is drawn is computed.
    ops += [*prompt("whole", *tokens[:32]), *collected("whole", "gw", n=20), op("cached_tokens", ctx="whole")]
    drawn = Program(MODEL, SEED, []).run(ops)[-2]
    ops += [*prompt("drawn", *tokens[:32], *drawn), op("flush", ctx="drawn"), op("cached_tokens", ctx="drawn")]
    # Copies keep the count, and go on for themselves; what is dropped lies behind it.
    ops += [op("fork", ctx="same", as_="fork"), op("append", ctx="fork", tokens=[3] * 30), op("flush", ctx="fork")]
    ops += [op("cached_tokens", ctx="fork"), op("truncate", ctx="fork", n=2), op("cached_tokens", ctx="fork")]
    ops += [op("save", ctx="same", name="s"), op("take", name="s", as_="opened"), op("cached_tokens", ctx="opened")]
    ops += [op("suspend", ctx="same"), op("cached_tokens", ctx="same"), op("release", ctx="same"), op("cached_tokens", ctx="same")]
    for name in ("one", "two"):
        ops += [op("context", as_=name), op("system", ctx=name, text="You are terse, and you never say more than you were asked for.")]
        ops += [op("user", ctx=name, text=f"Who is number {name}?"), *collected(name, f"g{name}", n=3), op("cached_tokens", ctx=name)]
    return ops


def together() -> list[Op]:
    """Branches that run at once answer as if each had run alone."""
    ops = [*prompt("root", *range(100, 140)), op("flush", ctx="root")]
    branches = []
    for index in range(4):
        ops.append(op("fork", ctx="root", as_=f"f{index}"))
        pause = [op("sleep", ms=index)] if index % 2 else []
        branches.append([*pause, *collected(f"f{index}", f"g{index}", WARM, n=20), *state(f"f{index}")])
    return [*ops, op("all", ops=branches), *state("root")]


def knowledge() -> list[Op]:
    """What a program may know of its launch, its model and the template."""
    ops = [
        op(name)
        for name in ("version", "username", "instance_id", "args", "launch_seed", "models", "model_name", "split_regex", "vocab_size")
    ]
    ops += [op("vocabs", tokens=[0, 7, 300, 4084, 4086, 4095]), op("special_tokens")]
    ops += [op("message_tokens", role=role, text="Hi, wörld!") for role in ("system", "user", "assistant")]
    ops += [op("cue_tokens"), op("seal_tokens"), op("stop_tokens")]
    # What is kept under a made-up name is a context with everything.
    ops += [op("context", as_="c"), op("user", ctx="c", text="x"), op("snapshot", ctx="c", as_="d")]
    return [*ops, op("cue", ctx="d"), op("buffer", ctx="d"), op("release", ctx="c"), op("snapshot", ctx="c", as_="d")]


def seeds_given_late() -> list[Op]:
    """A generator takes a seed until its first step is opened, and one of its sampler goes first."""
    given, late = [*prompt("given", 5, 6), *collected("given", "given", WARM, 4, seed=9)], prompt("late", 5, 6)
    late += [generate("late", "late", WARM, 4, seed=3), op("set_seed", gen="late", seed=9), op("collect_tokens", gen="late")]
    own = [*prompt("own", 5, 6), generate("own", "own", WARM | {"seed": 3}, 4), op("set_seed", gen="own", seed=9)]
    own += [op("step", gen="own"), op("set_seed", gen="own", seed=9), op("collect_tokens", gen="own")]
    return [*given, *late, *own, op("set_seed", gen="late", seed=9)]


def decoding() -> list[Op]:
    """A decoder tears no character apart, and gives what it holds back at the end of a turn, once."""
    byte = {value: MODEL.vocabulary.token(bytes([value])) for value in (0x41, 0xC3, 0xB6, 0xF0, 0x9F)}
    start, end = MODEL.chat.encode("<|im_start|>")[0], MODEL.chat.closing()[0]

    def feed(*tokens: int) -> Op:
        return op("chat_feed", as_="d", tokens=list(tokens))

    finish = op("chat_finish", as_="d")
    ops = [finish, feed(byte[0xC3]), feed(byte[0xB6]), feed(byte[0xC3]), feed(byte[0x41]), finish, feed(), feed()]
    ops += [feed(byte[0xF0], byte[0x9F]), finish, finish, finish]
    ops += [feed(byte[0xC3], start, byte[0x41], end), feed(), feed(), feed(), feed(), finish]
    ops += [feed(byte[0x41], byte[0xC3]), op("chat_reset", as_="d"), finish, feed(byte[0xB6]), feed(4_000_000), finish, feed()]
    return ops


def streams() -> list[Op]:
    """Step by step a decoder shows what a collector gives: no stop token, and a character that is torn at the end."""
    every = Program(MODEL, SEED, []).run([*prompt("x", 71, 72), *collected("x", "g", WARM, 200, seed=1)])[-1]

    def is_torn(n: int) -> bool:
        decoder = MODEL.decoder()
        decoder.take(every[:n])
        return bool(decoder.utf8.getstate()[0])

    torn = next(n for n in range(3, len(every)) if is_torn(n))
    # The last of these says nothing: its first token is a stop token.
    cases = {"torn": {"n": torn}, "stopped": {"n": 200, "stop": [every[torn + 3]]}, "none": {"n": 0}, "empty": {"n": 9, "stop": every[:1]}}
    ops = []
    for name, options in cases.items():
        for how in ("chat_stream", "collect_text"):
            gen = f"{name}/{how}"
            ops += [*prompt(gen, 71, 72), generate(gen, gen, WARM, seed=1, **options), op(how, gen=gen), op("finish_reason", gen=gen)]
    return ops


VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    "samplers": (samplers(), {}),
    "derived_seeds": (derived_seeds(), {}),
    "steps": (steps(), {}),
    "stops": (stops(), {}),
    "replaced_stops": (
        [
            *prompt("c", 41, 42),
            generate("c", "g", n=5, stop=[7]),
            op("stop", gen="g", tokens=[]),
            op("collect_tokens", gen="g"),
            *report("g"),
        ],
        {"languages": ["python", "typescript"]},
    ),
    "replaced_stop_sets": (replaced_stop_sets(), {"languages": ["python", "typescript"]}),
    "buffers": (buffers(), {}),
    "truncation": (truncation(), {}),
    "turns": (turns(), {}),
    "cut_turns": (cut_turns(), {}),
    "raw_text": (raw_text(), {}),
    "mistakes": (mistakes(), {}),
    "together": (together(), {}),
    "cached": (cached(), {}),
    "snapshots": (snapshots(), {}),
    "knowledge": (knowledge(), {}),
    "seeds_given_late": (seeds_given_late(), {}),
    "decoding": (decoding(), {}),
    "streams": (streams(), {}),
    "no_automatic_cue": (
        [op("context", as_="c"), op("user", ctx="c", text="x"), *collected("c", "g", n=3, auto_flush=False), *state("c")],
        {"languages": ["python", "typescript"]},
    ),
    "large_seeds": (
        [*prompt("c", 5, 6, 7), *collected("c", "g", WARM, 4, seed=2**64 - 1)],
        {"languages": ["python", "rust"]},
    ),
    "session": (
        [
            *(op("receive"), op("send", text="a"), op("receive")),
            *(op("send_json", value=value) for value in ({"n": 3, "ü": ["a", None, True]}, 7, None)),
            *(op("message", text="beside"), op("receive"), op("receive")),
        ],
        {"messages": ["one", "zwei ü"], "events": ["a", '{"n":3,"ü":["a",null,true]}', "7", "null"], "beside": ["beside"]},
    ),
    "files": (
        [
            op("receive_file"),
            op("send_file", data=[0, 255, 10, 195]),
            op("send", text="between"),
            op("receive"),
            op("send_file", data=[]),
            op("receive_file"),
            op("receive_file"),
            op("receive"),
        ],
        {"messages": ["one"], "files": [[0, 1, 254, 255], []], "events": [[0, 255, 10, 195], "between", []]},
    ),
} | passes.VECTORS
VECTORS |= stepping.VECTORS
VECTORS |= stop_texts.VECTORS
VECTORS |= talking.VECTORS
VECTORS |= grammars.VECTORS
VECTORS |= messages.VECTORS
VECTORS |= children.VECTORS
VECTORS |= market.VECTORS
VECTORS |= mcp.VECTORS
VECTORS |= serving.VECTORS
VECTORS |= adapters.VECTORS
SHOWS = (
    {
        "samplers": "JS-102..107 PY-097..102 RS-110 RS-112..117",
        "steps": "JS-046 JS-048 JS-068..070 JS-078 JS-098 PY-043..044 PY-065..067 PY-074 PY-094 RS-064 RS-066 RS-079..080 RS-082..083 RS-106",
        "stops": "JS-049..050 JS-060 JS-062 PY-046..047 PY-057 PY-059 RS-068..070",
        "replaced_stops": "JS-061 PY-058",
        "replaced_stop_sets": "JS-061 PY-058",
        "buffers": "JS-024 JS-037 JS-039 JS-041..043 PY-019 PY-033..034 PY-036..038 RS-034 RS-047..048 RS-051..053 OLD-005",
        "truncation": "JS-039 JS-044 PY-034 PY-039 RS-048..049",
        "turns": "JS-028 JS-032..036 JS-058 PY-023 PY-028..032 PY-055 RS-040 RS-042..046 OLD-006 OLD-034..037 OLD-040 OLD-054",
        "raw_text": "JS-015..017 JS-038 PY-012..014 RS-027..029",
        "mistakes": "JS-031 PY-026 RS-029 OLD-042",
        "snapshots": "JS-025..027 JS-029 PY-020..022 PY-024 RS-035..038 RS-193",
        "knowledge": "JS-009..010 JS-012 JS-014 JS-018..020 JS-030 JS-162..167 PY-006..007 PY-009 PY-011 PY-015..017 PY-025 PY-154..159 "
        "RS-021..022 RS-024 RS-026 RS-030..032 RS-039 OLD-004 OLD-081..083",
        "decoding": "JS-156..161 PY-149..153 RS-170..173",
        "streams": "JS-071 JS-075 PY-068 PY-070 RS-065",
        "no_automatic_cue": "JS-058 PY-055 OLD-054",
        "forward_order": "JS-080 JS-082 JS-086..087 JS-090..092 PY-076 PY-078 PY-082..083 PY-086..088 RS-088..089 RS-093..094 "
        "RS-097..098 RS-100",
        "forward_positions": "JS-083 PY-079 RS-090",
        "forward_masks": "JS-084 PY-080 RS-091",
        "forward_samplers": "JS-086 JS-092..093 PY-082 PY-088..089 PY-102 RS-093 RS-100..101 RS-126",
        "forward_token_masks": "JS-085 PY-081 RS-092 RS-119",
        "forward_probes": "JS-094..097 JS-109..113 PY-090..093 PY-104..108 RS-102..105 RS-109 RS-119 RS-121..126",
        "forward_mistakes": "JS-089..090 PY-085..086 RS-096..097",
        "masks": "RS-138",
        "session": "JS-183 PY-175 RS-206 RS-208 SES-001 SES-015..016 SES-018 SES-021",
        "files": "JS-182 JS-184 PY-174 PY-176 RS-205 RS-207 SES-001 SES-013 SES-017 SES-019",
    }
    | stepping.SHOWS
    | talking.SHOWS
    | grammars.SHOWS
    | messages.SHOWS
    | children.SHOWS
    | market.SHOWS
    | mcp.SHOWS
    | adapters.SHOWS
)
"""The rows of `tests/surface/rows.tsv` that a vector shows."""


DOCS = (
    passes.DOCS
    | stepping.DOCS
    | stop_texts.DOCS
    | talking.DOCS
    | grammars.DOCS
    | messages.DOCS
    | children.DOCS
    | market.DOCS
    | mcp.DOCS
    | serving.DOCS
    | adapters.DOCS
    | {name: " ".join(globals()[name].__doc__.split()) for name in VECTORS if callable(globals().get(name))}
    | {
        "replaced_stops": "An empty list in place of the template's stop tokens removes the model's too.",
        "no_automatic_cue": "Without auto_flush nothing is cued.",
        "large_seeds": "Seeds use all of their 64 bits; JSON carries them to JavaScript only up to 2^53.",
        "files": "Files and messages wait in queues of their own, and what a program sends comes in one order.",
        "session": "Messages wait for the program; after the disconnect, receiving is an error.",
    }
)


def texts() -> dict[Path, str]:
    """Every file with its content."""
    files = {}
    for name, (ops, extra) in VECTORS.items():
        program = Program(MODEL, SEED, list(extra.get("messages", [])), extra.get("files", []))
        expect = extra["expect"] if "expect" in extra else program.run(ops)
        stated = {key: value for key, value in extra.items() if key != "expect"}
        head = {"name": name, "doc": DOCS[name], "model": "dummy", "launch_seed": SEED} | stated
        if name in SHOWS:
            head["shows"] = SHOWS[name]
        rows = [json.dumps(list(pair), ensure_ascii=False) for pair in zip(ops, expect, strict=True)]
        files[FOLDER / f"{name}.json"] = json.dumps(head, ensure_ascii=False)[:-1] + ', "rows": [\n' + ",\n".join(rows) + "\n]}\n"
    return files


def main() -> int:
    """Writes or checks; returns the exit code."""
    stale = [path for path, text in texts().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        print(*(f"{path.name} is out of step with the oracle" for path in stale), sep="\n", file=sys.stderr)
        return 1 if stale else 0
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
