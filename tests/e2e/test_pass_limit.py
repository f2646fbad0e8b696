"""A pass that takes longer than `limits.pass_s`: the program gets an error, and may try again as if nothing had
been.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.engine import Engine
from support.launching import finish, python_source

PROGRAM = python_source("""
from inferlet import Context, InferletError, Model, Sampler, session


told = []


async def insist(what):
    while True:
        try:
            return await what()
        except InferletError as error:
            told.append(error)
            if len(told) == 1:
                session.send(f"{error.code}: {error}")
                await session.receive()


async def main(kind):
    ctx = Context(Model.load("default")).append(list(range(5, 40)))
    if kind == "flush":
        await insist(ctx.flush)
    generator = ctx.generate(Sampler.top_p(1.0, 0.95), max_tokens=8)
    tokens = []
    async for step in generator:
        tokens.extend((await insist(step.execute)).tokens)
    return tokens
""")


class PatientDriver:
    """The dummy driver, which answers once it may."""

    def __init__(self) -> None:
        self.driver = DummyDriver("pie-tiny", vocab_size=4096, n_pages=64)
        self.capabilities = self.driver.capabilities
        self.may = threading.Event()

    def run(self, batch: Batch) -> np.ndarray:
        self.may.wait()
        return self.driver.run(batch)

    def close(self) -> None:
        self.driver.close()


@pytest.mark.parametrize("kind", ["flush", "step"])
def test_a_pass_that_takes_too_long_is_an_error_and_can_be_tried_again(kind: str) -> None:
    values = []
    for late in (False, True):
        driver = PatientDriver()
        with Engine() as engine:
            model = engine.add_model(driver=driver)
            engine.start()
            if not late:
                driver.may.set()
            process = engine.launch(PROGRAM, input=kind, seed=7, limits={"pass_s": 0.05} if late else None)
            if late:
                event = process.next_event(60)
                assert event is not None
                assert event.text.startswith("limit-pass: ")
                assert "0.05 s, limits.pass_s" in event.text
                driver.may.set()
                process.send("go on")
            outcome = finish(process)
            assert outcome.code is None, outcome.message
            values.append(outcome.value)
            model.check()
            assert model.stats()["n_pages_used"] == 0
    assert values[0] == values[1]
    assert len(values[0]) == 8
