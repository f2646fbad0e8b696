"""The processes of the other ranks, seen from the first: how they are started, spoken with, watched and ended."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path

import torch

from pie.backends.base import DriverLostError
from pie.backends.cuda.group import Group, Ranks
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.order import Order
from pie.batch import Batch
from pie.errors import PieError

_STDERR = 2
_PREFIX = "pie-ranks-"
_SETTLED_S = 60.0
"""Age from which a folder that nobody has locked is one that was left: a younger one may be about to be locked."""
_GRACE_S = 10.0
"""How long ranks that were told to end may take."""
_ENDING_S = 5.0
"""How long a rank that has broken off may take to end, before something else is taken for the cause."""


class _Rank:
    """One process and the connection to it."""

    def __init__(self, rank: int, folder: Path, options: CudaOptions, meeting: Path) -> None:
        self.name = f"rank {rank} of {options.tensor_parallel}"
        mine, theirs = socket.socketpair()
        with theirs:
            settings = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()}
            order = Order(str(folder), settings, rank, os.getpid(), str(meeting), theirs.fileno(), sys.path)
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pie.backends.cuda.rank", order.written()],
                stdin=subprocess.DEVNULL,
                # What a program prints is not what its driver prints.
                stdout=_STDERR,
                pass_fds=[theirs.fileno()],
            )
        self._socket = mine
        self.connection = Connection(os.dup(mine.fileno()))
        self._unheard: deque[bytes] = deque()
        """What it said and nobody asked for yet."""

    def ending(self) -> str | None:
        """How it ended and why, as a sentence; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        how = f"ended with exit code {code}" if code >= 0 else f"was killed by {_name(-code)}"
        with suppress(OSError, EOFError):
            while self.connection.poll(0):
                self._unheard.append(self.connection.recv_bytes())
        why = "".join(f" ({what[0]})" for word, *what in map(json.loads, self._unheard) if word == "lost")
        return f"{self.name} {how}{why}, and no rank has the whole model"

    def has_more(self) -> bool:
        """Whether it said something that nobody asked for yet."""
        return bool(self._unheard) or self.connection.poll(0)

    def is_gone(self) -> bool:
        """Whether its connection has ended: it has, or is about to."""
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))

    def leave(self) -> None:
        """Ends the connection, by which the process ends; a second call does nothing."""
        # To close it is not enough: whoever watches it keeps it open.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.connection.close()

    def heard(self, expected: str) -> None:
        """Waits until it says that. Raises PieError with what it says in its place, `driver-lost` where it ends."""
        try:
            said = self.told()
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_ENDING_S)
            raise PieError("driver-lost", self.ending() or f"{self.name} closed its connection") from None
        assert said == expected, f"{self.name} says {said!r} in the place of {expected!r}"

    def told(self) -> str:
        """The next word that it says. Raises PieError where that is why its share cannot be opened."""
        word, *what = json.loads(self._unheard.popleft() if self._unheard else self.connection.recv_bytes())
        if word == "error":
            code, message, details = what
            raise PieError(code, f"{self.name}: {message}", details)
        if word == "lost":
            raise PieError("driver-lost", f"{self.name} could not go on ({what[0]}), and no rank has the whole model")
        return str(word)


