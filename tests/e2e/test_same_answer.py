"""The same tokens and the same logits, bit for bit: in three languages, alone and in company, whatever the prefill
chunks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pie.config import ModelConfig
from pie.engine import Engine
from support.launching import LANGUAGES, PATIENCE_S, Outcome, example, finish
from support.observing import Recorder, Trace

SUBJECT = {"prompt": "Tell me a short story about a fox.", "max_tokens": 96, "temperature": 0.8, "top_p": 0.95}
SEED = 7
OTHERS = ["dog", "cat", "bird", "fish", "horse", "cow", "pig", "hen", "goat", "sheep", "mouse", "bear", "wolf", "owl", "frog"]
N_OTHERS = len(OTHERS)
CHUNKS = (16, 512)


@dataclass
class Run:
    """The subject's outcome and trace, and the recorder of the whole engine."""

    outcome: Outcome
    trace: Trace
    recorder: Recorder


def launch(language: str, chunk: int, n_others: int) -> Run:
    """Runs the chat example with the subject's input, beside others with inputs of their own.

    Each is of a user of its own, so that nobody finds a part of its prompt computed and every context feeds the whole
    of it.
    """
    recorder = Recorder()
    with Engine() as engine:
        model = engine.add_model(options=ModelConfig(prefill_chunk=chunk, max_batch_tokens=max(chunk, 64)), observe=recorder)
        processes = [engine.launch(example("chat", language), input=SUBJECT, seed=SEED, username="subject")]
        for other in range(n_others):
            program_input: dict[str, Any] = SUBJECT | {"prompt": f"Tell me a short story about a {OTHERS[other]}."}
            processes.append(
                engine.launch(example("chat", LANGUAGES[other % 3]), input=program_input, seed=other, username=f"other-{other}")
            )
        wait_until(lambda: model.stats()["n_requests"] == len(processes))
        engine.start()
        outcomes = [finish(process) for process in processes]
    assert all(outcome.code is None for outcome in outcomes), [outcome.message for outcome in outcomes if outcome.code]
    return Run(outcomes[0], subject_trace(recorder), recorder)


def wait_until(condition: Callable[[], bool]) -> None:
    """Lets the programs go on until the condition holds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "the programs never came so far"
        os.sched_yield()


def subject_trace(recorder: Recorder) -> Trace:
    """The subject's context: the only one whose prompt speaks of a fox, the shortest difference being its tokens."""
    (trace,) = [trace for trace in recorder.traces.values() if trace.fed()[: len(PROMPT)] == PROMPT]
    return trace


PROMPT: list[int] = []


@pytest.fixture(scope="module", autouse=True)
def prompt() -> None:
    """Learns the subject's prompt from a run of it alone."""
    recorder = Recorder()
    with Engine() as engine:
        engine.add_model(observe=recorder)
        engine.start()
        assert finish(engine.launch(example("chat", "python"), input=SUBJECT | {"max_tokens": 1}, seed=SEED)).code is None
    (trace,) = recorder.traces.values()
    PROMPT[:] = trace.fed()


@pytest.mark.parametrize("chunk", CHUNKS)
def test_tokens_and_logits_are_bit_identical(chunk: int) -> None:
    alone = {language: launch(language, chunk, 0) for language in LANGUAGES}
    beside = {language: launch(language, chunk, N_OTHERS) for language in LANGUAGES}
    reference = launch("python", CHUNKS[-1], 0)
    n_rows = 0
    for run in [*alone.values(), *beside.values()]:
        assert run.outcome.value == reference.outcome.value
        assert run.outcome.text == reference.outcome.text
        assert run.trace.tokens == reference.trace.tokens
        # A chunked prefill asks for the same last row; every row that both computed must be the same bits.
        assert run.trace.rows == reference.trace.rows
        n_rows += len(run.trace.rows)
    print(f"chunk {chunk}: {len(reference.trace.tokens)} tokens a run, {n_rows} logits rows bit-identical")


def test_sixteen_programs_share_batches() -> None:
    recorder = launch("python", 512, N_OTHERS).recorder
    widths = batches_while_all_live(recorder)
    mean, overall = sum(widths) / len(widths), sum(recorder.widths) / len(recorder.widths)
    print(f"mean batch width while all {N_OTHERS + 1} generate: {mean:.2f} over {len(widths)} batches; over the whole run: {overall:.2f}")
    assert max(widths) == N_OTHERS + 1


def batches_while_all_live(recorder: Recorder) -> list[int]:
    """Widths of the batches between the last context's first pass and the first context's last one."""
    first, last = {}, {}
    for batch_idx, live in enumerate(recorder.live):
        for context in live:
            first.setdefault(context, batch_idx)
            last[context] = batch_idx
    return [len(live) for live in recorder.live[max(first.values()) : min(last.values()) + 1]]
