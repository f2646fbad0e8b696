"""The process of a driver, seen from the engine: how it is started, looked at and ended."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pie import _engine
from pie.backends.base import Capabilities
from pie.errors import PieError
from pie.isolation import wire
from pie.isolation.worker import LOST, Order

if TYPE_CHECKING:
    from pie.backends.base import Driver

_SLICE_S = 0.1
_GRACE_S = 1.0
"""How long a process that was told to end may take."""
STOPPED_S = 2.0
"""How long a process may be stopped before it counts as lost."""
_ORDER_S = 10.0
"""How long it may take until the process has taken what it is to open."""
_DEATH_S = 5.0
"""How long a process that was killed is waited for: one that the system holds in a call ends when that does, and nobody
waits for it.
"""
_STDERR = 2


class DriverProcess:
    """A process that runs one driver, and the shared memory between the two."""

    def __init__(self, keeper: Executor, vocab_size: int, opening: Callable[[], Driver]) -> None:
        """Starts it.

        `keeper` has one thread, which lives as long as the process may: the system kills a process with that thread.
        """
        self._reason = ""
        order = pickle.dumps(opening)
        self.end = _engine.HostEnd(vocab_size, wire.LOOKING_S)
        self._connection, theirs = socket.socketpair()
        self.watched = -1
        try:
            starting = keeper.submit(_start, self.end.descriptors(), theirs)
        except BaseException:
            theirs.close()
            self._connection.close()
            raise
        try:
            self._popen = starting.result()
        except BaseException:
            self._connection.close()
            starting.add_done_callback(_end_started)  # whoever waited for it was interrupted
            raise
        try:
            self.watched = os.pidfd_open(self._popen.pid)
            self._connection.settimeout(_ORDER_S)
            # Its end is told where its capabilities are waited for.
            with suppress(BrokenPipeError, ConnectionResetError):
                wire.send(self._connection, order)
        except BaseException as error:
            self.close(at_once=True)
            if isinstance(error, TimeoutError):
                raise PieError("driver-lost", f"the process of the driver took no order for {_ORDER_S:g} s, and was killed") from None
            raise

    @property
    def pid(self) -> int:
        """Its number."""
        return self._popen.pid

    def capabilities(self, is_wanted: Callable[[], bool], timeout_s: float) -> Capabilities:
        """What its driver serves, when that was opened, which may take `timeout_s` (0: any time).

        Raises PieError: that of `open_driver`, `driver-lost` where the process ends, is stopped or is late before it
        has said anything, and `engine-stopped` where `is_wanted` says no in the meantime.
        """
        frame, said, stopping, since_s = wire.Frame(), None, Stopping(self), time.monotonic()
        self._connection.settimeout(_SLICE_S)
        while said is None:
            try:
                said = frame.read(self._connection)
            except TimeoutError:
                pass
            except (EOFError, ConnectionResetError):
                self.kill()  # whoever has closed the connection is about to end
                raise PieError("driver-lost", f"the process of the driver {self.ending()} while the driver was opened") from None
            # After a part of what it says too: one that says a byte at a time is late as others are.
            if not is_wanted():
                raise PieError("engine-stopped", "the engine was stopped while a driver was opened")
            if stopping.is_lost():
                raise PieError("driver-lost", f"the process of the driver {stopping.REASON} while the driver was opened")
            if said is None and timeout_s and time.monotonic() - since_s > timeout_s:
                message = (
                    f"the process of the driver did not open it within {timeout_s:g} s, engine.driver_open_timeout_s, and was killed; "
                    "raise that if the weights take so long to load"
                )
                raise PieError("driver-lost", message)
        content = json.loads(said)
        if "error" in content:
            raise PieError(*content["error"])
        return Capabilities(**content["capabilities"])

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def is_stopped(self) -> bool:
        """Whether somebody has stopped it (SIGSTOP). One that a debugger holds is not."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False
        # The name of the command may hold anything; what follows its last parenthesis is the state.
        return status.rpartition(")")[2].split()[:1] == ["T"]

    def ending(self) -> str:
        """How it ended, as a predicate; it has."""
        code = self._popen.poll()
        if code is None:
            return "has not ended"
        if code >= 0:
            reason = self._told_reason() if code == LOST else ""
            return f"ended with exit code {code}{f' ({reason})' if reason else ''}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    def _told_reason(self) -> str:
        """Why it gave up its device, in a line; nothing where it did not say, or said something else."""
        if not self._reason:
            with suppress(OSError, EOFError, ValueError, RecursionError):
                self._connection.settimeout(0.0)  # it has ended, so that what it said is here
                match json.loads(wire.receive(self._connection)):
                    case {"lost": str(reason)}:
                        self._reason = reason[: wire.MAX_REASON_CHARACTERS].partition("\n")[0]
        return self._reason

    def kill(self) -> None:
        """Ends it, whatever it does, and waits until it has, for as long as a process takes to die."""
        self._popen.kill()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_DEATH_S)

    def close(self, *, at_once: bool) -> None:
        """Has it end by itself, or where it does not, or should go `at_once`, kills it. A second call does nothing."""
        self._connection.close()
        if not at_once:
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(_GRACE_S)
        self.kill()
        if self.watched >= 0:
            os.close(self.watched)
            self.watched = -1


class Stopping:
    """Looks at a process that does not answer: one that was stopped for long is lost."""

    REASON = f"was stopped (SIGSTOP) for {STOPPED_S:g} s, and was killed"

    def __init__(self, process: DriverProcess) -> None:
        """Looks at nothing yet."""
        self._process = process
        self._since_s: float | None = None

    def is_lost(self) -> bool:
        """To be asked again and again; stopped between two questions and not at them does not count."""
        now_s = time.monotonic()
        self._since_s = (self._since_s or now_s) if self._process.is_stopped() else None
        return self._since_s is not None and now_s - self._since_s > STOPPED_S


def _start(channel: list[int], theirs: socket.socket) -> subprocess.Popen[bytes]:
    """Starts the process with its end of the connection, which is then its alone."""
    with theirs:
        order = Order(parent=os.getpid(), connection=theirs.fileno(), channel=channel, path=sys.path)
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "pie.isolation.worker", order.written()],
            stdin=subprocess.DEVNULL,
            # What a program prints is not what its driver prints.
            stdout=_STDERR if _is_open(_STDERR) else subprocess.DEVNULL,
            pass_fds=[theirs.fileno(), *channel],
            # Not a session of its own: Linux would weigh that against all threads of the engine together, by no
            # priority.
            process_group=0,
        )


def _end_started(starting: Future[subprocess.Popen[bytes]]) -> None:
    """Ends a process that nobody wants, where it was started."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()
        with suppress(subprocess.TimeoutExpired):
            starting.result().wait(_DEATH_S)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
