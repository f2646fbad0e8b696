"""The snippets of the reference documents on steps, constraints and speculators, as printed, and what their rules
promise, on the dummy driver.
"""

from __future__ import annotations

import json

import pytest

from pie.engine import Engine
from support.launching import Outcome, finish, python_source, run

PRELUDE = """
import asyncio
from inferlet import *
model = Model.load(runtime.models()[0])
def context():
    return Context(model).append([11, 12])
"""


def succeed(engine: Engine, program: str) -> Outcome:
    outcome = run(engine, python_source(PRELUDE + program), seed=7)
    assert outcome.code is None, outcome.traceback
    return outcome


@pytest.mark.rows("PY-064..066 PY-070..075 PY-095")
def test_steps_with_probes_and_tokens_by_hand(dummy: Engine) -> None:
    program = """
async def main(input):
    plain = await context().generate(Sampler.argmax(), max_tokens=4).collect_tokens()
    g = context().generate(Sampler.argmax(), max_tokens=4)
    probe = g.probe_each_step(0, Distribution(1.0, 1))
    by_hand = []
    async for step in g:
        extra = step.probe(0, Logprob(plain[len(by_hand)]))
        step.clear_sampler()
        out = await step.execute()
        ids, probs = out.distribution(probe)
        by_hand += g.accept(ids)
        assert out.auto_sampler is None and out.tokens == [] and len(out.logprobs(extra)) == 1
    return [plain, by_hand, g.tokens_generated, g.is_done, g.finish_reason]
"""
    plain, by_hand, *rest = succeed(dummy, program).value
    assert (by_hand, rest) == (plain, [4, True, "length"])


@pytest.mark.rows("PY-048 PY-117")
def test_the_constraint_of_the_reference(dummy: Engine) -> None:
    program = """
class MyConstraint:
    def step(self, accepted: list[int]) -> list[int]:
        return []

async def main(input):
    async def collect(**options):
        return await context().generate(Sampler.top_p(0.6, 0.95), max_tokens=6, seed=1, **options).collect_tokens()
    return [await collect(), await collect(constrain=MyConstraint()), await collect(constrain=[MyConstraint(), MyConstraint()])]
"""
    assert len(set(map(tuple, succeed(dummy, program).value))) == 1


@pytest.mark.rows("PY-050 PY-133..138")
def test_the_speculator_of_the_reference(dummy: Engine) -> None:
    program = """
from inferlet.spec import Speculator

class MySpec:
    def draft(self) -> tuple[list[int], list[int]]:
        return [], []
    def accept(self, tokens: list[int]) -> None:
        return None
    def rollback(self, n: int) -> None:
        return None
    def reset(self) -> None:
        return None

async def main(input):
    assert isinstance(MySpec(), Speculator)
    async def collect(**options):
        return await context().generate(Sampler.top_p(0.6, 0.95), max_tokens=6, seed=1, **options).collect_tokens()
    return [await collect(), await collect(speculator=MySpec()), await collect(system_speculation=True)]
"""
    assert len(set(map(tuple, succeed(dummy, program).value))) == 1


# Each makes a generator over `ctx` that the engine cannot run alone, and that draws what a plain one draws.
ASKED = {
    "constraint": "constrain=Free()",
    "speculator": "speculator=Wrong(ctx)",
    "both": "constrain=Free(), speculator=Wrong(ctx)",
}


@pytest.mark.rows("PY-048 PY-050 PY-067..068 PY-070 OLD-050..053")
@pytest.mark.parametrize("name", ASKED)
def test_every_way_to_run_a_generator_gives_the_same_tokens(dummy: Engine, name: str) -> None:
    program = """
class Free:
    def step(self, accepted): pass
class Wrong:
    def __init__(self, ctx): self.ctx = ctx
    def draft(self):
        start = self.ctx.seq_len + len(self.ctx.buffer())
        return [1, 2, 3], range(start, start + 3)
    def accept(self, tokens): pass
def generate(asked):
    ctx = context()
    options = dict(max_tokens=7, seed=3)
    return ctx.generate(Sampler.top_k(1.0, 40), **options, {options}) if asked else ctx.generate(Sampler.top_k(1.0, 40), **options)
async def new(asked):
    stepped = [token async for step in generate(asked) for token in (await step.execute()).tokens]
    return [await generate(asked).collect_text(), await generate(asked).collect_tokens(), stepped]
def old(asked):
    g = generate(asked)
    return [generate(asked).text(), generate(asked).tokens(), [token for tokens in g for token in tokens]]
session.send([[old(asked), asyncio.run(new(asked))] for asked in (False, True)])
"""
    outcome = succeed(dummy, program.replace("{options}", ASKED[name]))
    plain, asked = json.loads(outcome.text)
    assert plain[0] == plain[1] == asked[0] == asked[1]


