"""Drivers for processes of their own, which end, hang or refuse as they are told; and a program that tries again when
its driver is lost.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pie.backends.base import Capabilities, Command, CommandedDriver, Drawn, Driver, DriverError, DriverLostError, UnsupportedError
from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.errors import PieError
from support.launching import PATIENCE_S, python_source

VOCAB_SIZE = 4096
"""That of the embedded tokenizer."""
N_PAGES = 2048

STEPPING = python_source("""
from inferlet import Context, InferletError, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(input["prompt"])
    g = ctx.generate(Sampler.top_p(0.9, 0.95), max_tokens=input["n"], seed=input.get("seed", 1))
    tokens, codes = [], []
    while True:
        try:
            step = await anext(g)
            tokens += (await step.execute()).tokens
        except StopAsyncIteration:
            return [tokens, codes]
        except InferletError as error:
            if error.code != "driver-lost":
                raise
            codes.append(error.code)
""")
"""Draws `n` tokens behind a prompt, one by one, and again where the driver was lost; answers them, and the codes of
what it saw.
"""

COLLECTING = python_source("""
from inferlet import Context, InferletError, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(input["prompt"])
    tokens, codes = [], []
    while len(tokens) < input["n"]:
        n = min(input.get("each", 50), input["n"] - len(tokens))
        g = ctx.generate(Sampler.top_p(0.9, 0.95), max_tokens=n, seed=input.get("seed", 1), stop=[])
        while True:
            try:
                tokens += await g.collect_tokens()
                break
            except InferletError as error:
                if error.code != "driver-lost":
                    raise
                codes.append(error.code)
    return [tokens, codes]
""")
"""The same in generations of `each` tokens that the engine steps."""


class CountingDriver:
    """Every token is followed by the next id."""

    def __init__(self) -> None:
        self.capabilities = Capabilities("counting", VOCAB_SIZE, 1 << 15, 16, N_PAGES, 512, positions=True)

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Rows that prefer the next id."""
        logits = np.zeros((batch.n_rows, VOCAB_SIZE), np.float32)
        if batch.n_rows:
            logits[np.arange(batch.n_rows), (batch.tokens[batch.row_token] + 1) % VOCAB_SIZE] = 100.0
        return logits

    def close(self) -> None:
        """Nothing is held."""


class Doing:
    """A driver that does something before its n-th batch."""

    def __init__(self, driver: Driver, n: int, what: Callable[[], Any]) -> None:
        self._driver = driver
        self._n = n
        self._what = what
        self.capabilities = driver.capabilities

    def run(self, batch: Batch) -> Any:
        """The rows, where it comes to them."""
        self._n -= 1
        if self._n == 0:
            self._what()
        return self._driver.run(batch)

    def close(self) -> None:
        """Closes the driver."""
        self._driver.close()


def dummy(*, follows: bool = False, vocab_size: int = VOCAB_SIZE) -> Driver:
    """The dummy driver, with host memory."""
    return DummyDriver("dummy", vocab_size=vocab_size, n_pages=N_PAGES, host_pages=64, follows=follows)


def losing(n: int) -> Driver:
    """The dummy driver, whose device is lost before its n-th batch."""

    def lose() -> None:
        raise DriverLostError("the device does not work any more")

    return Doing(dummy(), n, lose)


class Drawing(Doing):
    """A driver that draws by itself and does not follow; it answers some tokens more than it was asked for."""

    def __init__(self, driver: Driver, n_more: int) -> None:
        super().__init__(driver, 0, bool)
        self._n_more = n_more
        self.capabilities = replace(driver.capabilities, follows=False)

    def run(self, batch: Batch) -> Drawn:
        """What it drew."""
        answer = self._driver.run(batch)
        assert isinstance(answer, Drawn)
        return Drawn(np.append(answer.tokens, np.zeros(self._n_more, np.uint32)), answer.logits)


class Commanded(Doing):
    """A driver that does something before its first command."""

    def run(self, batch: Batch) -> Any:
        """What the driver answers."""
        return self._driver.run(batch)

    def command(self, command: Command) -> None:
        """Carries it out, where it comes to that."""
        self._what()
        assert isinstance(self._driver, CommandedDriver)
        self._driver.command(command)


def without_adapters() -> Driver:
    """The dummy driver, which declares that it has no adapters."""
    driver = Doing(dummy(), 0, bool)
    driver.capabilities = replace(driver.capabilities, adapters=False)
    return driver


def draws(*, vocab_size: int = VOCAB_SIZE, n_more: int = 0) -> Driver:
    """The dummy driver, which draws by itself and does not follow."""
    return Drawing(dummy(follows=True, vocab_size=vocab_size), n_more)


def speechless() -> Driver:
    """The dummy driver without its second verb, which declares adapters."""
    return Doing(dummy(), 0, bool)


class Refusing(Doing):
    """A driver that says of each command what it got, and of each batch that it serves none."""

    def run(self, batch: Batch) -> Any:
        """Nothing."""
        raise UnsupportedError("no batches on this driver")

    def command(self, command: Command) -> None:
        """Repeats it."""
        raise DriverError(hashlib.sha256(repr(command).encode()).hexdigest())


def refuses_all() -> Driver:
    """Serves neither batches nor commands."""
    return Refusing(dummy(), 0, bool)


def ends_at_a_command(flag: Path) -> Driver:
    """The first of these drivers ends its process at its first command."""
    return Commanded(dummy(), 0, partial(once, flag, partial(os._exit, 7)))


def once(flag: Path, what: Callable[[], Any]) -> None:
    """Does it the first time, in whatever process."""
    if not flag.exists():
        flag.touch()
        what()


def ends_once(flag: Path, n: int) -> Driver:
    """The first of these drivers ends its process, with exit code 7, at the n-th batch."""
    return Doing(dummy(), n, partial(once, flag, partial(os._exit, 7)))


def hangs_once(flag: Path, n: int) -> Driver:
    """The first of these drivers does not come back from its n-th batch."""
    return Doing(dummy(), n, partial(once, flag, partial(time.sleep, 2 * PATIENCE_S)))


def ends_always(n: int) -> Driver:
    """Ends its process at the n-th batch."""
    return Doing(dummy(), n, partial(os._exit, 7))


def refuses() -> Driver:
    """Cannot be opened."""
    raise PieError("invalid-model", "the weights are of another model", {"option": "path"})


def breaks() -> Driver:
    """Cannot be opened, for a fault of its own."""
    raise ZeroDivisionError("a bug of the driver")


def dies() -> Driver:
    """Ends its process where it should be opened."""
    os._exit(9)


def stops() -> Driver:
    """Is stopped where it should be opened, and goes on only where somebody lets it."""
    os.kill(os.getpid(), signal.SIGSTOP)
    return dummy()


def opens_late(flag: Path) -> Driver:
    """Does not open while a file is there."""
    while flag.exists():
        time.sleep(0.01)
    return dummy()


def opens_once(flag: Path) -> Driver:
    """Opens once, then no more: what it says then names a file of this machine."""
    if flag.exists():
        raise PieError("invalid-model", f"{flag} is gone")
    flag.touch()
    return Doing(dummy(), 3, partial(os._exit, 7))


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Until it holds."""
    patience_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < patience_s, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.001)
