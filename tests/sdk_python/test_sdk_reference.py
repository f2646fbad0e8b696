"""The snippets of the reference documents on forward passes, probes, generators, constraints and speculators, as
printed.
"""

from __future__ import annotations

import struct
import time

import pytest

from pie.batch import Batch
from pie.engine import Engine
from pie.programs import Source
from support.launching import Outcome, finish

VOCAB_SIZE = 4096


def run(engine: Engine, text: str) -> Outcome:
    process = engine.launch(Source("python", (("main.py", text.encode()),), "main.py"), seed=7)
    process.close_input()
    outcome = finish(process)
    assert outcome.code is None, outcome.traceback
    return outcome


PRELUDE = """
from inferlet import Context, Model, Sampler, runtime, session
model = Model.load(runtime.models()[0])
token_ids = [21, 22, 23]
def context():
    return Context(model).append([11, 12])
"""


@pytest.mark.rows("PY-076..077 PY-086..088")
def test_a_forward_pass(dummy: Engine) -> None:
    program = """
async def main(input):
    ctx = context()
    await ctx.flush()
    begin = ctx.forward().start_position()
    fwd = ctx.forward()
    fwd.input(token_ids)
    h = fwd.sample([0], Sampler.argmax())
    out = await fwd.execute()
    token = out.token(h)
    again = await context().append(token_ids[:1]).generate(Sampler.argmax(), max_tokens=1).collect_tokens()
    return [token, again, begin, ctx.seq_len, out.tokens, out.auto_sampler, len(out.raw.slots)]
"""
    token, again, begin, length, *rest = run(dummy, PRELUDE + program).value
    assert ([token], begin, length, rest) == (again, 2, 5, [[], None, 1])


@pytest.mark.rows("PY-089..093 PY-103..108")
def test_probes_and_what_they_read(dummy: Engine) -> None:
    program = """
from inferlet import Logits, Distribution, Logprob, Logprobs, Entropy
from math import exp
async def main(input):
    fwd = context().forward().input(token_ids)
    probes = [Logits(), Distribution(0.7, 3), Distribution(1.0, 0), Logprob(5), Logprobs([5, 6]), Entropy()]
    handles = [fwd.probe(2, probe) for probe in probes]
    drawn = fwd.sample([2, 2], Sampler.multinomial(1.0, 3))
    out = await fwd.execute()
    logits, top, full, one, two, entropy = handles
    session.send_file(out.logits(logits))
    ids, probs = out.distribution(full)
    return [out.distribution(top), ids == list(range(len(ids))), sum(probs), exp(out.logprobs(one)[0]) - probs[5],
            out.logprobs(two)[0] - out.logprobs(one)[0], out.entropy(entropy), out.tokens_at(drawn), out.logprobs(entropy)]
"""
    outcome = run(dummy, PRELUDE + program)
    (row,) = outcome.sent
    assert isinstance(row, bytes)
    assert len(row) == VOCAB_SIZE * 4
    logits = struct.unpack(f"={VOCAB_SIZE}f", row)
    (ids, probs), in_order, total, difference, same, entropy, drawn, other = outcome.value
    assert ids == sorted(range(VOCAB_SIZE), key=lambda token: -logits[token])[:3]
    assert probs == sorted(probs, reverse=True)
    assert (in_order, same, len(drawn), other) == (True, 0, 6, None)
    assert total == pytest.approx(1.0)
    assert difference == pytest.approx(0, abs=1e-7)
    assert 0 < entropy < 9


@pytest.mark.rows("OLD-061..062")
def test_the_older_forward_pass(dummy: Engine) -> None:
    program = """
import asyncio
from inferlet import ForwardPass
fwd = ForwardPass(context()).input(token_ids)
h = fwd.sample([0], Sampler.dist(temperature=1.0, seed=0))
out = asyncio.run(fwd.execute())
ids, probs = out.distribution(h)
session.send([len(ids), ids[7], round(sum(probs), 5)])
"""
    assert run(dummy, PRELUDE + program).text == f"[{VOCAB_SIZE},7,1.0]"


@pytest.mark.rows("PY-040")
def test_pages_are_not_exposed_and_can_be_counted(dummy: Engine) -> None:
    program = """
async def main(input):
    ctx = Context(model).append(range(20))
    await ctx.flush()
    return [hasattr(ctx, "inner"), ctx._committed_pages, ctx._working_pages, ctx._working_tokens, ctx.forward().page_size]
"""
    assert run(dummy, PRELUDE + program).value == [False, 1, 1, 4, 16]


def test_passes_that_are_awaited_together_share_a_batch() -> None:
    program = """
import asyncio
async def main(input):
    async def draw(token):
        fwd = context().forward().input([token])
        h = fwd.sample([0], Sampler.argmax())
        return (await fwd.execute()).token(h)
    alone = [await draw(token) for token in token_ids[:3]]
    return alone == await asyncio.gather(*map(draw, token_ids[:3]))
"""
    sizes = []

    def hold(batch: Batch, _answer: object) -> None:
        """Lets the fourth batch, the first of those awaited together, end once the two others are there."""
        sizes.append(batch.n_seqs)
        if len(sizes) == 4:
            deadline = time.monotonic() + 30
            while sizes[-1] + model.stats()["n_waiting"] < 3:
                assert time.monotonic() < deadline, "the passes that are awaited together are not there"
                time.sleep(0.001)

    with Engine() as engine:
        model = engine.add_model(observe=hold)
        engine.start()
        assert run(engine, PRELUDE + program).value is True
    assert sum(sizes[3:]) == 3
    assert len(sizes) <= 5