THROWING = """
class Mine(Exception): pass
class Throws:
    def __init__(self, at): self.n, self.at = 0, at
    def step(self, accepted):
        self.n += 1
        if self.n == self.at: raise Mine(accepted)
        return []
class Bad:
    def draft(self): raise Mine("draft")
    def accept(self, tokens): pass
async def main(input):
    ctx = context()
    g = ctx.generate(Sampler.argmax(), max_tokens=6, {options})
    try:
        await g.{collect}()
    except Mine as error:
        found = str(error)
    before = [ctx.seq_len, ctx.buffer(), g.tokens_generated]
    rest = await ctx.generate(Sampler.argmax(), max_tokens=6 - before[2]).collect_tokens()
    return [found, before, rest]
"""


@pytest.mark.rows("PY-048 PY-050 PY-067..068")
@pytest.mark.parametrize("collect", ["collect_tokens", "collect_text"])
@pytest.mark.parametrize(("options", "n"), [("constrain=Throws(1)", 0), ("constrain=Throws(3)", 2), ("speculator=Bad()", 0)])
def test_what_is_thrown_comes_out_and_the_context_is_as_before(dummy: Engine, options: str, n: int, collect: str) -> None:
    found, before, rest = succeed(dummy, THROWING.replace("{options}", options).replace("{collect}", collect)).value
    plain = succeed(dummy, "async def main(input): return await context().generate(Sampler.argmax(), max_tokens=6).collect_tokens()").value
    assert found == ("draft" if "Bad" in options else str(plain[n - 1 : n] if n else []))
    assert before == [2 + n if n else 0, [] if n else [11, 12], n]
    assert rest == plain[n:]


def test_a_constraint_does_not_hold_others_up(dummy: Engine) -> None:
    program = """
class Free:
    def step(self, accepted): return [0, 4096]
async def main(input):
    async def one(n, **options):
        return await Context(model).append([n]).generate(Sampler.argmax(), max_tokens=5, **options).collect_tokens()
    together = await asyncio.gather(*(one(n, **({"constrain": Free()} if n % 2 else {})) for n in range(6)))
    return [together, [await one(n) for n in range(6)]]
"""
    together, alone = succeed(dummy, program).value
    assert together == alone


