"""What a program still uses stays: a generator keeps its context, and a promise keeps its generator."""

from __future__ import annotations

import pytest

from pie.engine import Engine
from support.launching import python_source, run, typescript_source

PYTHON = """
import asyncio
from inferlet import Context, Model, Sampler


async def main(input):
    model = Model.load("default")
    root = Context(model).user("hi")
    pending = root.fork().generate(Sampler.argmax(), max_tokens=8).collect_tokens()
    first = await Context(model).user("hi").generate(Sampler.argmax(), max_tokens=8).collect_tokens()
    step = await anext(Context(model).user("hi").generate(Sampler.argmax(), max_tokens=8))
    return [first, await pending, (await step.execute()).tokens]
"""
TYPESCRIPT = """
import { Context, Model, Sampler } from 'inferlet';

export async function main() {
  const model = Model.load('default');
  const root = new Context(model).user('hi');
  const pending = root.fork().generate(Sampler.argmax(), { maxTokens: 8 }).collectTokens();
  const first = await new Context(model).user('hi').generate(Sampler.argmax(), { maxTokens: 8 }).collectTokens();
  const { value: step } = await new Context(model).user('hi').generate(Sampler.argmax(), { maxTokens: 8 }).next();
  await new Context(model).user('hi').flush();
  const out = await step!.execute();
  return [Array.from(first), Array.from(await pending), Array.from(out.tokens)];
}
"""


@pytest.mark.parametrize("program", [python_source(PYTHON), typescript_source(TYPESCRIPT)], ids=["python", "typescript"])
def test_nothing_is_freed_while_it_is_awaited(dummy: Engine, program) -> None:
    outcome = run(dummy, program)
    assert outcome.code is None, outcome.message
    first, forked, step = outcome.value
    assert first == forked
    assert first[:1] == step
