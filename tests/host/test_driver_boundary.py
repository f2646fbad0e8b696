"""The driver's side of a model: batches as buffers, logits in place, failures."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from host.programs import GENERATE, PATIENCE_S, TINY, VOCAB_SIZE, failed, launch, returned
from pie import _engine
from pie.batch import Batch
from pie.errors import PieError


def next_batch(model: _engine.Model) -> _engine.Batch:
    batch = model.next_work(PATIENCE_S)
    assert isinstance(batch, _engine.Batch)
    return batch


def logits_for(batch: _engine.Batch, tokens: list[int]) -> np.ndarray:
    """One row a wanted token."""
    n_rows = Batch.from_buffer(batch).n_rows
    rows = np.zeros((n_rows, VOCAB_SIZE), np.float32)
    rows[np.arange(n_rows), tokens[:n_rows]] = 1.0
    return rows


def test_a_batch_is_read_in_place_and_answered_once(engine: _engine.Engine, model: _engine.Model) -> None:
    process = launch(engine, GENERATE, {"n": 2})
    batch = next_batch(model)
    view = memoryview(batch)
    assert view.readonly
    words = np.frombuffer(batch, np.uint32)
    assert words[0] == 0x42454950
    assert words[2] == len(words)
    assert np.shares_memory(words, np.frombuffer(batch, np.uint32))
    typed = Batch.from_buffer(batch)
    assert typed.tokens.tolist() == [1, 2, 3]
    assert batch.id == 1
    model.complete(batch, logits_for(batch, [40]))
    with pytest.raises(PieError, match="answered before") as error:
        model.complete(batch, logits_for(batch, [40]))
    assert error.value.code == "invalid-argument"
    second = next_batch(model)
    assert Batch.from_buffer(second).tokens.tolist() == [40]
    model.complete(second, logits_for(second, [41]))
    assert returned(process) == [40, 41]


def test_a_batch_of_another_model_is_refused(engine: _engine.Engine, model: _engine.Model) -> None:
    other = engine.add_model("other", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 2048})
    process = launch(engine, GENERATE, {"n": 1})
    batch = next_batch(model)
    with pytest.raises(PieError, match="belongs to the model"):
        other.complete(batch, logits_for(batch, [40]))
    model.complete(batch, logits_for(batch, [40]))
    assert returned(process) == [40]


@pytest.mark.parametrize(
    ("logits", "code"),
    [
        (np.zeros((2, VOCAB_SIZE), np.float32), "bad-logits"),
        (np.zeros((0, VOCAB_SIZE), np.float32), "bad-logits"),
        (np.full((1, VOCAB_SIZE), np.nan, np.float32), "bad-logits"),
    ],
)
def test_logits_that_cannot_be_used_fail_the_request(engine: _engine.Engine, model: _engine.Model, logits: np.ndarray, code: str) -> None:
    process = launch(engine, GENERATE, {"n": 1})
    model.complete(next_batch(model), logits)
    assert failed(process).code == code


def test_logits_of_another_kind_are_refused_and_the_batch_can_still_be_answered(engine: _engine.Engine, model: _engine.Model) -> None:
    process = launch(engine, GENERATE, {"n": 1})
    batch = next_batch(model)
    with pytest.raises(BufferError):
        model.complete(batch, logits_for(batch, [40]).astype(np.float64))
    with pytest.raises(PieError, match="C-contiguous"):
        model.complete(batch, np.zeros((VOCAB_SIZE, 2), np.float32).T)
    for shape in [(1, VOCAB_SIZE - 1), (2, VOCAB_SIZE // 2), (VOCAB_SIZE,), (1, 1, VOCAB_SIZE)]:
        with pytest.raises(PieError, match=rf"answer \[rows, {VOCAB_SIZE}\]"):
            model.complete(batch, np.zeros(shape, np.float32))
    model.complete(batch, logits_for(batch, [40]))
    assert returned(process) == [40]


def test_a_failed_batch_fails_its_requests_by_name(engine: _engine.Engine, model: _engine.Model) -> None:
    process = launch(engine, GENERATE, {"n": 1})
    model.fail(next_batch(model), "the device is on fire")
    error = failed(process)
    assert error.code == "driver-failed"
    assert "on fire" in error.message


def test_a_sequence_that_failed_fails_alone(engine: _engine.Engine, model: _engine.Model) -> None:
    process = launch(engine, GENERATE, {"n": 1})
    batch = next_batch(model)
    model.complete(batch, logits_for(batch, [40]), [(0, "its page is damaged")])
    error = failed(process)
    assert error.code == "driver-failed"
    assert "damaged" in error.message


def test_a_batch_that_is_given_up_fails(engine: _engine.Engine, model: _engine.Model) -> None:
    process = launch(engine, GENERATE, {"n": 1})
    batch: _engine.Batch | None = next_batch(model)
    assert batch is not None
    del batch
    gc.collect()
    assert failed(process).code == "driver-failed"


def test_nothing_to_run_is_none(model: _engine.Model) -> None:
    assert model.next_work(0.0) is None
    assert model.next_work(0.01) is None


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan"), float("inf")])
def test_a_timeout_that_is_no_time_is_named(model: _engine.Model, timeout_s: float) -> None:
    with pytest.raises(PieError, match="timeout_s") as error:
        model.next_work(timeout_s)
    assert error.value.code == "invalid-argument"


def test_a_stopped_model_gives_no_batch_at_once(engine: _engine.Engine, model: _engine.Model) -> None:
    engine.stop()
    assert model.stopped
    assert model.next_work(PATIENCE_S) is None


def test_two_generators_of_one_program_share_a_batch(engine: _engine.Engine, model: _engine.Model) -> None:
    source = """
import asyncio
from inferlet import Context, Model, Sampler

async def main(input):
    contexts = [Context(Model.load("tiny")) for _ in range(2)]
    for n, ctx in enumerate(contexts):
        ctx.append([n + 1] * (n + 1))
    runs = [ctx.generate(Sampler.argmax(), max_tokens=2, auto_flush=False).collect_tokens() for ctx in contexts]
    return await asyncio.gather(*runs)
"""
    process = launch(engine, source)
    widths = []
    while not process.ended:
        batch = model.next_work(0.2)
        if batch is None:
            process.next_event(0.0)
            continue
        # The first batch runs until both generators wait.
        while not widths and model.stats()["n_requests"] < 2:
            process.next_event(0.01)
        typed = Batch.from_buffer(batch)
        widths.append((typed.n_seqs, len(set(typed.seq_request.tolist()))))
        model.complete(batch, logits_for(batch, [50] * typed.n_rows))
    assert (2, 2) in widths
