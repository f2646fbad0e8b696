"""What a user makes the batches of another take: counted from the batches that a driver gets, which takes as long as its tokens are many."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from e2e.test_same_answer import wait_until
from e2e.test_shares import ops, varied
from pie.backends.dummy import DummyDriver
from pie.config import ModelConfig
from pie.engine import Engine
from support.launching import Outcome, finish, load_interpreter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pie._engine import Model, Process
    from pie.batch import Batch

TOKEN_S = 0.001
"""What the driver takes for a token. A batch of 512 is hundreds of times what the canary would have to wait for alone."""
N_DRAWN = 12
MARK = 4000
"""The first token of the canary's prompt, and of no other."""
CANARY = [MARK, *varied(0, 11)]
N_SETTLING = 3
"""Batches until the engine knows that the canary is there: one may run when it comes, and one may have been planned."""
FEW = 96
"""Tokens of others that a batch of the canary may hold: several times what the bound comes to, since a busy machine makes every batch look dear,
and a fifth of what a batch would hold without it."""


@dataclass(frozen=True)
class Seen:
    """A batch: its tokens by context, and the context of the canary where that is in it."""

    tokens: Counter[int]
    canary: int | None


class Slow:
    """The dummy driver on a slow device, which takes down what it gets."""

    def __init__(self) -> None:
        self._dummy = DummyDriver("pie-tiny", vocab_size=4096, n_pages=8192)
        self.capabilities = self._dummy.capabilities
        self.batches: list[Seen] = []
        self._canary: int | None = None

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Computes the batch, and sleeps for as long as its tokens take."""
        starts, tokens = batch.qo_indptr.tolist(), batch.tokens.tolist()
        contexts = [int(context) for context in batch.seq_context]
        if MARK in tokens:
            self._canary = contexts[sum(start <= tokens.index(MARK) for start in starts) - 1]
        counts = Counter({context: starts[idx + 1] - starts[idx] for idx, context in enumerate(contexts)})
        self.batches.append(Seen(counts, self._canary if self._canary in counts else None))
        time.sleep(TOKEN_S * len(tokens))
        return self._dummy.run(batch)

    def close(self) -> None:
        """Frees the memory."""
        self._dummy.close()


@contextmanager
def serving(**options: float) -> Iterator[tuple[Engine, Model, Slow]]:
    """An engine on such a driver."""
    driver = Slow()
    with Engine() as engine:
        model = engine.add_model(driver=driver, options=ModelConfig(**options))  # type: ignore[arg-type]  # by name
        engine.start()
        yield engine, model, driver
        model.check()


def greedy(engine: Engine, model: Model, n_processes: int, n_prompt: int, n_drawn: int) -> list[Process]:
    """So many programs of another user that want so much each; they end with what is answered."""
    program = load_interpreter("rust")
    processes = [engine.launch(program, input=ops(varied(salt + 1, n_prompt), n_drawn), username="other") for salt in range(n_processes)]
    wait_until(lambda: model.stats()["n_requests"] == n_processes)
    return processes


def canary(engine: Engine) -> Outcome:
    """Twelve tokens behind a short prompt, of a user that has nothing else."""
    outcome = finish(engine.launch(load_interpreter("rust"), input=ops(CANARY, N_DRAWN), username="one"))
    assert outcome.code is None, outcome.message
    return outcome


def of_canary(driver: Slow) -> list[Seen]:
    """The batches from the first to the last that had the canary in it."""
    batches = list(driver.batches)
    its = [idx for idx, seen in enumerate(batches) if seen.canary is not None]
    return batches[its[0] : its[-1] + 1]


@pytest.fixture(scope="module")
def alone() -> list[int]:
    """What the canary draws with nobody beside it."""
    with serving() as (engine, _, _):
        tokens: list[int] = canary(engine).value[-1]
        return tokens


@pytest.mark.parametrize(
    ("n_processes", "n_prompt", "n_drawn"), [(1, 2000, 4000), (16, 2000, 4000), (150, 8, 4000)], ids=["a prompt", "prompts", "generations"]
)
def test_between_two_tokens_of_a_user_lies_little_of_another(alone: list[int], n_processes: int, n_prompt: int, n_drawn: int) -> None:
    with serving() as (engine, model, driver):
        others = greedy(engine, model, n_processes, n_prompt, n_drawn)
        assert canary(engine).value[-1] == alone
        assert not any(process.ended for process in others)
    window = of_canary(driver)
    beside = [seen.tokens.total() - seen.tokens[seen.canary] if seen.canary else None for seen in window]
    assert None not in beside, f"a batch left the canary out: {beside}"
    assert len(window) == N_DRAWN
    settled = [n or 0 for n in beside[N_SETTLING:]]
    assert max(settled) <= FEW, beside
    assert min(settled) >= 1, "the others stood still"


def test_without_the_bound_the_canary_would_wait_for_whole_batches() -> None:
    with serving(shared_step_s=0) as (engine, model, driver):
        others = greedy(engine, model, 4, 2000, 4000)
        launched = engine.launch(load_interpreter("rust"), input=ops(CANARY, 2), username="one")
        assert finish(launched).code is None
        assert not any(process.ended for process in others)
    assert max(seen.tokens.total() for seen in of_canary(driver)) == ModelConfig().max_batch_tokens


def test_a_first_token_does_not_wait_for_the_prompts_of_another() -> None:
    with serving() as (engine, model, driver):
        others = greedy(engine, model, 16, 2000, 1)
        launched = engine.launch(load_interpreter("rust"), input=ops(CANARY, 1), username="one")
        wait_until(lambda: model.stats()["n_requests"] == 17 or launched.ended)
        n_before = len(driver.batches)
        assert finish(launched).code is None
        assert not all(process.ended for process in others)
    first = next(idx for idx, seen in enumerate(driver.batches) if seen.canary is not None)
    assert first <= n_before + N_SETTLING
    assert len(of_canary(driver)) == 1


def test_a_user_who_is_alone_has_whole_batches() -> None:
    with serving() as (engine, _, driver):
        outcome = finish(engine.launch(load_interpreter("rust"), input=ops(varied(1, 1500), 2), username="one"))
    assert outcome.code is None, outcome.message
    assert [seen.tokens.total() for seen in driver.batches[:3]] == [512, 512, 1500 - 1024]
