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
import itertools
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

# The context that errs, where it is not `ctx`.
FORKS = []

def forked(ctx):
    FORKS.append(ctx.fork())
    return FORKS[-1]

def raise_first(done):
    for one in done:
        if isinstance(one, Exception): raise one

def state(ctx):
    try:
        return [ctx.seq_len, ctx.buffer()]
    except InferletError as error:
        return error.code

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
    return [error and error.code, error and error.message, state(ctx), *map(state, FORKS)]
"""

TYPESCRIPT = """
import {
  Adapter, Context, Distribution, Entropy, InferletError, Logprob, Model, Sampler, brle, type GenerateOptions,
  type Speculator, type Tokens,
} from 'inferlet';

function drafts(tokens: Tokens, positions: Iterable<number>): Speculator {
  return { draft: () => [tokens, positions], accept() {} };
}

function* numbers(): Generator<number> {
  for (;;) yield 0;
}

/** The context that errs, where it is not `ctx`. */
const forks: Context[] = [];

function forked(ctx: Context): Context {
  const fork = ctx.fork();
  forks.push(fork);
  return fork;
}

function throwFirst(done: PromiseSettledResult<unknown>[]): void {
  for (const one of done) if (one.status === 'rejected') throw one.reason;
}

function state(ctx: Context): unknown {
  try {
    return [ctx.seqLen, Array.from(ctx.buffer())];
  } catch (error) {
    return (error as InferletError).code;
  }
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
  return [failed?.code, failed?.message, state(ctx), ...forks.map(state)];
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
@pytest.mark.parametrize(
    ("name", "language"), [(name, language) for name, case in CASES.items() for language in case.get("languages", LANGUAGES)]
)
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
        code, message, untouched, *erred = outcome.value
        assert untouched == [18, [1, 2]]
        assert erred == ([case["erred"]] if "erred" in case else [])
    table.append((case["line"], language, str(code), str(message)))
    assert code == case["code"]
    assert message
    if "message" in case:
        # An error of Rust is a text that begins with the code.
        assert message.removeprefix(f"[{code}] ") == case["message"]


@pytest.mark.parametrize("body", ["ctx.release(); ctx.forward()", "ctx.release(); await fwd.input([1]).execute()"])
def test_use_after_release(dummy: Engine, body: str) -> None:
    source = TYPESCRIPT.replace("{body}", body).replace("[failed?.code, failed?.message, state(ctx), ...forks.map(state)]", "failed?.code")
    assert finish(dummy.launch(typescript_source(source), input={})).value == "context-released"


def test_ten_million_tokens_do_not_fit_a_call(dummy: Engine) -> None:
    body = "ctx.forward().input(new Uint32Array(10_000_000));"
    assert finish(dummy.launch(typescript_source(TYPESCRIPT.replace("{body}", body)), input={})).code == "limit-message"


PYTHON_THROWS = """
class Boom(Exception): pass
BOOM = Boom("of its own")

class Throws:
    def step(self, accepted): raise BOOM

async def attempt(ctx, model):
    for how in ("step", "collect_tokens", "collect_text"):
        g = ctx.generate(Sampler.argmax(), max_tokens=2, constrain=Throws())
        try:
            await ((await anext(g)).execute() if how == "step" else getattr(g, how)())
        except Boom as raised:
            assert raised is BOOM and state(ctx) == [18, [1, 2]], how
        else:
            raise AssertionError(how)
"""

TYPESCRIPT_THROWS = """
class Boom extends Error {}
const BOOM = new Boom('of its own');

async function attempt(ctx: Context, _model: Model): Promise<void> {
  const throws = { step(): never { throw BOOM; } };
  for (const how of ['step', 'collectTokens', 'collectText'] as const) {
    const g = ctx.generate(Sampler.argmax(), { maxTokens: 2, constrain: throws });
    let caught: unknown;
    try {
      await (how === 'step' ? (await g.next()).value!.execute() : g[how]());
    } catch (error) {
      caught = error;
    }
    const held = JSON.stringify(state(ctx));
    if (caught !== BOOM || held !== '[18,[1,2]]') throw new Error(`${how} gave ${caught} and ${held}`);
  }
}
"""


@pytest.mark.rows("JS-124 PY-117")
@pytest.mark.parametrize("language", ["python", "typescript"])
def test_what_a_constraint_throws_comes_out_as_it_is_and_changes_nothing(dummy: Engine, language: str) -> None:
    match language:
        case "python":
            before, _, after = PYTHON.partition("async def attempt(ctx, model):")
            source = python_source(before + PYTHON_THROWS + "\nasync def main" + after.partition("async def main")[2])
        case _:
            before, _, after = TYPESCRIPT.partition("async function attempt(")
            main = after.partition("export async function main")[2]
            source = typescript_source(before + TYPESCRIPT_THROWS + "\nexport async function main" + main)
    outcome = finish(dummy.launch(source, input={}))
    assert outcome.code is None, outcome.message
    assert outcome.value == [None, None, [18, [1, 2]]]


def test_a_constraint_that_panics_ends_its_program(dummy: Engine) -> None:
    outcome = finish(dummy.launch(load_program(ROOT / "build/programs/passes.wasm"), input="bad panics"))
    assert outcome.code == "trap"
    assert outcome.message is not None
    assert outcome.message.endswith(": of its own"), outcome.message
    assert "of its own" in "".join(outcome.stderr)


@pytest.mark.rows("JS-086")
def test_a_pass_draws_from_as_many_rows_as_it_may(dummy: Engine) -> None:
    body = "fwd.sample(new Uint32Array(65_536), Sampler.argmax()); fwd.sample([0], Sampler.argmax())"
    outcome = finish(dummy.launch(typescript_source(TYPESCRIPT.replace("{body}", body)), input={}))
    code, message, *_ = outcome.value
    assert code == "invalid-argument"
    assert message.startswith("a forward pass wants 65537 rows of logits"), message
