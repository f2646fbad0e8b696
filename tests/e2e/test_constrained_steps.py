"""Steps beside a constraint that draw nothing, or that are refused: the error of the step is not hidden by its mask."""

from __future__ import annotations

import pytest

from pie.engine import Engine
from support.launching import finish, python_source, run, typescript_source

PROMPT = list(range(5, 15))
PYTHON = f"""
from inferlet import Context, Distribution, InferletError, Model, Sampler


class Few:
    def step(self, accepted):
        return [0, 40]


async def main(kind):
    ctx = Context(Model.load("default")).append({PROMPT})
    generator = ctx.generate(Sampler.argmax(), max_tokens=4, constrain=Few())
    if kind == "cleared":
        async for step in generator:
            step.clear_sampler()
            best = step.probe(0, Distribution(1.0, 1))
            generator.accept((await step.execute()).distribution(best)[0])
        return generator.tokens_generated
    try:
        if kind == "probe":
            async for step in generator:
                step.probe(1, Distribution(1.0, 1))
                await step.execute()
        return await generator.collect_tokens()
    except InferletError as error:
        return f"{{error.code}}: {{error}}"
"""
TYPESCRIPT = f"""
import {{ Context, Distribution, InferletError, Model, Sampler }} from 'inferlet';

export async function main(kind: string): Promise<unknown> {{
  const ctx = new Context(Model.load('default')).append({PROMPT});
  const generator = ctx.generate(Sampler.argmax(), {{ maxTokens: 4, constrain: {{ step: () => [0, 40] }} }});
  if (kind === 'cleared') {{
    for await (const step of generator) {{
      step.clearSampler();
      const best = step.probe(0, Distribution(1.0, 1));
      generator.accept((await step.execute()).distribution(best)![0]);
    }}
    return generator.tokensGenerated;
  }}
  try {{
    if (kind === 'probe') {{
      for await (const step of generator) {{
        step.probe(1, Distribution(1.0, 1));
        await step.execute();
      }}
    }}
    return Array.from(await generator.collectTokens());
  }} catch (error) {{
    if (!(error instanceof InferletError)) throw error;
    return `${{error.code}}: ${{error.message}}`;
  }}
}}
"""
PROGRAMS = {"python": python_source(PYTHON), "typescript": typescript_source(TYPESCRIPT)}


@pytest.mark.rows("JS-051 JS-076 PY-048 PY-072")
@pytest.mark.parametrize("language", PROGRAMS)
def test_a_step_whose_sampler_is_cleared_takes_no_mask(dummy: Engine, language: str) -> None:
    assert run(dummy, PROGRAMS[language], "cleared").value == 4


@pytest.mark.rows("JS-051 JS-077..078 PY-048 PY-073..074")
@pytest.mark.parametrize("language", PROGRAMS)
def test_a_step_that_is_refused_says_why(dummy: Engine, language: str) -> None:
    told = finish(dummy.launch(PROGRAMS[language], input="budget", token_budget=len(PROMPT) + 2)).value
    assert told.startswith("token-budget: ")
    told = run(dummy, PROGRAMS[language], "probe").value
    assert told.startswith("invalid-argument: row 1 of a step is read"), told


MASKS = """
from inferlet import Context, InferletError, Model, Sampler
from inferlet.errors import host


class Few:
    def step(self, accepted):
        return [0, 40]


async def main(input):
    ctx = Context(Model.load("default")).append([5, 6, 7])
    generator = ctx.generate(Sampler.argmax(), max_tokens=4, constrain=Few())
    told = []

    def give():
        try:
            host(generator._raw.give_mask, [0, 40])
            told.append(None)
        except InferletError as error:
            told.append(error.code)

    give()
    step = await anext(generator)
    give()
    await step.execute()
    give()
    # One that is given up is as one that was never run.
    await anext(generator)
    with generator._raw.step():
        pass
    give()
    await anext(generator)
    step = generator._raw.step()
    give()
    give()
    return told
"""


@pytest.mark.rows("PY-048 PY-117")
def test_a_mask_is_for_the_step_that_runs(dummy: Engine) -> None:
    pending = "step-pending"
    assert run(dummy, python_source(MASKS)).value == [pending, pending, pending, pending, None, "invalid-argument"]