# Each is the body of a function that must raise; `step` makes a constraint of masks, `drafts` a speculator.
BAD = {
    "a mask that forbids everything": ("ctx.generate(greedy, logit_mask=[4096])", "invalid-argument"),
    "a mask that is too long": ("ctx.generate(greedy, logit_mask=[0, 4097])", "invalid-argument"),
    "a constraint that forbids everything": ("await collect(constrain=Masks([4096]))", "invalid-argument"),
    "constraints that together forbid everything": ("await collect(constrain=[Masks([0, 5]), Masks([5, 5])])", "invalid-argument"),
    "a constraint that forbids what the options allow": ("await collect(constrain=Masks([0, 5]), logit_mask=[5, 5])", "invalid-argument"),
    "a constraint whose mask is too long": ("await collect(constrain=Masks([0, 4097]))", "invalid-argument"),
    "a constraint whose mask has a million runs": ("await collect(constrain=Masks([0] * 1_000_000))", "invalid-argument"),
    "a constraint whose mask is a text": ("await collect(constrain=Masks('abc'))", "invalid-argument"),
    "a constraint that is none": ("ctx.generate(greedy, constrain=5)", "invalid-argument"),
    "a probe of a row that there is not": ("(await opened()).probe(1, Entropy()); await step.execute()", "invalid-argument"),
    "a probe of every step out of its range": ("g.probe_each_step(0, Distribution(0.0, 1))", "invalid-probe"),
    "drafts at other positions": ("await collect(speculator=Drafts([1, 2], [20, 22]))", "invalid-argument"),
    "drafts behind a gap": ("await collect(speculator=Drafts([1], [21]))", "invalid-argument"),
    "more drafts than positions": ("await collect(speculator=Drafts([1, 2], [20]))", "invalid-argument"),
    "drafts outside of the vocabulary": ("await collect(speculator=Drafts([4096], [20]))", "invalid-token"),
    "a speculator that drafts thousands": ("await collect(speculator=Drafts([1] * 5000, range(20, 5020)))", "invalid-argument"),
    "who speculates twice": ("ctx.generate(greedy, speculator=Drafts([], []), system_speculation=True)", "invalid-argument"),
    "a horizon of 0": ("g.horizon(0)", "invalid-argument"),
    "perturbing without an adapter": ("await collect(zo_seed=3)", "invalid-argument"),
    "accept before a step": ("g.accept([1])", "step-pending"),
    "accept outside of the vocabulary": ("g.accept([4096])", "invalid-token"),
    "a step in flight": (
        "f = ctx.fork(); h = f.generate(greedy, max_tokens=9); s = await anext(h); await asyncio.gather(s.execute(), f.flush())",
        "context-busy",
    ),
    "a generator that was retired": ("h = ctx.generate(greedy); ctx.generate(greedy); await h.collect_tokens()", "generator-retired"),
}
BAD_PROGRAM = """
greedy = Sampler.argmax()
class Masks:
    def __init__(self, mask): self.mask = mask
    def step(self, accepted): return self.mask
class Drafts:
    def __init__(self, tokens, positions): self.drafted = tokens, positions
    def draft(self): return self.drafted
    def accept(self, tokens): pass

async def attempt(ctx):
    g = ctx.generate(greedy, max_tokens=3)
    async def collect(**options):
        return await ctx.generate(greedy, max_tokens=3, **options).collect_tokens()
    step = None
    async def opened():
        nonlocal step
        step = await anext(g)
        return step
    {body}

async def main(input):
    ctx = Context(model).append(range(18))
    await ctx.flush()
    ctx.append([1, 2])
    code = None
    try:
        await attempt(ctx)
    except InferletError as error:
        code = error.code
    kept = [ctx.seq_len, ctx.buffer()] == [18, [1, 2]]
    after = await ctx.generate(greedy, max_tokens=3).collect_tokens()
    other = Context(model).append([*range(18), 1, 2])
    return [code, kept and after == await other.generate(greedy, max_tokens=3).collect_tokens()]
"""


@pytest.mark.rows("PY-048..050 PY-054 PY-056 PY-064 PY-073 PY-075 PY-117 PY-134")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_of_a_step_has_its_code_and_changes_nothing(dummy: Engine, name: str) -> None:
    body, code = BAD[name]
    assert succeed(dummy, BAD_PROGRAM.replace("{body}", body)).value == [code, True]


HANGING = {
    "constraint": ("limit-cpu", "constrain", "def step(self, accepted):\n        while True: pass"),
    "speculator": ("limit-cpu", "speculator", "def draft(self):\n        while True: pass\n    def accept(self, tokens): pass"),
    "endless drafts": (
        "invalid-argument",
        "speculator",
        "def draft(self): return itertools.repeat(1), itertools.count(2)\n    def accept(self, tokens): pass",
    ),
}


@pytest.mark.parametrize("name", HANGING)
def test_what_hangs_is_ended_and_others_go_on(dummy: Engine, name: str) -> None:
    code, option, methods = HANGING[name]
    hanging = f"import itertools\nclass Hanging:\n    {methods}\n"
    main = f"async def main(input): await context().generate(Sampler.argmax(), {option}=Hanging()).collect_tokens()"
    limits = {"cpu_s": 0.3} if code == "limit-cpu" else {}
    process = dummy.launch(python_source(PRELUDE + hanging + main), limits=limits)
    other = succeed(dummy, "async def main(input): return await context().generate(Sampler.argmax(), max_tokens=6).collect_tokens()")
    assert len(other.value) == 6
    assert finish(process).code == code
