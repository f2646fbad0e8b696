"""Drives a model whose driver has a process of its own, and starts that anew when it is lost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from pie.backends.base import DriverLostError
from pie.errors import PieError
from pie.runner import drive

if TYPE_CHECKING:
    from pie import _engine
    from pie.batch import Batch
    from pie.isolation.driver import IsolatedDriver

_WINDOW_S = 60.0
_SLICE_S = 0.1
_FIRST_DELAY_S = 0.1
_MAX_DELAY_S = 10.0


_VAIN_STARTS = 3
"""Starts in a row that may fail before requests are refused."""


class Restarts:
    """When a driver that is lost may be started again: at once where it ran, later and later where it never does."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._lost_s: deque[float] = deque()
        self._n_in_vain = 0

    def lost(self, now_s: float, *, ran: bool) -> None:
        """It is lost; `ran` says whether it was open."""
        self._n_in_vain = 0 if ran else self._n_in_vain + 1
        self._lost_s.append(now_s)

    @property
    def is_given_up(self) -> bool:
        """Whether it could not be started so often in a row that nobody should wait for it.

        It is tried all the same.
        """
        return self._n_in_vain >= _VAIN_STARTS

    def is_exhausted(self, now_s: float) -> bool:
        """Whether it was lost more often within a minute than it may be."""
        while self._lost_s and self._lost_s[0] <= now_s - _WINDOW_S:
            self._lost_s.popleft()
        return len(self._lost_s) > self._per_minute

    def wait_s(self, now_s: float) -> float:
        """How long to wait before it is started: where it was lost too often, until that is so no more."""
        delay_s = min(_MAX_DELAY_S, _FIRST_DELAY_S * 2 ** (self._n_in_vain - 1)) if self._n_in_vain else 0.0
        if not self.is_exhausted(now_s):
            return delay_s
        # So many losses have to lie more than a minute back.
        oldest_s = self._lost_s[len(self._lost_s) - 1 - self._per_minute]
        return max(delay_s, oldest_s + _WINDOW_S - now_s)


def supervise(
    model: _engine.Model, driver: IsolatedDriver, *, restarts_per_minute: int, observe: Callable[[Batch, object], None] | None = None
) -> None:
    """Runs the batches of `model` until the engine stops, as `pie.runner.drive` does.

    Where the driver is lost, the requests of its batches fail with `driver-lost`, and it is started again, at most so
    many times a minute: beyond that, requests are refused with `model-unavailable` until it may be tried again.
    """
    restarts = Restarts(restarts_per_minute)
    while not model.stopped:
        try:
            drive(model, driver, observe=observe, idle=driver.check)
        except DriverLostError as lost:
            reason = str(lost)
            restarts.lost(time.monotonic(), ran=True)
        else:
            return
        _start_again(model, driver, restarts, f"the process of its driver was lost: {reason}")


def _start_again(model: _engine.Model, driver: IsolatedDriver, restarts: Restarts, reason: str) -> None:
    """Until it is, or the engine stops."""
    detail = ""
    while not model.stopped:
        now_s = time.monotonic()
        wait_s = restarts.wait_s(now_s)
        if restarts.is_given_up:
            model.set_state("failed", reason, detail)
        elif restarts.is_exhausted(now_s):
            model.set_state("failed", f"{reason}; this happened too often (model.NAME.restarts_per_minute)", detail)
        else:
            model.set_state("restarting", reason, detail)
        while wait_s > 0 and not model.stopped:
            time.sleep(min(wait_s, _SLICE_S))
            wait_s -= _SLICE_S
        if model.stopped:
            return
        try:
            driver.restart(lambda: not model.stopped)
        except PieError as error:
            # What the error says may name paths of this machine, which are for its operator alone.
            reason, detail = f"its driver cannot be started again ({error.code})", error.message
            restarts.lost(time.monotonic(), ran=False)
            continue
        except Exception as error:  # where the system has no memory, processes or descriptors left
            reason, detail = "its driver cannot be started again (internal)", f"{type(error).__name__}: {error}"
            restarts.lost(time.monotonic(), ran=False)
            continue
        model.set_state("serving", "", "")
        return
