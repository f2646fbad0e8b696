"""Vectors of stop texts and of streams of text."""

from __future__ import annotations

from typing import Any

from tests.vectors.ops import ARGMAX, MODEL, WARM, Op, collected, generate, op, prompt, report, state, transcript

FIRST = (71, 72)


def drawn(n: int, **options: Any) -> list[int]:
    """What is drawn where nothing stops it."""
    tokens: list[int] = transcript([*prompt("x", *FIRST), *collected("x", "g", WARM, n, seed=1, **options)])[-1][1]
    return tokens


def content(tokens: list[int]) -> str:
    """The text of tokens, each of which is a whole one."""
    return b"".join(MODEL.vocabulary.bytes[token] for token in tokens).decode()


def plain(tokens: list[int], n: int, length: int = 3) -> int:
    """Where `n` tokens of plain letters stand in a row, of `length` bytes at least."""

    def is_plain(token: int) -> bool:
        found = MODEL.vocabulary.bytes[token]
        return token not in MODEL.vocabulary.control and found.isascii() and len(found) >= length

    return next(at for at in range(2, len(tokens)) if all(map(is_plain, tokens[at : at + n])))


def cases() -> dict[str, tuple[int, Op]]:
    """The cap, and what stops, by names."""
    every = drawn(32)
    at = plain(every, 3)
    one, two, three = (content([token]) for token in every[at : at + 3])
    return {
        "the whole of a token": (40, {"stop": one}),
        "within a token": (40, {"stop": [one[1:-1]]}),
        "across two tokens": (40, {"stop": [one[-1:] + two[:1]]}),
        "across three tokens": (40, {"stop": [one[-2:] + two + three[:2]]}),
        "the first that is complete": (40, {"stop": [one[-2:] + two + three[:2], two[1:]]}),
        "the longest of two": (40, {"stop": [two[1:], one[-1:] + two]}),
        "a text and a token": (40, {"stop": [two + "no", every[at + 2]]}),
        "the same as a token": (40, {"stop": [one, every[at]]}),
        "none": (at + 2, {"stop": ["no such text", two + "no"]}),
        "at the cap": (at + 2, {"stop": [one[-1:] + two]}),
    }


def stop_texts() -> list[Op]:
    """A stop text ends a generation with the token that completes it, and its text before it, wherever tokens begin and
    end. A stream gives the same text in pieces, and no part of a stop text.
    """
    ops = []
    for name, (n, options) in cases().items():
        for how in ("collect_tokens", "collect_text", "text_stream", "step"):
            gen = f"{name}/{how}"
            ops += [*prompt(gen, *FIRST), generate(gen, gen, WARM, n, seed=1, **options)]
            ops += [op("step", gen=gen)] * 3 + [op("collect_text", gen=gen)] if how == "step" else [op(how, gen=gen)]
            ops += [*report(gen), op("seq_len", ctx=gen)]
    return ops


def stop_texts_between() -> list[Op]:
    """A text that began in steps ends the collector behind them; added texts stop too; what was accepted may be
    replaced, and is then read anew.
    """
    every = drawn(32)
    at = plain(every, 3)
    one, two, three = (content([token]) for token in every[at : at + 3])
    across = one[-1:] + two + three[:1]
    ops = []
    for n, how in ((at + 1, "collect_text"), (at + 2, "collect_text"), (at + 1, "text_stream")):
        gen = f"{n} steps/{how}"
        ops += [*prompt(gen, *FIRST), generate(gen, gen, WARM, 40, seed=1, stop=[across])]
        ops += [op("step", gen=gen)] * n + [op(how, gen=gen), *report(gen), *state(gen)]
    ops += [*prompt("added", *FIRST), generate("added", "added", WARM, 40, seed=1), op("add_stop", gen="added", tokens=[across])]
    ops += [op("collect_text", gen="added"), *report("added"), *state("added")]
    ops += [*prompt("accept", *FIRST), generate("accept", "accept", WARM, 40, seed=1, stop=[one[-1:] + two])]
    ops += [op("step", gen="accept")] * 2
    ops += [op("accept", gen="accept", tokens=[*every[at : at + 3], every[0]]), *report("accept"), *state("accept")]
    ops += [
        op("accept", gen="accept", tokens=[every[at]]),
        *report("accept"),
        op("accept", gen="accept", tokens=[]),
        op("step", gen="accept"),
    ]
    ops += [*prompt("turn", *FIRST), *collected("turn", "turn", WARM, 40, seed=1, stop=[across]), op("append", ctx="turn", tokens=[5])]
    return [*ops, *state("turn"), *collected("turn", "after", ARGMAX, 3), *state("turn")]


