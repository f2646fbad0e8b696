"""What a user makes the batches of another take: counted from the batches that a driver gets, never measured.

What holds whatever batches cost is looked at on a driver that takes no time to speak of, with a step so short that
every batch is too long. How much of others a batch may hold follows from what batches cost, so for that a driver is
given a price: it sleeps for each token.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from e2e.test_same_answer import wait_until
from e2e.test_shares import MARK, marked, ops, varied
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
"""The price of a token. A batch of 512 is hundreds of times what the canary would have to wait for alone."""
SHORTEST_S = 1e-6
"""No batch is as short, so each is bounded by what others would cost if they decoded as little as the canary."""
N_DRAWN = 12
CANARY = [MARK, *varied(0, 11)]
N_SETTLING = 3
"""Batches until the engine knows that the canary is there: one may run when it comes, and one may have been planned."""
FEW = 96
"""Tokens of others that half of the batches of the canary hold at most: many times what the bound comes to, since a
busy machine makes a batch itself look dear, and a fifth of what each of them holds without a bound.
"""


@dataclass(frozen=True)
class Seen:
    """A batch: its tokens by context, and the context of the canary where that is in it."""

    tokens: Counter[int]
    canary: int | None
    draws: bool
    """Whether the canary draws a token in it."""


class Recording:
    """The dummy driver, which takes down what it gets, on a device that takes so long for a token."""

    def __init__(self, token_s: float) -> None:
        self._dummy = DummyDriver("pie-tiny", vocab_size=4096, n_pages=8192)
        self._token_s = token_s
        self.capabilities = self._dummy.capabilities
        self.batches: list[Seen] = []
        self._goes_on = threading.Event()
        self._goes_on.set()
        self._canary: int | None = None

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Computes the batch, and sleeps for as long as its tokens take."""
        starts, tokens = batch.qo_indptr.tolist(), batch.tokens.tolist()
        contexts = [int(context) for context in batch.seq_context]
        if self._canary is None:
            self._canary = marked(batch)
        counts = Counter({context: starts[idx + 1] - starts[idx] for idx, context in enumerate(contexts)})
        drawing = {contexts[sum(start <= token for start in starts) - 1] for token in batch.row_token.tolist()}
        self.batches.append(Seen(counts, self._canary if self._canary in counts else None, self._canary in drawing))
        self._goes_on.wait()
        time.sleep(self._token_s * len(tokens))
        return self._dummy.run(batch)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile no batch ends."""
        self._goes_on.clear()
        try:
            yield
        finally:
            self._goes_on.set()

    def close(self) -> None:
        """Frees the memory."""
        self._dummy.close()


@contextmanager
def serving(*, token_s: float = TOKEN_S, **options: float) -> Iterator[tuple[Engine, Model, Recording]]:
    """An engine on such a driver."""
    driver = Recording(token_s)
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
    return drawn(launch_canary(engine))


def launch_canary(engine: Engine) -> Process:
    """The program that draws them."""
    return engine.launch(load_interpreter("rust"), input=ops(CANARY, N_DRAWN), username="one")


def drawn(process: Process) -> Outcome:
    """What it has drawn at its end."""
    outcome = finish(process)
    assert outcome.code is None, outcome.message
    return outcome


def of_canary(driver: Recording) -> list[Seen]:
    """The batches from the first to the last in which the canary drew a token."""
    batches = list(driver.batches)
    its = [idx for idx, seen in enumerate(batches) if seen.draws]
    return batches[its[0] : its[-1] + 1]


@pytest.fixture(scope="module")
def alone() -> list[int]:
    """What the canary draws with nobody beside it."""
    with serving() as (engine, _, _):
        tokens: list[int] = canary(engine).value[-1]
        return tokens


A_PROMPT = pytest.param(1, 2000, 4000, id="a prompt")
PROMPTS = pytest.param(16, 2000, 4000, id="prompts")
GENERATIONS = pytest.param(150, 8, 4000, id="generations")


def beside(window: list[Seen]) -> list[int]:
    """The tokens of others in the batches of the canary, in each of which it has to draw one."""
    assert [seen.draws for seen in window] == [True] * N_DRAWN, "the canary waited for a batch that it was not in"
    return [seen.tokens.total() - seen.tokens[seen.canary or 0] for seen in window]


@pytest.mark.parametrize(("n_processes", "n_prompt", "n_drawn"), [A_PROMPT, PROMPTS, GENERATIONS])
def test_whatever_batches_cost_everybody_has_a_part_of_each(alone: list[int], n_processes: int, n_prompt: int, n_drawn: int) -> None:
    with serving(token_s=0.0, shared_step_s=SHORTEST_S) as (engine, model, driver):
        # The canary comes while the others have all before them, however long its launch takes.
        with driver.held():
            others = greedy(engine, model, n_processes, n_prompt, n_drawn)
            process = launch_canary(engine)
            wait_until(lambda: model.stats()["n_requests"] == n_processes + 1)
        assert drawn(process).value[-1] == alone
        assert not any(process.ended for process in others)
    window = of_canary(driver)
    assert min(beside(window)) >= 1, "the others stood still"


@pytest.mark.parametrize(("n_processes", "n_prompt", "n_drawn"), [PROMPTS, GENERATIONS])
def test_between_two_tokens_of_a_user_lies_little_of_another(alone: list[int], n_processes: int, n_prompt: int, n_drawn: int) -> None:
    with serving() as (engine, model, driver):
        others = greedy(engine, model, n_processes, n_prompt, n_drawn)
        assert canary(engine).value[-1] == alone
        assert not any(process.ended for process in others)
    window = of_canary(driver)
    # One that the machine holds up makes those behind it look dear or cheap: half of them say what the bound is.
    assert statistics.median(beside(window)[N_SETTLING:]) <= FEW, beside(window)


def test_without_the_bound_every_batch_of_the_canary_is_full() -> None:
    with serving(shared_step_s=0) as (engine, model, driver):
        others = greedy(engine, model, 4, 2000, 4000)
        launched = engine.launch(load_interpreter("rust"), input=ops(CANARY, 2), username="one")
        assert finish(launched).code is None
        assert not any(process.ended for process in others)
    assert {seen.tokens.total() for seen in of_canary(driver)} == {ModelConfig().max_batch_tokens}


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
    assert sum(seen.canary is not None for seen in driver.batches) == 1


def test_a_user_who_is_alone_has_whole_batches() -> None:
    with serving() as (engine, _, driver):
        outcome = finish(engine.launch(load_interpreter("rust"), input=ops(varied(1, 1500), 2), username="one"))
    assert outcome.code is None, outcome.message
    assert [seen.tokens.total() for seen in driver.batches[:3]] == [512, 512, 1500 - 1024]
