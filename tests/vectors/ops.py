"""The words in which vectors are written: operations, and what is often done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from oracle.program import Model, Program  # noqa: E402  # the folder of the oracle must be on the path first

MODEL = Model(FOLDER.parents[1] / "python/pie/pie_tiny")
SEED = 7
Op = dict[str, Any]

ARGMAX = {"kind": "argmax"}
TOP_P = {"kind": "top_p", "temperature": 0.8, "p": 0.95}
WARM = {"kind": "multinomial", "temperature": 1.0, "draws": 1}


def op(name: str, /, **arguments: Any) -> Op:
    """One operation; `as_` stands for the keyword."""
    return {"op": name} | {key.rstrip("_"): value for key, value in arguments.items()}


def prompt(name: str, *tokens: int) -> list[Op]:
    """A context that holds raw tokens."""
    return [op("context", as_=name), op("append", ctx=name, tokens=list(tokens))]


def state(ctx: str) -> list[Op]:
    """What can be seen of a context."""
    return [op("seq_len", ctx=ctx), op("buffer", ctx=ctx)]


def report(gen: str) -> list[Op]:
    """What can be seen of a generator."""
    return [op("tokens_generated", gen=gen), op("is_done", gen=gen), op("finish_reason", gen=gen)]


def generate(ctx: str, gen: str, sampler: Op = ARGMAX, n: int | None = 6, **options: Any) -> Op:
    """A generator of at most `n` tokens."""
    return op("generate", ctx=ctx, as_=gen, sampler=sampler, **({} if n is None else {"max_tokens": n}), **options)


def collected(ctx: str, gen: str, sampler: Op = ARGMAX, n: int = 6, **options: Any) -> list[Op]:
    """Generates and collects."""
    return [generate(ctx, gen, sampler, n, **options), op("collect_tokens", gen=gen)]


def answers(ops: list[Op], shown: Op) -> Any:
    """What the last operation answers behind others, to write others by."""
    return Program(MODEL, SEED, []).run([*ops, shown])[-1]


def transcript(ops: list[Op]) -> list[tuple[Op, Any]]:
    """Operations with their entries, to look at what a vector shows."""
    return list(zip(ops, Program(MODEL, SEED, []).run(ops), strict=True))
