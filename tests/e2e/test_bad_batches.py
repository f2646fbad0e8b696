"""One batch in the middle of 32 programs goes wrong, in every way that a driver knows.

Each request of that batch gets an error of its own, no other gets any, and every program that tries again gets the
tokens that it would have got.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pie import _engine
from pie.backends.base import NOT_FINITE, Drawn, DriverError, FailedSequencesError
from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.events import AnyEvent, Event
from support.launching import PATIENCE_S, python_source

N_PROGRAMS = 32
KINDS = ("steps", "run", "flush", "forks")

PROGRAM = python_source("""
from inferlet import Context, InferletError, Model, Sampler, session


async def insist(what):
    while True:
        try:
            return await what()
        except InferletError as error:
            session.send({"code": error.code, "message": str(error)})


async def steps(ctx, sampler):
    g, tokens = ctx.generate(sampler, max_tokens=24), []

    async def one():
        step = await anext(g)
        tokens.extend((await step.execute()).tokens)

    try:
        while True:
            await insist(one)
    except StopAsyncIteration:
        return tokens


async def run(ctx, sampler):
    return await insist(lambda: ctx.generate(sampler, max_tokens=24).collect_tokens())


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append([(input["n"] * 7 + i) % 1000 + 5 for i in range(20 + input["n"])])
    kind, sampler = input["kind"], Sampler.top_p(1.0, 0.95)
    session.send("here")
    if kind == "steps":
        return await steps(ctx, sampler)
    if kind == "run":
        return await run(ctx, sampler)
    tokens = []
    if kind == "flush":
        for n in range(12):
            ctx.append([n + 5] * 3)
            await insist(ctx.flush)
        return tokens + await run(ctx, sampler)
    await insist(ctx.flush)
    for fork in [ctx.fork() for _ in range(3)]:
        tokens.append(await run(fork, sampler))
    return tokens
