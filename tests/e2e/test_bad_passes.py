"""Every kind of bad input to passes and generators, in three languages: a code, the same in all, and the context as
before. The kinds stand in `bad_input.toml`; `pytest -s` prints them with their messages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pie.engine import Engine
from pie.programs import Component, Source, load_program
from support.launching import LANGUAGES, ROOT, finish, python_source, typescript_source

CASES: dict[str, dict[str, Any]] = {
    case["name"]: case for case in tomllib.loads((Path(__file__).parent / "bad_input.toml").read_text(encoding="utf-8"))["case"]
}

PYTHON = """
import asyncio
import math
from inferlet import *
from inferlet.adapter import Adapter
from inferlet.errors import InferletError

def forever():
    while True: pass

class Masks:
    def __init__(self, mask): self.mask = mask
    def step(self, accepted): return self.mask()

class Drafts:
    def __init__(self, tokens, positions): self.drafts = tokens, positions
    def draft(self): return self.drafts if self.drafts[0] is not None else forever()
    def accept(self, tokens): pass

async def stepped(ctx, **options):
    async for step in ctx.generate(Sampler.argmax(), max_tokens=2, **options):
        await step.execute()

async def attempt(ctx, model):
    fwd = ctx.forward()
    {body}

async def main(input):
    model = Model.load(runtime.models()[0])
    ctx = Context(model).append(range(18))
    await ctx.flush()
    ctx.append([1, 2])
    error = None
    try:
        await attempt(ctx, model)
    except InferletError as raised:
        error = raised
    return [error and error.code, error and error.message, ctx.seq_len, ctx.buffer()]
"""

TYPESCRIPT = """
import {
  Adapter, Context, Distribution, Entropy, InferletError, Logprob, Model, Sampler, brle, type GenerateOptions,
  type Speculator, type Tokens,
} from 'inferlet';

function drafts(tokens: Tokens, positions: Iterable<number>): Speculator {
  return { draft: () => [tokens, positions], accept() {} };
}

async function stepped(ctx: Context, options: GenerateOptions): Promise<void> {
  for await (const step of ctx.generate(Sampler.argmax(), { maxTokens: 2, ...options })) await step.execute();
}

async function attempt(ctx: Context, model: Model): Promise<unknown> {
  const fwd = ctx.forward();
  {body}
}

export async function main(): Promise<unknown> {
  const model = Model.load('default');
  const ctx = new Context(model).append(Array.from({ length: 18 }, (_, n) => n));
  await ctx.flush();
  ctx.append([1, 2]);
  let failed;
  try {
    await attempt(ctx, model);
  } catch (error) {
    failed = error as InferletError;
  }
  return [failed?.code, failed?.message, ctx.seqLen, ctx.buffer()];
}
"""


def program(name: str, language: str) -> tuple[Component | Source, str]:
    """What must fail, and its input."""
    case = CASES[name]
    match language:
        case "python":
            return python_source(PYTHON.replace("{body}", case["python"])), ""
        case "typescript":
            return typescript_source(TYPESCRIPT.replace("{body}", case["javascript"])), ""
        case _:
            return load_program(ROOT / "build/programs/passes.wasm"), f"bad {name}"


@pytest.fixture(scope="module")
def table() -> Iterator[list[tuple[str, str, str, str]]]:
    """Kinds of bad input with language, code and message, printed at the end."""
    rows: list[tuple[str, str, str, str]] = []
    yield rows
    print("\n| bad input | language | code | message |\n|---|---|---|---|")  # for whoever asks by -s
    for row in rows:
        print("|", " | ".join(row), "|")


@pytest.mark.rows("JS-082..087 PY-078..083 RS-089..094")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", CASES)
def test_bad_input_has_its_code_and_changes_nothing(
    dummy: Engine, name: str, language: str, table: list[tuple[str, str, str, str]]
) -> None:
    case = CASES[name]
    source, program_input = program(name, language)
    limits = {"cpu_s": 0.5} if case["code"] == "limit-cpu" else {}
    outcome = finish(dummy.launch(source, input=program_input or {}, limits=limits))
    if case.get("ends", False):
        code, message = outcome.code, outcome.message
    else:
        assert outcome.code is None, outcome.message
        code, message, *state = outcome.value
        assert state == [18, [1, 2]]
    table.append((case["line"], language, str(code), str(message)))
    assert code == case["code"]
    assert message


@pytest.mark.parametrize("body", ["ctx.release(); ctx.forward()", "ctx.release(); await fwd.input([1]).execute()"])
def test_use_after_release(dummy: Engine, body: str) -> None:
    source = TYPESCRIPT.replace("{body}", body).replace("[failed?.code, failed?.message, ctx.seqLen, ctx.buffer()]", "failed?.code")
    assert finish(dummy.launch(typescript_source(source), input={})).value == "context-released"


@pytest.mark.parametrize("call", ["ctx.forward().input(runs)", "brle.shortest(runs, 4096)"])
def test_ten_million_runs_do_not_fit_a_call(dummy: Engine, call: str) -> None:
    body = f"const runs = new Uint32Array(10_000_000); {call}"
    assert finish(dummy.launch(typescript_source(TYPESCRIPT.replace("{body}", body)), input={})).code == "limit-message"


@pytest.mark.rows("JS-086")
def test_a_pass_draws_from_as_many_rows_as_it_may(dummy: Engine) -> None:
    body = "fwd.sample(new Uint32Array(65_536), Sampler.argmax()); fwd.sample([0], Sampler.argmax())"
    outcome = finish(dummy.launch(typescript_source(TYPESCRIPT.replace("{body}", body)), input={}))
    code, message, *_ = outcome.value
    assert code == "invalid-argument"
    assert message.startswith("a forward pass wants 65537 rows of logits"), message
