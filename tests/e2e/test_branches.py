"""Forks without explicit seeds differ from each other, and the launch seed repeats the whole run, whatever the
timing.
"""

from __future__ import annotations

import pytest

from pie.engine import Engine
from support.launching import LANGUAGES, example, python_source, run

INPUT = {"prompt": "Tell me a short story.", "branches": 4, "max_tokens": 24}

DISTURBED = """
import asyncio
from inferlet import Context, Model, Sampler


async def branch(ctx, delay_s, max_tokens):
    await asyncio.sleep(delay_s)
    g = ctx.generate(Sampler.top_p(1.0, 0.95), max_tokens=max_tokens)
    if delay_s < 0.01:
        return await g.collect_tokens()
    tokens = []
    async for step in g:
        out = await step.execute()
        tokens += out.tokens
        await asyncio.sleep(delay_s / 10)
    return tokens


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.system("You are a helpful assistant.")
    ctx.user(input["prompt"])
    await ctx.flush()
    forks = [ctx.fork() for _ in range(input["branches"])]
    return await asyncio.gather(*(branch(f, d, input["max_tokens"]) for f, d in zip(forks, input["delays_s"], strict=True)))
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_four_branches_differ_and_repeat(tiny: Engine, language: str) -> None:
    program = example("branches", language)
    first = run(tiny, program, INPUT)
    assert first.code is None, first.message
    assert len(set(first.value)) == 4
    assert run(tiny, program, INPUT, seed=first.launch_seed).value == first.value
    assert run(tiny, program, INPUT, seed=(first.launch_seed + 1) % 2**64).value != first.value


def test_the_timing_of_branches_changes_nothing(tiny: Engine) -> None:
    program = python_source(DISTURBED)
    results = [
        run(tiny, program, INPUT | {"delays_s": delays}, seed=7).value
        for delays in ([0, 0, 0, 0], [0.05, 0.0, 0.02, 0.01], [0.0, 0.03, 0.0, 0.06])
    ]
    assert results[0] == results[1] == results[2]
    assert len({tuple(tokens) for tokens in results[0]}) == 4


def test_the_languages_agree_on_every_branch(tiny: Engine) -> None:
    texts = [run(tiny, example("branches", language), INPUT, seed=7).value for language in LANGUAGES]
    assert texts[0] == texts[1] == texts[2]
