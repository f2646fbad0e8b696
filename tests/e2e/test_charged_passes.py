"""What passes and steps hold is charged to their user. What has no room is refused and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from support.engines import started
from support.launching import python_source, run, typescript_source

# A row of the dummy driver has 4,096 logits, 16 KiB. One user may hold some seventy MiB of this.
MEMORY_BYTES = 256 << 20

PRELUDE = """
import asyncio
from inferlet import *
from inferlet.errors import InferletError

# Memory that a program asks for and does not touch: a list of 3 Mi pointers of 4 bytes, which turns out empty.
class Room:
    def __iter__(self):
        return iter(())

    def __length_hint__(self):
        return 3 << 20

# What a program grows by and what it touches for the first time is charged too: the larger of the two. So it has room
# of its own before it fills what there is, and what it touches then counts for nothing.
list(Room())

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


@pytest.mark.rows("PY-083 PY-086 PY-105")
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


# Arrays cross as they are: a list of as many numbers is long to make where others want the processor.
REPLACED = """
import { Context, Model, runtime } from 'inferlet';

export async function main() {
  const fwd = new Context(Model.load(runtime.models()[0])).append([0, 1, 2, 3]).forward().input([5]);
  const [seen, drawn] = [new Uint32Array(2000).fill(1), new Uint32Array(4000).fill(1)];
  for (let n = 0; n < 3000; n++) fwd.attentionMask([seen]).mask(drawn);
  await fwd.attentionMask([[]]).execute();
}
"""


@pytest.mark.rows("JS-084..085")
def test_masks_that_are_replaced_are_given_back(small: Engine) -> None:
    outcome = run(small, typescript_source(REPLACED))
    assert outcome.code is None, outcome.message


@pytest.mark.rows("PY-023 PY-026 PY-080")
def test_attention_masks_are_charged_as_long_as_their_tokens(small: Engine) -> None:
    main = """
async def masked(ctx):
    await ctx.forward().input([1] * 500).attention_mask([[0, 1] * 512] * 500).execute()

async def main(input):
    ctx, other = context(1100), context(1100)
    await ctx.flush()
    await other.flush()
    await masked(ctx)
    # Each fork has the masks of its tokens.
    forks, code = [], None
    while code is None and len(forks) < 100:
        code = code_of(lambda: forks.append(ctx.fork()))
    refused = await code_in(masked(other))
    kept = other.seq_len
    for fork in forks:
        fork.release()
    await masked(other)
    return [code, 10 < len(forks) < 50, refused, other.seq_len - kept]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == ["limit-engine-memory", True, "limit-engine-memory", 500], outcome.message


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


@pytest.mark.rows("PY-022 PY-024 PY-080")
def test_a_snapshot_is_charged_with_the_masks_of_its_tokens(small: Engine) -> None:
    main = """
async def main(input):
    ctx = context(1100)
    await ctx.flush()
    await ctx.forward().input([1] * 500).attention_mask([[0, 1] * 512] * 500).execute()
    codes, n = [], 0
    while n < 100 and not codes:
        code = code_of(lambda: ctx.save(f"masked {n}"))
        if code is not None:
            codes.append(code)
        n += 1
    for index in range(n - 1):
        Context.delete(ctx.model, f"masked {index}")
    plain = context(1600)
    for index in range(100):
        plain.save(f"plain {index}")
    return [codes, 1 < n < 50]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == [["limit-engine-memory"], True], outcome.message


@pytest.mark.rows("PY-064 PY-073 PY-106 PY-108")
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
    refused = [code_of(lambda: g.probe_each_step(0, Logits()))]
    # What is left has room for a half of one of these.
    codes = [code_of(lambda: g.probe_each_step(0, Distribution(1.0, 1 << n))) for n in reversed(range(12))]
    n_more = codes.count(None)
    step = await anext(g)
    n_own = 0
    while refused[-1] is not None and len(refused) < 2:
        code = code_of(lambda: step.probe(0, Logits()))
        n_own += code is None
        if code is not None:
            refused.append(code)
    del fillers, other
    own = step.probe(0, Logprob(7))
    out = await step.execute()
    return [refused, out.entropy(first) is not None, len(out.logprobs(own)), len(out.raw.slots) - n_own - n_more]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == [["limit-engine-memory"] * 2, True, 1, 3], outcome.message


@pytest.mark.rows("PY-064 PY-073")
def test_what_one_step_reads_is_charged_until_the_next_is_opened(small: Engine) -> None:
    main = """
async def main(input):
    g = context().generate(Sampler.argmax(), max_tokens=3)
    step = await anext(g)
    for _ in range(30):
        step.probe(0, Logits())
    fillers = []

    def fill():
        code = None
        while code is None:
            fillers.append(context().generate(Sampler.argmax()))
            for _ in range(100):
                code = code_of(lambda: fillers[-1].probe_each_step(0, Logits()))
                if code is not None:
                    break
        return code

    before = [fill()]
    # The answer takes room in the program.
    del fillers[:4]
    await step.execute()
    before.append(fill())
    step = await anext(g)
    after = [code_of(lambda: fillers[-1].probe_each_step(0, Logits())) for _ in range(10)]
    return [before, after]
"""
    outcome = run(small, python_source(PRELUDE + main))
    assert outcome.value == [["limit-engine-memory"] * 2, [None] * 10], outcome.message