class Others:
    """All ranks but the first, which is this process."""

    def __init__(self, folder: Path, options: CudaOptions) -> None:
        """Starts them; `meet` has them open their shares."""
        self.size = options.tensor_parallel
        _sweep(Path(tempfile.gettempdir()))
        self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
        # Others see by the lock that it is in use; it ends with this process, whatever ends that. Where nothing can be
        # locked, they cannot lock it either, and leave it alone.
        self._lock = os.open(self._folder.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._meeting = Path(self._folder.name) / "meeting"
        self._ranks: list[_Rank] = []
        self._group: Group | None = None
        self._closing = threading.Event()
        # The system ends a rank with the thread that started it, which must not be one that ends before.
        self._keeper = ThreadPoolExecutor(1, "pie-ranks-keeper")
        self._watcher = threading.Thread(target=self._watch, name="pie-ranks", daemon=True)
        try:
            for rank in range(1, self.size):
                self._ranks.append(self._keeper.submit(_Rank, rank, folder, options, self._meeting).result())
        except BaseException:
            self.close(at_once=True)
            raise

    def meet(self, device: torch.device) -> Group:
        """Waits until each could open its share, and joins them.

        Raises PieError: what a rank lacks, or `driver-lost` where one has ended.
        """
        self._hear("ready")
        for rank in self._ranks:
            self._say(rank, b"go")
        self._group = Ranks(0, self.size, self._meeting, device)
        self._watcher.start()
        return self._group

    def wait_open(self) -> None:
        """Waits until each has opened its share. Raises PieError as `meet` does."""
        self._hear("open")

    def raise_told(self) -> None:
        """Raises PieError with what a rank says that could not open its share; what that was fails on others too."""
        for rank in self._ranks:
            # A rank that ends for no reason of its own says nothing, and is told of otherwise.
            with suppress(OSError, EOFError):
                while rank.has_more():
                    rank.told()

    def send(self, batch: Batch, *, is_followed: bool) -> None:
        """Has them launch a batch; `is_followed`: the batch before was launched too.

        Raises DriverLostError where one is gone.
        """
        self.check()
        content = bytes([is_followed]) + batch.words.tobytes()
        for rank in self._ranks:
            self._say(rank, content)

    def check(self) -> None:
        """Raises DriverLostError where one has ended, or is about to.

        To ask for its end is not enough: its connection ends before its process does. `_watch` has then ended what
        waits for it on this device, and what was computed behind that is nothing.
        """
        for rank in self._ranks:
            if rank.is_gone():
                raise DriverLostError(self.ending() or f"{rank.name} closed its connection")
            if ended := rank.ending():
                raise DriverLostError(ended)

    def ending(self) -> str | None:
        """How one has ended, which may be about to; None where all run."""
        watched = {rank.process.pid: rank for rank in self._ranks}
        for rank in watched.values():
            with suppress(subprocess.TimeoutExpired):
                rank.process.wait(_ENDING_S / len(watched))
            if ended := rank.ending():
                return ended
        return None

    def close(self, *, at_once: bool = False) -> None:
        """Ends them; a second call does nothing."""
        self._closing.set()
        for rank in self._ranks:
            rank.leave()
            if at_once:
                rank.process.kill()
        for rank in self._ranks:
            try:
                rank.process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                rank.process.kill()
                rank.process.wait()
        self._ranks.clear()
        self._keeper.shutdown()
        self._folder.cleanup()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _hear(self, expected: str) -> None:
        """Waits until all say that, in any order: a rank may wait for another one that has failed."""
        waiting = {rank.connection: rank for rank in self._ranks}
        while waiting:
            for connection in wait(list(waiting)):
                waiting.pop(connection).heard(expected)  # type: ignore[call-overload] # of all that are waited for

    def _say(self, rank: _Rank, content: bytes) -> None:
        try:
            rank.connection.send_bytes(content)
        except OSError:
            raise DriverLostError(self.ending() or f"{rank.name} closed its connection") from None

    def _watch(self) -> None:
        """Ends what waits for a rank that is gone, which the device would do for ever."""
        poll = select.poll()
        for rank in self._ranks:
            poll.register(rank.connection.fileno(), select.POLLRDHUP)
        poll.poll()
        if not self._closing.is_set() and self._group is not None:
            self._group.abort()


def _sweep(above: Path) -> None:
    """Removes the folders of drivers that ended without doing so."""
    for path in above.glob(f"{_PREFIX}*"):
        # One that is locked is in use, and one that cannot be read or removed is somebody else's.
        with suppress(OSError):
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(folder)
                if found.st_uid == os.getuid() and time.time() - found.st_mtime > _SETTLED_S:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
            finally:
                os.close(folder)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
