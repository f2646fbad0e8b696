"""A message that is appended while a step runs lies behind the step's token, as if it had been appended afterwards."""

from __future__ import annotations

import pytest

from pie.engine import Engine
from support.launching import python_source, run

PROGRAM = python_source("""
import asyncio
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.user("Hello!")
    g = ctx.generate(Sampler.top_p(1.0, 0.9), max_tokens=8, seed=1)
    for _ in range(3):
        step = await anext(g)
        await step.execute()
    step = await anext(g)
    running = asyncio.ensure_future(step.execute())
    await asyncio.sleep(0)
    if input["meanwhile"]:
        ctx.user("And now?")
    out = await running
    if not input["meanwhile"]:
        ctx.user("And now?")
    ctx.user("Again?").cue()
    return [out.tokens, ctx.seq_len, ctx.buffer()]
""")


def test_a_message_meanwhile_lies_behind_the_token(dummy: Engine) -> None:
    meanwhile = run(dummy, PROGRAM, {"meanwhile": True})
    assert meanwhile.code is None, meanwhile.message
    afterwards = run(dummy, PROGRAM, {"meanwhile": False})
    assert meanwhile.value == afterwards.value


RAW = python_source("""
from inferlet import Context, Model, chat


async def main(input):
    model = Model.load("default")
    ctx = Context(model).user("Hello!")
    if input["passed"]:
        await ctx.flush()
        await ctx.forward().input(chat.cue(model)).execute()
    else:
        ctx.append(chat.cue(model))
    ctx.append([50, 51]).user("And now?")
    return ctx.seq_len + len(ctx.buffer())
""")


@pytest.mark.rows("PY-029 PY-078")
def test_a_cue_that_goes_through_a_pass_opens_the_turn(dummy: Engine) -> None:
    """What the program appended behind it is closed before the next message, as behind a cue that it appended."""
    passed, appended = (run(dummy, RAW, {"passed": passed}).value for passed in (True, False))
    assert passed == appended
    assert isinstance(passed, int)


@pytest.mark.parametrize("meanwhile", [True, False])
def test_it_repeats(dummy: Engine, meanwhile: bool) -> None:
    first, second = (run(dummy, PROGRAM, {"meanwhile": meanwhile}, seed=3).value for _ in range(2))
    assert first == second
