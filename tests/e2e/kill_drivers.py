"""Kills and stops the process of a driver in the middle of programs, many times, and looks whether any token was lost
or doubled.

    python tests/e2e/kill_drivers.py --kills 200 --stops 50 --tokens 1000000

Two rounds. In the first, programs draw at random on the dummy driver, whose rows depend on every slot that they see;
their tokens have to be those of a run without a loss. In the second, each token has to be the one after the last, for
as many tokens as are asked for. Prints a table; the exit code is 1 where a token is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pie._engine import Model, Process
from pie.backends.base import Driver
from pie.config import ModelConfig
from pie.engine import Engine
from pie.isolation.driver import IsolatedDriver
from support import isolated
from support.launching import finish, python_source

N_PROGRAMS = 32
CHUNK = 500
"""Tokens of one context of the second round: long ones would cost their length at each loss."""

COUNTING = python_source("""
from inferlet import Context, InferletError, Model, Sampler


async def main(input):
    last, n, lost, wrong = input["first"], 0, 0, 0
    while n < input["n"]:
        ctx = Context(Model.load("default"))
        ctx.append([last])
        left = min(input["chunk"], input["n"] - n)
        while left:
            g = ctx.generate(Sampler.argmax(), max_tokens=min(50, left), stop=[])
            while True:
                try:
                    tokens = await g.collect_tokens()
                    break
                except InferletError as error:
                    if error.code != "driver-lost":
                        raise
                    lost += 1
            for token in tokens:
                wrong += token != (last + 1) % 4096
                last = token
            n += len(tokens)
            left -= len(tokens)
            if not tokens:
                break
        ctx.release()
    return [n, lost, wrong]
