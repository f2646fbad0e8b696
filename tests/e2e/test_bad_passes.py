"""Every kind of bad input to passes, in JavaScript and Rust: a code, the same in both, and the context as before."""

from __future__ import annotations

import pytest

from pie.engine import Engine
from pie.programs import load_program
from support.launching import ROOT, run, typescript_source

# `ctx` has 18 tokens in pages and 2 in its buffer. Each is the body of a function that must throw.
PROGRAM = """
import { Adapter, Context, Distribution, Entropy, InferletError, Logprob, Model, Sampler, brle } from 'inferlet';

async function attempt(ctx: Context, model: Model): Promise<unknown> {
  const fwd = ctx.forward();
  {body}
}

export async function main(): Promise<unknown> {
  const model = Model.load('default');
  const ctx = new Context(model).append(Array.from({ length: 18 }, (_, n) => n));
  await ctx.flush();
  ctx.append([1, 2]);
  let code;
  try {
    await attempt(ctx, model);
  } catch (error) {
    code = (error as InferletError).code;
  }
  return [code, ctx.seqLen, ctx.buffer()];
}
"""

CASES = {
    "index": ("fwd.input([3]).sample([1], Sampler.argmax()); await fwd.execute()", "invalid-argument"),
    "buffered index": ("fwd.probe(2, Entropy()); await fwd.execute()", "invalid-argument"),
    "lengths": ("fwd.inputAt([1, 2], [1])", "invalid-argument"),
    "rows": ("await fwd.input([1, 2]).attentionMask([[]]).execute()", "invalid-argument"),
    "token": ("fwd.input([4096])", "invalid-token"),
    "probed token": ("fwd.probe(0, Logprob(4096))", "invalid-token"),
    "temperature": ("fwd.sample([0], Sampler.topP(NaN, 0.9))", "invalid-sampler"),
    "endless temperature": ("fwd.sample([0], Sampler.topK(Infinity, 5))", "invalid-sampler"),
    "share": ("fwd.sample([0], Sampler.topP(1, NaN))", "invalid-sampler"),
    "probed temperature": ("fwd.probe(0, Distribution(NaN, 1))", "invalid-probe"),
    "k": ("fwd.sample([0], Sampler.topK(1, 0))", "invalid-sampler"),
    "draws": ("fwd.sample([0], Sampler.multinomial(1, 0))", "invalid-sampler"),
    "nothing allowed": ("fwd.mask([4096])", "invalid-argument"),
    "nothing seen": ("await fwd.input([1]).attentionMask([[21]]).execute()", "invalid-argument"),
    "long mask": ("fwd.mask([0, 4097])", "invalid-argument"),
    "many runs": ("fwd.mask(new Uint32Array(1_000_000))", "invalid-argument"),
    "position": ("fwd.inputAt([1], [2048])", "invalid-argument"),
    "length": ("await fwd.input(new Uint32Array(2048)).execute()", "context-full"),
    "truncate": ("ctx.truncate(3)", "truncate-range"),
    "in flight": (
        "const fork = ctx.fork(); await Promise.all([1, 2].map((token) => fork.forward().input([token]).execute()))",
        "context-busy",
    ),
    "perturbed": ("await fwd.input([1]).zoSeed(3).execute()", "invalid-argument"),
    "adapter": ("Adapter.create(model, 'a')", "unsupported"),
    "nothing": ("await new Context(model).forward().execute()", "invalid-argument"),
    "twice": ("const f = ctx.fork().forward().input([1]); await f.execute(); await f.execute()", "invalid-argument"),
    "row": ("brle.shortest([1], 0)", "invalid-argument"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_has_its_code_in_javascript(dummy: Engine, name: str) -> None:
    body, code = CASES[name]
    outcome = run(dummy, typescript_source(PROGRAM.replace("{body}", body)))
    assert outcome.value == [code, 18, [1, 2]], outcome.message


@pytest.mark.parametrize("name", CASES)
def test_bad_input_has_the_same_code_in_rust(dummy: Engine, name: str) -> None:
    outcome = run(dummy, load_program(ROOT / "build/programs/passes.wasm"), f"bad {name}")
    assert outcome.value == [CASES[name][1], 18, [1, 2]], outcome.message


@pytest.mark.parametrize("body", ["ctx.release(); ctx.forward()", "ctx.release(); await fwd.input([1]).execute()"])
def test_use_after_release(dummy: Engine, body: str) -> None:
    source = PROGRAM.replace("{body}", body).replace("[code, ctx.seqLen, ctx.buffer()]", "code")
    assert run(dummy, typescript_source(source)).value == "context-released"


@pytest.mark.parametrize("call", ["ctx.forward().mask(runs)", "brle.shortest(runs, 4096)"])
def test_ten_million_runs_do_not_fit_a_call(dummy: Engine, call: str) -> None:
    body = f"const runs = new Uint32Array(10_000_000); {call}"
    assert run(dummy, typescript_source(PROGRAM.replace("{body}", body))).code == "limit-message"
