"""What passes and steps hold is charged to their user. What has no room is refused and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from support.engines import started
from support.launching import python_source, run

# A row of the dummy driver has 4,096 logits, 16 KiB. One user may hold some seventy MiB of this.
MEMORY_BYTES = 256 << 20

PRELUDE = """
import asyncio
from inferlet import *
from inferlet.errors import InferletError

# What a program grows by is charged too. It has room of its own before it fills what there is.
bytearray(8 << 20)

def code_of(call):
    try:
        call()
    except InferletError as error:
        return error.code

async def code_in(awaitable):
    try:
        await awaitable
    except InferletError as error:
        return error.code

def context(n=4):
    return Context(Model.load(runtime.models()[0])).append(range(n))
"""


@pytest.fixture(scope="module")
def small() -> Iterator[Engine]:
    """An engine with little memory."""
    engine = Engine(EngineConfig(memory_bytes=MEMORY_BYTES))
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine


def test_what_a_pass_reads_is_charged_before_it_runs(small: Engine) -> None:
    main = """
async def main(input):
    ctx = context()
    await ctx.flush()
    # 3,200 rows of 32 KiB, where a user may hold 72 MiB; then as many as fit.
    wide = ctx.forward().input([1] * 200)
    some = ctx.forward().input([1] * 20)
    for index in range(200):
        for _ in range(16):
            wide.probe(index, Distribution(1.0, 0))
    handles = [some.probe(index, Distribution(1.0, 0)) for index in range(20)]
    # It is not executed: so it can be again, and is refused again.
    refused = [await code_in(wide.execute()) for _ in range(2)]
    kept = ctx.seq_len
    out = await some.execute()
    return [refused, kept, ctx.seq_len, len(out.distribution(handles[19])[0])]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == [["limit-engine-memory"] * 2, 4, 24, 4096], outcome.message


def test_masks_that_are_replaced_are_given_back(small: Engine) -> None:
    main = """
async def main(input):
    fwd = context().forward().input([5])
    for n in range(100):
        fwd.attention_mask([[0, 1] * 100_000])
        fwd.mask([0, 1] * 2000)
    fwd.attention_mask([[]])
    await fwd.execute()
"""
    assert run(small, python_source(PRELUDE + main)).code is None


def test_attention_masks_are_charged_as_long_as_their_tokens(small: Engine) -> None:
    main = """
async def main(input):
    codes = []
    kept = []
    for _ in range(100):
        ctx = context(1100)
        await ctx.flush()
        length = ctx.seq_len
        code = await code_in(ctx.forward().input([1] * 500).attention_mask([[0, 1] * 512] * 500).execute())
        assert ctx.seq_len == length + (500 if code is None else 0)
        codes.append(code)
        if code is not None:
            break
        kept.append(ctx)
    for other in kept:
        other.release()
    last = await code_in(ctx.forward().input([1] * 500).attention_mask([[0, 1] * 512] * 500).execute())
    return [codes[0], codes[-1], len(codes) < 50, last]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == [None, "limit-engine-memory", True, None], outcome.message


def test_tools_that_contexts_were_given_are_charged(small: Engine) -> None:
    main = """
async def main(input):
    tool = {"name": "look", "parameters": {"type": "object", "default": [[]] * 10_000}}
    kept, code = [], None
    while code is None and len(kept) < 400:
        ctx = context()
        kept.append(ctx)
        for _ in range(4):
            # Behind other tokens they are given anew, and those before stay.
            code = code or code_of(lambda: ctx.append([5]).equip([tool]))
    n_kept = len(kept)
    for other in kept:
        other.release()
    return [code, 4 < n_kept < 400, code_of(lambda: context().equip([tool]))]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == ["limit-engine-memory", True, None], outcome.message


def test_a_probe_that_is_refused_leaves_nothing(small: Engine) -> None:
    main = """
async def main(input):
    g = context().generate(Sampler.argmax(), max_tokens=3)
    fillers = []
    first = g.probe_each_step(0, Entropy())
    while True:
        other = context().generate(Sampler.argmax())
        code = None
        for _ in range(100):
            code = code_of(lambda: other.probe_each_step(0, Logits()))
            if code is not None:
                break
        fillers.append(other)
        if code is not None:
            break
    step = await anext(g)
    refused = [code_of(lambda: g.probe_each_step(0, Logits()))]
    n_own = 0
    while refused[-1] is not None and len(refused) < 2:
        code = code_of(lambda: step.probe(0, Logits()))
        n_own += code is None
        if code is not None:
            refused.append(code)
    del fillers, other
    own = step.probe(0, Logprob(7))
    out = await step.execute()
    return [refused, out.entropy(first) is not None, len(out.logprobs(own)), len(out.raw.slots) - n_own]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == [["limit-engine-memory"] * 2, True, 1, 3], outcome.message
