"""A driver in a process of its own, as any other driver."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pie.backends.base import Answer, Capabilities, Command, Drawn, DriverError, DriverLostError, FailedSequencesError
from pie.errors import PieError
from pie.isolation import wire
from pie.isolation.process import DriverProcess, Stopping

if TYPE_CHECKING:
    from pie.backends.base import Driver
    from pie.batch import Batch
    from pie.batch_layout import U32

_SLICE_S = 0.25
"""How often a process that does not answer is looked at."""


class IsolatedDriver:
    """Runs batches in another process; see `pie.backends.base.FollowingDriver`.

    Where that process is lost, `run`, `launch` and the functions that it answered raise DriverLostError, until
    `restart`. One that does not answer a batch within `timeout_s`, does not open its driver within `opening_timeout_s`
    (0: it may take any time), or is stopped, is killed and lost.
    """

    def __init__(self, opening: Callable[[], Driver], vocab_size: int, *, timeout_s: float = 0.0, opening_timeout_s: float = 0.0) -> None:
        """Starts the process, in which `opening`, which can be pickled, opens a driver of as many logits a row.

        Raises PieError: that of `opening`, `driver-lost` where the process is lost before it is open, `invalid-config`
        for another vocabulary.
        """
        self._opening = opening
        self._vocab_size = vocab_size
        self._timeout_s = timeout_s
        self._opening_timeout_s = opening_timeout_s
        self._keeper = ThreadPoolExecutor(1, "pie-driver-keeper")
        self._process: DriverProcess | None = None
        self._n_under_way = 0
        self._since_s = 0.0
        self._rows: dict[int, npt.NDArray[np.float32]] = {}
        """Those of each slot, as long as it has room for as many."""
        self._closed = False
        try:
            self._capabilities = self._start(lambda: True)
        except BaseException:
            self.close()
            raise

    @property
    def capabilities(self) -> Capabilities:
        """What the driver serves."""
        return self._capabilities

    @property
    def pid(self) -> int | None:
        """The process of the driver; none where it is lost or closed."""
        return None if self._process is None else self._process.pid

    def run(self, batch: Batch) -> Answer:
        """Answers a batch, in memory that stays as it is until the next call."""
        return self.launch(batch)()

    def launch(self, batch: Batch) -> Callable[[], Answer]:
        """Begins a batch; the function that it returns waits for the answer."""
        n_rows = batch.n_rows
        # What a driver draws, whether it follows or not, stands behind the rows that are wanted.
        n_rows += -(-int(batch.row_draws.sum()) // self._vocab_size)
        return partial(self._answer, self._send(batch.words, n_rows))

    def command(self, command: Command) -> None:
        """Has the driver carry out a command. Raises what that raises, and DriverLostError."""
        words = wire.command_words(command)
        process = self._send(words, 0)
        try:
            self._answer(process)
        except DriverError as error:
            refused = wire.refused(str(error))
            if refused is None:
                raise
            raise refused from None

    def _send(self, words: U32, n_rows: int) -> DriverProcess:
        process = self._running()
        if self._n_under_way == 0:
            self._since_s = time.monotonic()
        with _Losing(self._lost):
            process.end.send(words.data, n_rows)
        self._n_under_way += 1
        return process

    def check(self) -> None:
        """Raises DriverLostError where the process has ended."""
        process = self._running()
        if not process.is_alive():
            raise self._lost(process.ending())

    def restart(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Starts the process anew, without anything that it had.

        Raises PieError as the constructor does, `invalid-config` where the driver has other sizes than before, and
        `engine-stopped` where `is_wanted` says no in the meantime; the driver is lost then.
        """
        self._end(at_once=True)
        found = self._start(is_wanted)
        if replace(found, copy_page_ns=0) != replace(self._capabilities, copy_page_ns=0):
            self._end(at_once=True)
            raise PieError(
                "invalid-config",
                f"the driver serves {found}, and served {self._capabilities} before; start the engine again to change that",
            )

    def close(self) -> None:
        """Ends the process; a second call does nothing, `run` afterwards is a DriverError."""
        self._closed = True
        # What runs is of use to nobody.
        self._end(at_once=self._n_under_way > 0)
        self._keeper.shutdown()

    def _start(self, is_wanted: Callable[[], bool]) -> Capabilities:
        self._n_under_way = 0
        self._rows.clear()
        self._process = DriverProcess(self._keeper, self._vocab_size, self._opening)
        try:
            found = self._process.capabilities(is_wanted, self._opening_timeout_s)
            if found.vocab_size != self._vocab_size:
                message = f"the driver {found.backend} answers rows of {found.vocab_size} logits, and {self._vocab_size} are expected"
                raise PieError("invalid-config", message, {"driver": found.vocab_size, "model": self._vocab_size})
        except BaseException:
            self._end(at_once=True)
            raise
        return found

    def _end(self, *, at_once: bool) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.close(at_once=at_once)

    def _running(self) -> DriverProcess:
        if self._closed:
            raise DriverError("the driver is closed")
        if self._process is None:
            raise DriverLostError("it is not started")
        return self._process

    def _lost(self, reason: str) -> DriverLostError:
        self._n_under_way = 0
        self._end(at_once=True)
        return DriverLostError(f"it {reason}")

    def _answer(self, process: DriverProcess) -> Answer:
        if process is not self._running():
            raise DriverLostError("it was started again meanwhile")
        with _Losing(self._lost):
            self._wait(process)
            answer = process.end.take()
            if answer is None:
                raise DriverError("it answered and there is no answer")
        self._n_under_way -= 1
        self._since_s = time.monotonic()
        outcome, slot, n_rows, n_most_rows, n_tokens, text = answer
        if outcome == "failed":
            raise DriverError(text)
        rows = self._rows.get(slot)
        if rows is None or len(rows) != n_most_rows:
            rows = self._rows[slot] = np.frombuffer(memoryview(process.end.rows(slot)), np.float32).reshape(n_most_rows, self._vocab_size)
        logits = rows[:n_rows]
        found: Answer = logits
        if outcome == "drawn":
            found = Drawn(rows.reshape(-1)[logits.size : logits.size + n_tokens].view(np.uint32), logits)
        if text:
            raise FailedSequencesError(found, _reasons(text))
        return found

    def _wait(self, process: DriverProcess) -> None:
        stopping = Stopping(process)
        while (answered := process.end.wait(process.watched, _SLICE_S)) is not True:
            if answered is False:
                process.kill()  # it has ended: how is known when it was waited for
                raise self._lost(process.ending())
            now_s = time.monotonic()
            if self._timeout_s and now_s - self._since_s > self._timeout_s:
                raise self._lost(f"did not answer the batch within {self._timeout_s:g} s, engine.driver_timeout_s, and was killed")
            if stopping.is_lost():
                raise self._lost(Stopping.REASON)


class _Losing:
    """What is raised between a batch and its answer ends the process.

    Otherwise the next answer would be taken for that of another batch.
    """

    __slots__ = ("_lose",)

    def __init__(self, lose: Callable[[str], DriverLostError]) -> None:
        """`lose` ends it, for a reason."""
        self._lose = lose

    def __enter__(self) -> None:
        """Nothing was raised yet."""

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        """Raises DriverLostError for what was raised; what interrupts goes on."""
        if error is None or isinstance(error, DriverLostError):
            return
        if isinstance(error, Exception):
            raise self._lose(f"could not be spoken with ({type(error).__name__}: {error})") from error
        self._lose("was interrupted")


def _reasons(text: str) -> dict[int, str]:
    """Which sequences failed, and why, as the process wrote it."""
    with suppress(ValueError, TypeError):
        return {int(seq_idx): str(why) for seq_idx, why in json.loads(text)}
    raise DriverError("some sequences failed, and which is not legible")
