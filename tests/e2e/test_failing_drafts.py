"""The draft model fails in the middle: a step fails with it, and how many tokens each step accepts stays the same."""

from __future__ import annotations

from typing import Any

import pytest

from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.config import ModelConfig
from pie.engine import Engine
from support.engines import started
from support.launching import python_source, run

STEPS = """
from inferlet import Context, InferletError, Model, Sampler

async def main(input):
    def made():
        ctx = Context(Model.load("default"))
        ctx.append([1, 2, 3])
        return ctx, ctx.generate(Sampler.top_p(1.0, 0.95), seed=4, max_tokens=40, ignore_eos=True, system_speculation="drafts")

    errors, runs = [], []
    ctx, g = made()
    step = await anext(g)
    while step is not None:
        before = ctx.seq_len
        try:
            runs.append((await step.execute()).tokens)
        except InferletError as error:
            assert ctx.seq_len == before
            errors.append([error.code, str(error)])
        step = await anext(g, None)
    _, g = made()
    return [errors, runs, await g.collect_tokens()]
"""


class FailingDriver:
    """The dummy driver of the model `default`; some of its batches fail."""

    def __init__(self, fails: set[int]) -> None:
        self.driver = DummyDriver("default", vocab_size=4096, n_pages=100)
        self.capabilities = self.driver.capabilities
        self.fails = fails
        self.n_batches = 0

    def run(self, batch: Batch) -> Any:
        self.n_batches += 1
        if self.n_batches in self.fails:
            raise RuntimeError("there is no memory")
        return self.driver.run(batch)

    def close(self) -> None:
        self.driver.close()


def told(fails: set[int]) -> Any:
    engine = Engine()
    engine.add_model(driver=DummyDriver("default", vocab_size=4096, n_pages=100), options=ModelConfig(name="default"))
    engine.add_model(driver=FailingDriver(fails), options=ModelConfig(name="drafts"))
    with started(engine):
        outcome = run(engine, python_source(STEPS), seed=7)
    assert outcome.code is None, outcome.traceback
    return outcome.value


@pytest.mark.parametrize("fails", [{1}, {3, 4}, {2, 7, 11, 12, 13}], ids=str)
def test_steps_accept_as_many_tokens_where_the_draft_model_fails(fails: set[int]) -> None:
    errors, runs, collected = told(set())
    assert (errors, max(len(tokens) for tokens in runs)) == ([], 9)
    found, runs_of_failing, collected_of_failing = told(fails)
    assert runs_of_failing == runs
    assert collected_of_failing == collected == [token for tokens in runs for token in tokens]
    assert found
    for code, message in found:
        assert code == "driver-failed"
        assert message.startswith('the draft model "drafts" could not draft: ')
        assert "there is no memory" in message
