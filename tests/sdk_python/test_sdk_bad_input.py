"""Every kind of bad input to passes and generators: a typed error at the earliest moment, and the context as before."""

from __future__ import annotations

import pytest

from pie.engine import Engine
from support.launching import python_source, run

# `ctx` has 18 tokens in pages and 2 in its buffer. Each is the body of a function that must raise.
PROGRAM = """
import asyncio
import math
from inferlet import *
from inferlet.errors import InferletError

async def attempt(ctx, model):
    fwd = ctx.forward()
    {body}

async def main(input):
    model = Model.load(runtime.models()[0])
    ctx = Context(model).append(range(18))
    await ctx.flush()
    ctx.append([1, 2])
    code = None
    try:
        await attempt(ctx, model)
    except InferletError as error:
        code = error.code
    if {released}:
        return [code, True]
    kept = [ctx.seq_len, ctx.buffer()] == [18, [1, 2]]
    after = await ctx.generate(Sampler.argmax(), max_tokens=3).collect_tokens()
    other = Context(model).append([*range(18), 1, 2])
    return [code, kept and after == await other.generate(Sampler.argmax(), max_tokens=3).collect_tokens()]
"""

CASES = {
    "an index past the input": ("fwd.input([3]).sample([1], Sampler.argmax()); await fwd.execute()", "invalid-argument"),
    "an index past the buffer": ("fwd.probe(2, Entropy()); await fwd.execute()", "invalid-argument"),
    "the largest index": ("fwd.input([3]).probe(2**32 - 1, Entropy()); await fwd.execute()", "invalid-argument"),
    "a negative index": ("fwd.probe(-1, Entropy())", "invalid-argument"),
    "unequal lengths": ("fwd.input_at([1, 2], [1])", "invalid-argument"),
    "too few attention masks": ("await fwd.input([1, 2]).attention_mask([[]]).execute()", "invalid-argument"),
    "an id outside the vocabulary": ("fwd.input([4096])", "invalid-token"),
    "a probe of an id outside the vocabulary": ("fwd.probe(0, Logprob(4096))", "invalid-token"),
    "a temperature that is not a number": ("fwd.sample([0], Sampler.top_p(math.nan, 0.9))", "invalid-sampler"),
    "an infinite temperature": ("fwd.sample([0], Sampler.top_k(math.inf, 5))", "invalid-sampler"),
    "a share that is not a number": ("fwd.sample([0], Sampler.top_p(1.0, math.nan))", "invalid-sampler"),
    "a probe of an infinite temperature": ("fwd.probe(0, Distribution(math.inf, 1))", "invalid-probe"),
    "a probe of a temperature that is not a number": ("fwd.probe(0, Distribution(math.nan, 1))", "invalid-probe"),
    "a probe of a temperature of 0": ("fwd.probe(0, Distribution(0.0, 1))", "invalid-probe"),
    "k = 0": ("fwd.sample([0], Sampler.top_k(1.0, 0))", "invalid-sampler"),
    "a negative k": ("fwd.probe(0, Distribution(1.0, -1))", "invalid-probe"),
    "negative draws": ("fwd.sample([0], Sampler.multinomial(1.0, -1))", "invalid-sampler"),
    "no draws": ("fwd.sample([0], Sampler.multinomial(1.0, 0))", "invalid-sampler"),
    "too many draws": ("fwd.sample([0], Sampler.multinomial(1.0, 2**32 - 1))", "invalid-sampler"),
    "a mask that forbids everything": ("fwd.mask([4096])", "invalid-argument"),
    "an attention mask that forbids everything": ("await fwd.input([1]).attention_mask([[21]]).execute()", "invalid-argument"),
    "an attention mask that shows only what is behind": (
        "await fwd.input([1, 2]).attention_mask([[21, 1], []]).execute()",
        "invalid-argument",
    ),
    "a mask that is too long": ("fwd.mask([0, 4097])", "invalid-argument"),
    "an attention mask that is too long": ("await fwd.input([1]).attention_mask([[0, 22]]).execute()", "invalid-argument"),
    "a mask of a million runs": ("fwd.mask([0] * 1_000_000)", "invalid-argument"),
    "an attention mask of a million runs": ("await fwd.input([1]).attention_mask([[0] * 1_000_000]).execute()", "invalid-argument"),
    "a mask of more than all numbers": ("fwd.mask([2**32 - 1] * 3)", "invalid-argument"),
    "a mask that is no list": ("fwd.mask('abc')", "invalid-argument"),
    "a position beyond the limit": ("fwd.input_at([1], [2048])", "invalid-argument"),
    "more tokens than the context takes": ("await fwd.input([1] * 2048).execute()", "context-full"),
    "truncate into committed pages": ("ctx.truncate(3)", "truncate-range"),
    "a pass in flight": (
        "fork = ctx.fork(); await asyncio.gather(*(fork.forward().input([1]).execute() for _ in range(2)))",
        "context-busy",
    ),
    "perturbing without an adapter": ("await fwd.input([1]).zo_seed(3).execute()", "invalid-argument"),
    "nothing to compute": ("await Context(model).forward().execute()", "invalid-argument"),
    "executing twice": ("f = ctx.fork().forward().input([1]); await f.execute(); await f.execute()", "invalid-argument"),
    "a row of no length": ("brle.shortest([1], 0)", "invalid-argument"),
    "a row that is too long": ("brle.shortest([1], 2**32 - 1)", "invalid-argument"),
}


def source(body: str, *, released: bool = False) -> str:
    return PROGRAM.replace("{body}", body).replace("{released}", str(released))


@pytest.mark.rows("PY-078..083 PY-085..086 PY-098..099 PY-102 PY-105..106")
@pytest.mark.parametrize("name", CASES)
def test_bad_input_of_a_pass_has_its_code_and_changes_nothing(dummy: Engine, name: str) -> None:
    body, code = CASES[name]
    outcome = run(dummy, python_source(source(body)))
    assert outcome.code is None, outcome.traceback
    assert outcome.value == [code, True]


@pytest.mark.parametrize("body", ["ctx.release(); ctx.forward()", "ctx.release(); fwd.input([1]); await fwd.execute()"])
def test_use_after_release(dummy: Engine, body: str) -> None:
    outcome = run(dummy, python_source(source(body, released=True)))
    assert outcome.value == ["context-released", True]


@pytest.mark.parametrize("call", ["ctx.forward().mask", "lambda runs: brle.shortest(runs, 4096)"])
def test_ten_million_runs_are_more_than_a_row_takes(dummy: Engine, call: str) -> None:
    outcome = run(dummy, python_source(source(f"({call})([0] * 10_000_000)")))
    assert outcome.code is None, outcome.traceback
    assert outcome.value == ["invalid-argument", True]


def test_ten_million_tokens_do_not_fit_a_call(dummy: Engine) -> None:
    outcome = run(dummy, python_source(source("ctx.forward().input([0] * 10_000_000)")))
    assert outcome.code == "limit-message"