""")


@dataclass
class Losses:
    """What was done to the driver, and how long it took."""

    kills: list[float] = field(default_factory=list)
    """Seconds from each SIGKILL until the next batch was answered."""
    stops: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    n_tokens: int = 0
    n_wrong: int = 0


class Killer:
    """Loses the driver of a model again and again, after a few batches each time."""

    def __init__(self, model: Model, driver: IsolatedDriver, losses: Losses, kinds: list[int], max_batches: int) -> None:
        self._model, self._driver, self._losses, self._kinds, self._max_batches = model, driver, losses, kinds, max_batches
        self._random = random.Random(7)
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def left(self) -> int:
        """Losses that are still to come."""
        return len(self._kinds)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join()

    def _run(self) -> None:
        while self._kinds and self._batches(self._random.randint(1, self._max_batches)):
            pid = self._driver.pid
            if pid is None:
                continue
            kind = self._kinds.pop()
            n_losses = self._model.stats()["n_device_losses"]
            since_s = time.monotonic()
            os.kill(pid, kind)
            while self._model.stats()["n_device_losses"] == n_losses and not self.over.wait(0.001):
                pass
            if self._batches(2):
                times = self._losses.kills if kind == signal.SIGKILL else self._losses.stops
                times.append(time.monotonic() - since_s)

    def _batches(self, n: int) -> bool:
        """Waits until so many more were planned; False where the programs end before."""
        until = self._model.stats()["n_batches"] + n
        while self._model.stats()["n_batches"] < until:
            if self.over.wait(0.001):
                return False
        return True


@contextmanager
def served(opening: Callable[[], Driver], *, apart: bool = True) -> Iterator[tuple[Engine, Model, Driver]]:
    """An engine that runs on the driver."""
    driver = IsolatedDriver(opening, isolated.VOCAB_SIZE) if apart else opening()
    options = ModelConfig(restarts_per_minute=1 << 20, max_waiting=1 << 16)
    with Engine() as engine:
        model = engine.add_model(driver=driver, options=options)
        engine.start()
        yield engine, model, driver
        model.check()
        assert model.stats()["n_pages_used"] == 0, "pages are left"


def draw(engine: Engine, n_tokens: int, seed: int) -> list[Process]:
    """Programs that step and programs that leave it to the engine, by turns."""
    programs = (isolated.STEPPING, isolated.COLLECTING)
    inputs = [{"prompt": [5, 6, 7 + idx], "n": n_tokens, "seed": 100 * seed + idx} for idx in range(N_PROGRAMS)]
    return [engine.launch(programs[idx % 2], input=given) for idx, given in enumerate(inputs)]


def drawing(losses: Losses, kinds: list[int]) -> None:
    """The first round: runs of 32 programs until the driver was lost as often as it should be."""
    n_tokens, n_runs = 200, 0
    with served(isolated.dummy) as (engine, model, driver), served(isolated.dummy, apart=False) as (other, _, _):
        assert isinstance(driver, IsolatedDriver)
        while kinds:
            n_runs += 1
            expected = [finish(process).value[0] for process in draw(other, n_tokens, n_runs)]
            with Killer(model, driver, losses, kinds, 60):
                ends = [finish(process) for process in draw(engine, n_tokens, n_runs)]
            for end, tokens in zip(ends, expected, strict=True):
                if end.code is not None:
                    losses.outcomes[f"ended with {end.code}"] += 1
                    losses.n_wrong += 1
                    continue
                losses.outcomes["lost passes, tried again, same tokens" if end.value[1] else "noticed nothing, same tokens"] += (
                    end.value[0] == tokens
                )
                losses.n_wrong += end.value[0] != tokens
                losses.n_tokens += len(tokens)
            print(
                f"run {n_runs}: {len(losses.kills)} kills, {len(losses.stops)} stops, {losses.n_wrong} wrong", file=sys.stderr, flush=True
            )


def counting(losses: Losses, kinds: list[int], n_tokens: int) -> int:
    """The second round; returns the passes that were lost."""
    n_lost, each = 0, -(-n_tokens // N_PROGRAMS)
    # Spread over the whole run.
    n_batches = max(1, 2 * each // max(1, len(kinds)))
    with served(isolated.CountingDriver) as (engine, model, driver):
        assert isinstance(driver, IsolatedDriver)
        with Killer(model, driver, losses, kinds, n_batches):
            inputs = [{"first": 100 * idx, "n": each, "chunk": CHUNK} for idx in range(N_PROGRAMS)]
            ends = [finish(process) for process in [engine.launch(COUNTING, input=given) for given in inputs]]
    for end in ends:
        if end.code is not None:
            losses.outcomes[f"ended with {end.code}: {end.message}"] += 1
            losses.n_wrong += 1
            continue
        n, lost, wrong = end.value
        losses.n_tokens += n
        losses.n_wrong += wrong + abs(n - each)
        n_lost += lost
    return n_lost


def main() -> int:
    """Runs both rounds; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200, help="SIGKILLs in the first round; a tenth as many in the second")
    parser.add_argument("--stops", type=int, default=50, help="SIGSTOPs, the same way")
    parser.add_argument("--tokens", type=int, default=1_000_000, help="tokens of the second round")
    asked = parser.parse_args()
    began_s = time.monotonic()
    first, second = Losses(), Losses()
    kinds = [signal.SIGKILL] * asked.kills + [signal.SIGSTOP] * asked.stops
    random.Random(1).shuffle(kinds)
    drawing(first, [int(kind) for kind in kinds])
    few = [int(signal.SIGKILL)] * (asked.kills // 10) + [int(signal.SIGSTOP)] * (asked.stops // 10)
    random.Random(2).shuffle(few)
    n_lost = counting(second, few, asked.tokens)
    print(f"first round: {first.n_tokens} tokens of {sum(first.outcomes.values())} programs, {first.n_wrong} wrong")
    for what, n in sorted(first.outcomes.items()):
        print(f"  {n:6} programs {what}")
    print(
        f"second round: {second.n_tokens} tokens, {n_lost} generations lost and tried again, {second.n_wrong} tokens lost, doubled or wrong"
    )
    for what, times in {"SIGKILL": first.kills + second.kills, "SIGSTOP": first.stops + second.stops}.items():
        if times:
            quantiles = [statistics.median(times), sorted(times)[int(0.95 * (len(times) - 1))], max(times)]
            print(
                f"{len(times)} {what}: seconds until batches are answered again: median, p95, most = "
                + ", ".join(f"{s:.2f}" for s in quantiles)
            )
    print(f"took {time.monotonic() - began_s:.0f} s")
    return int(first.n_wrong + second.n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