""")

# Each sequence of a batch is then of a request: what runs ahead of a program fails nobody.
ASKED_FOR = ModelConfig(run_ahead=False)

Hurt = Callable[[Any], Any]


class HurtDriver:
    """The dummy driver, whose first batch of at least eight sequences, once some have run, goes through `hurt`."""

    def __init__(self, hurt: Hurt | None, *, follows: bool = False) -> None:
        self.driver = DummyDriver("pie-tiny", vocab_size=4096, n_pages=120, host_pages=40, follows=follows)
        self.capabilities = self.driver.capabilities
        self.hurt = hurt
        self.n_batches = 0
        self.n_hurt = 0

    def run(self, batch: Batch) -> Any:
        answer = self.driver.run(batch)
        self.n_batches += 1
        if self.hurt is not None and not self.n_hurt and self.n_batches > 4 and batch.n_seqs >= 8 and batch.n_rows >= 8:
            self.n_hurt = batch.n_seqs
            if isinstance(answer, Drawn):
                return self.hurt(Drawn(answer.tokens.copy(), answer.logits.copy()))
            return self.hurt(answer.copy())
        return answer

    def close(self) -> None:
        self.driver.close()


class DeviceDriver(HurtDriver):
    """The same on a device of its own: it is given the next batch while it runs one."""

    def __init__(self, hurt: Hurt | None) -> None:
        super().__init__(hurt, follows=True)
        self.device = ThreadPoolExecutor(1)
        self.n_followers = 0
        self.most_launched = self.n_launched = 0

    def launch(self, batch: Batch) -> Callable[[], Any]:
        self.n_followers += int(np.count_nonzero(batch.seq_follows))
        self.n_launched += 1
        self.most_launched = max(self.most_launched, self.n_launched)
        running = self.device.submit(self.run, batch)

        def wait() -> Any:
            self.n_launched -= 1
            return running.result()

        return wait

    def close(self) -> None:
        self.device.shutdown()
        super().close()


@dataclass
class Told:
    """What the programs told, by their number."""

    errors: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    values: dict[int, Any] = field(default_factory=dict)


class Crowd:
    """All programs, and whatever they tell, in the order in which it comes."""

    def __init__(self, engine: Engine) -> None:
        self.told: queue.Queue[tuple[int, AnyEvent]] = queue.Queue()
        self.followers = ThreadPoolExecutor(N_PROGRAMS)
        self.processes = [
            engine.launch(PROGRAM, input={"kind": KINDS[n % len(KINDS)], "n": n}, seed=n, username=f"user{n % 3}")
            for n in range(N_PROGRAMS)
        ]
        self.seen = Told()
        for n, process in enumerate(self.processes):
            self.followers.submit(self._follow, n, process)

    def _follow(self, n: int, process: _engine.Process) -> None:
        while (event := process.next_event(PATIENCE_S)) is not None:
            self.told.put((n, event))

    def until(self, done: Callable[[Told], bool]) -> Told:
        """Listens until what was told is enough."""
        while not done(self.seen):
            n, event = self.told.get(timeout=PATIENCE_S)
            if isinstance(event, Event.Return):
                self.seen.values[n] = event.value
            else:
                assert isinstance(event, Event.Stdout), event
                if event.text != "here":
                    self.seen.errors.append((n, json.loads(event.text)))
        return self.seen

    def wait_until_all_are_there(self) -> None:
        for _ in self.processes:
            assert self.told.get(timeout=PATIENCE_S)[1].text == "here"


def ended(told: Told) -> bool:
    return len(told.values) == N_PROGRAMS


def run(driver: HurtDriver, options: ModelConfig = ASKED_FOR) -> Told:
    with Engine() as engine:
        model = engine.add_model(driver=driver, options=options)
        crowd = Crowd(engine)
        crowd.wait_until_all_are_there()
        engine.start()
        told = crowd.until(ended)
        model.check()
        assert model.stats()["n_pages_used"] == 0
    return told


@pytest.fixture(scope="module")
def healthy() -> dict[int, Any]:
    told = run(HurtDriver(None))
    assert told.errors == []
    return told.values


def spoil(logits: np.ndarray) -> np.ndarray:
    logits[:, 7] = np.nan
    return logits


def spoil_one(answer: Any) -> Any:
    if isinstance(answer, Drawn):
        answer.tokens[3] = NOT_FINITE
    else:
        answer[3, 7] = np.inf
    return answer


def names(*sequences: int) -> Hurt:
    def fail(logits: np.ndarray) -> np.ndarray:
        raise FailedSequencesError(logits, dict.fromkeys(sequences, "no room on the device"))

    return fail


def dies(error: BaseException) -> Hurt:
    def fail(logits: np.ndarray) -> np.ndarray:
        raise error

    return fail


ALL, ROWS = -1, -2
FAULTS: dict[str, tuple[Hurt, str, int]] = {
    "the device is lost": (dies(DriverError("the device is gone")), "driver-failed", ALL),
    "a fault of the driver": (dies(ZeroDivisionError("by zero")), "driver-failed", ALL),
    "the thread is ended": (dies(SystemExit(3)), "driver-failed", ALL),
    "no answer": (lambda logits: None, "driver-failed", ALL),
    "another type": (lambda logits: logits.astype(np.float64), "driver-failed", ALL),
    "a foreign sequence": (names(9999), "driver-failed", ALL),
    "two sequences": (names(0, 5), "driver-failed", 2),
    "one bad row": (spoil_one, "bad-logits", 1),
    "all rows bad": (spoil, "bad-logits", ROWS),
    "half of each row": (lambda logits: np.ascontiguousarray(logits[:, :2048]), "driver-failed", ALL),
    "the wrong way round": (lambda logits: logits.reshape(4096, -1), "driver-failed", ALL),
    "too many rows": (lambda logits: np.vstack([logits, logits]), "bad-logits", ROWS),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_batch_fails_its_requests_and_nothing_else(name: str, healthy: dict[int, Any]) -> None:
    hurt, code, n_failed = FAULTS[name]
    n_rows = []

    def noting(logits: np.ndarray) -> Any:
        n_rows.append(len(logits))
        return hurt(logits)

    driver = HurtDriver(noting)
    told = run(driver)
    expected = {ALL: driver.n_hurt, ROWS: sum(n_rows)}.get(n_failed, n_failed)
    assert expected > 0
    assert [error["code"] for _, error in told.errors] == [code] * expected
    assert len({n for n, _ in told.errors}) == expected, "each program waits for one request at a time"
    assert told.values == healthy


@pytest.mark.parametrize("name", FAULTS)
def test_what_runs_ahead_in_a_bad_batch_changes_no_token(name: str, healthy: dict[int, Any]) -> None:
    hurt, code, _ = FAULTS[name]
    driver = HurtDriver(hurt)
    told = run(driver, ModelConfig())
    assert driver.n_hurt > 0
    assert len(told.errors) <= driver.n_hurt
    assert {error["code"] for _, error in told.errors} <= {code}
    assert told.values == healthy


LATE: dict[str, Hurt] = {
    "what was asked": lambda logits: logits,
    "nonsense": spoil,
    "an error": dies(DriverError("the device is gone")),
}


@pytest.mark.parametrize("name", LATE)
def test_a_driver_that_hangs_is_given_up_until_it_answers(name: str, healthy: dict[int, Any]) -> None:
    answer_now = threading.Event()

    def hang(logits: np.ndarray) -> Any:
        assert answer_now.wait(PATIENCE_S)
        return LATE[name](logits)

    driver = HurtDriver(hang)
    with Engine(EngineConfig(driver_timeout_s=1.5)) as engine:
        model = engine.add_model(driver=driver, options=ASKED_FOR)
        crowd = Crowd(engine)
        crowd.wait_until_all_are_there()
        engine.start()
        try:
            told = crowd.until(lambda told: driver.n_hurt > 0 and len(told.errors) == driver.n_hurt)
            for _, error in told.errors:
                assert error["code"] == "driver-failed"
                assert "within 1.5 s, engine.driver_timeout_s" in error["message"]
            stats = model.stats()
            assert (stats["n_stuck"], stats["n_in_flight"], stats["n_failed_batches"]) == (1, 1, 1)
            assert stats["n_pages_used"] > 0
            assert stats["n_batches"] == driver.n_batches, "a driver that hangs gets nothing else"
            assert not ended(told)
            model.check()
        finally:
            answer_now.set()
        told = crowd.until(ended)
        model.check()
        stats = model.stats()
        assert (stats["n_stuck"], stats["n_pages_used"], stats["n_failed_batches"]) == (0, 0, 1)
    assert len(told.errors) == driver.n_hurt
    assert told.values == healthy


def test_a_device_that_feeds_itself_gives_the_same_answers(healthy: dict[int, Any]) -> None:
    driver = DeviceDriver(None)
    told = run(driver, ModelConfig())
    assert told.errors == []
    assert told.values == healthy
    assert driver.most_launched == 2
    assert driver.n_followers > 100


@pytest.mark.parametrize("name", ["the device is lost", "a fault of the driver", "no answer", "two sequences", "one bad row"])
def test_a_bad_batch_of_a_device_that_feeds_itself_changes_no_answer(name: str, healthy: dict[int, Any]) -> None:
    hurt, code, n_failed = FAULTS[name]
    driver = DeviceDriver(hurt)
    told = run(driver)
    assert driver.n_hurt > 0
    assert [error["code"] for _, error in told.errors] == [code] * (driver.n_hurt if n_failed == ALL else n_failed)
    # What followed is dropped without a word: nobody is told twice.
    assert len({n for n, _ in told.errors}) == len(told.errors)
    assert told.values == healthy


def test_a_launch_that_fails_fails_its_batch_alone(healthy: dict[int, Any]) -> None:
    class Failing(DeviceDriver):
        def launch(self, batch: Batch) -> Callable[[], Any]:
            # Of what follows the batch before, nobody is told: it is done again.
            if self.n_batches > 4 and not self.n_hurt and not batch.seq_follows.all():
                self.n_hurt = batch.n_seqs
                raise SystemExit(3)
            return super().launch(batch)

    driver = Failing(None)
    told = run(driver)
    assert 0 < len(told.errors) <= driver.n_hurt
    assert {error["code"] for _, error in told.errors} == {"driver-failed"}
    assert told.values == healthy


def test_a_driver_that_follows_has_a_launch() -> None:
    with Engine() as engine, pytest.raises(PieError, match="has no method launch") as caught:
        engine.add_model(driver=HurtDriver(None, follows=True))
    assert caught.value.code == "invalid-config"


def test_an_engine_that_stops_waits_for_what_its_device_was_given() -> None:
    class Slow(DeviceDriver):
        def __init__(self) -> None:
            super().__init__(None)
            self.both, self.goes_on = threading.Event(), threading.Event()

        def launch(self, batch: Batch) -> Callable[[], Any]:
            answer = super().launch(batch)
            if self.n_launched == 2:
                self.both.set()
            return answer

        def run(self, batch: Batch) -> Any:
            assert self.goes_on.wait(PATIENCE_S)
            return super().run(batch)

    driver = Slow()
    with Engine() as engine:
        engine.add_model(driver=driver)
        engine.start()
        process = engine.launch(PROGRAM, input={"kind": "run", "n": 0}, seed=0)
        assert driver.both.wait(PATIENCE_S)
        stopping = threading.Thread(target=engine.stop)
        stopping.start()
        driver.goes_on.set()
        stopping.join(PATIENCE_S)
        assert driver.n_launched == 0
        assert process.next_event(PATIENCE_S) is not None