def drafted_stop_texts() -> list[Op]:
    """Drafts behind the token that completes a stop text are not kept."""
    every = drawn(32)
    at = plain(every, 3)
    one, two = (content([token]) for token in every[at : at + 2])
    drafts = {"drafts": [every[:at], every[at + 1 : at + 8]]}
    ops = [*prompt("d", *FIRST), generate("d", "d", WARM, 40, seed=1, stop=one[-1:] + two, speculator=drafts)]
    return [*ops, op("step", gen="d"), op("step", gen="d"), op("step", gen="d"), *report("d"), *state("d"), *collected("d", "e", n=3)]


def set_stop_texts() -> list[Op]:
    """Texts in place of the template's stop tokens leave the model's, and an empty list removes them and those."""
    every = drawn(32)
    at = plain(every, 2)
    one, two = (content([token]) for token in every[at : at + 2])
    across = one[-1:] + two[:1]
    # By this seed the 23rd token is one of the model's that stops.
    ops = [*prompt("kept", 41, 42), generate("kept", "kept", WARM, 40, seed=4), op("stop", gen="kept", tokens=["no such text"])]
    ops += [op("collect_tokens", gen="kept"), *report("kept")]
    ops += [*prompt("none", 41, 42), generate("none", "none", WARM, 40, seed=4), op("stop", gen="none", tokens=["no such text"])]
    ops += [op("stop", gen="none", tokens=[]), op("collect_tokens", gen="none"), *report("none")]
    for name, then in (("set", []), ("replaced", [op("stop", gen="replaced", tokens=[two])])):
        ops += [*prompt(name, *FIRST), generate(name, name, WARM, 40, seed=1), op("stop", gen=name, tokens=across), *then]
        ops += [op("collect_text", gen=name), *report(name)]
    return ops


def bad_stop_texts() -> list[Op]:
    """Stop texts are few and short, and none is empty."""
    ops = []
    for name, stop in {"empty": [""], "long": ["x" * 257], "many": [f"stop {n}" for n in range(65)]}.items():
        ops += [*prompt(name, *FIRST), generate(name, name), op("add_stop", gen=name, tokens=stop), op("collect_tokens", gen=name)]
    most = [f"{n} {'x' * 250}" for n in range(64)]
    return [*ops, *prompt("most", *FIRST), generate("most", "most", n=2, stop=most), op("collect_text", gen="most")]


def refused_stop_texts() -> list[Op]:
    """A stop text that is refused where a generator is made leaves the older generator of the context as it was."""
    ops = [*prompt("x", *FIRST), generate("x", "older", WARM, 6, seed=1), op("step", gen="older")]
    for name, stop in {"empty": "", "long": ["x" * 257], "many": [f"stop {n}" for n in range(65)]}.items():
        ops.append(generate("x", name, stop=stop))
    return [*ops, op("collect_tokens", gen="older"), *report("older"), *state("x")]


VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    "stop_texts": (stop_texts(), {}),
    "stop_texts_between": (stop_texts_between(), {}),
    "drafted_stop_texts": (drafted_stop_texts(), {"languages": ["python", "typescript"]}),
    "set_stop_texts": (set_stop_texts(), {"languages": ["python", "typescript"]}),
    "bad_stop_texts": (bad_stop_texts(), {}),
    # In Rust a generator has its stop texts once it is made.
    "refused_stop_texts": (refused_stop_texts(), {"languages": ["python", "typescript"]}),
}
DOCS = {name: " ".join(globals()[name].__doc__.split()) for name in VECTORS}
