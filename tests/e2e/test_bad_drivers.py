"""A driver that fails, or answers nonsense, fails the requests of its batch; the engine keeps serving and a retry gets
the same tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pie.backends.base import Capabilities, DriverError, FailedSequencesError
from pie.config import ModelConfig
from pie.engine import Engine
from pie.errors import PieError
from support.launching import Outcome, finish, python_source

PROGRAM = python_source("""
from inferlet import Context, InferletError, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append([5, 6, 7])
    g = ctx.generate(Sampler.argmax(), max_tokens=8)
    tokens, errors = [], []
    while True:
        try:
            step = await anext(g)
            tokens += (await step.execute()).tokens
        except StopAsyncIteration:
            return [tokens, errors]
        except InferletError as error:
            errors.append(error.code)
""")

Answer = Callable[[np.ndarray], Any]


class FaultyDriver:
    """Answers each token with logits that prefer the next id; every third batch goes through `spoil`."""

    def __init__(self, spoil: Answer) -> None:
        self.spoil = spoil
        self.n_batches = 0
        self.closed = False
        self.capabilities = Capabilities("faulty", 4096, 2048, 16, 64, 512)

    def run(self, batch: Any) -> Any:
        self.n_batches += 1
        logits = np.zeros((len(batch.row_token), 4096), np.float32)
        for row_idx, token_idx in enumerate(batch.row_token):
            logits[row_idx, int(batch.tokens[int(token_idx)]) + 1] = 1.0
        return self.spoil(logits) if self.n_batches % 3 == 0 else logits

    def close(self) -> None:
        self.closed = True


def nan(logits: np.ndarray) -> np.ndarray:
    logits[:, 3] = np.nan
    return logits


def fails(logits: np.ndarray) -> np.ndarray:
    raise DriverError("the device is gone")


def breaks(logits: np.ndarray) -> np.ndarray:
    raise ZeroDivisionError("a bug of the driver")


def names(seq_idx: int) -> Answer:
    """Says of a sequence that it could not be computed."""

    def fail(logits: np.ndarray) -> np.ndarray:
        raise FailedSequencesError(logits, {seq_idx: "no room on the device"})

    return fail


FAULTS: list[tuple[str, Answer, str]] = [
    ("NaN", nan, "bad-logits"),
    ("a driver error", fails, "driver-failed"),
    ("any exception", breaks, "driver-failed"),
    ("a sequence that failed", names(0), "driver-failed"),
    ("a sequence that is none", names(7), "driver-failed"),
    ("another type", lambda logits: logits.astype(np.float64), "driver-failed"),
    ("a list", lambda logits: logits.tolist(), "driver-failed"),
    ("nothing", lambda logits: None, "driver-failed"),
    ("too few rows", lambda logits: logits[:0], "bad-logits"),
    ("too narrow rows", lambda logits: np.ascontiguousarray(logits[:, :100]), "driver-failed"),
    ("not contiguous", lambda logits: np.asfortranarray(np.vstack([logits, logits])), "driver-failed"),
]


def run(driver: FaultyDriver) -> Outcome:
    with Engine() as engine:
        # What runs ahead fails unseen.
        model = engine.add_model(driver=driver, options=ModelConfig(run_ahead=False))
        engine.start()
        outcome = finish(engine.launch(PROGRAM))
        model.check()
        assert model.stats()["n_pages_used"] == 0
    assert driver.closed
    return outcome


@pytest.mark.parametrize(("name", "spoil", "code"), FAULTS, ids=[name for name, _, _ in FAULTS])
def test_a_faulty_driver_changes_no_token(name: str, spoil: Answer, code: str) -> None:
    healthy = run(FaultyDriver(lambda logits: logits))
    assert healthy.value == [[8, 9, 10, 11, 12, 13, 14, 15], []]
    outcome = run(FaultyDriver(spoil))
    assert outcome.code is None, outcome.message
    tokens, errors = outcome.value
    assert tokens == healthy.value[0]
    assert errors
    assert set(errors) == {code}


def test_a_driver_of_another_vocabulary_is_refused_and_closed() -> None:
    driver = FaultyDriver(lambda logits: logits)
    driver.capabilities = Capabilities("small", 4000, 2048, 16, 64, 512)
    with Engine() as engine:
        with pytest.raises(PieError, match=r"the driver small answers rows of 4000 logits, and the vocabulary of .* has 4096") as caught:
            engine.add_model(driver=driver)
        assert caught.value.code == "invalid-config"
        assert driver.closed


def test_batches_have_the_sizes_that_a_driver_declares() -> None:
    """Pages of 8 tokens, batches of 2: the prompt of three tokens takes two."""
    driver, batches = FaultyDriver(lambda logits: logits), []
    driver.capabilities = Capabilities("narrow", 4096, 2048, 8, 64, 2)
    with Engine() as engine:
        model = engine.add_model(
            driver=driver, observe=lambda batch, logits: batches.append((batch.page_size, batch.n_tokens, batch.n_rows))
        )
        assert model.page_size == 8
        engine.start()
        assert finish(engine.launch(PROGRAM)).value == [[8, 9, 10, 11, 12, 13, 14, 15], []]
    assert batches[:2] == [(8, 2, 0), (8, 1, 1)]
    assert max(max(n_tokens, n_rows) for _, n_tokens, n_rows in batches) == 2
