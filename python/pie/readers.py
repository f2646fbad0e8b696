"""Who reads the events of a process: one iterator at a time, so that two loops never get a part each."""

from __future__ import annotations

import asyncio
import copy
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self, TypeVar

from pie.errors import PieError
from pie.events import AnyEvent, Event


class Readers:
    """The iterators over the events of one process."""

    def __init__(self, pid: int, wake: Callable[[], None] = lambda: None) -> None:
        """`wake` is called where an iterator no longer reads, and may be called more often."""
        self.wake = wake
        self._pid = pid
        self._lock = threading.Lock()
        self._all: weakref.WeakSet[Reader] = weakref.WeakSet()

    @property
    def is_read_elsewhere(self) -> bool:
        """Whether an iterator waits for an event, or another task or thread than this one loops over them."""
        with self._lock:
            return self._is_read_beside(None)

    def check(self) -> None:
        """Raises PieError `future-taken` where `is_read_elsewhere`."""
        if self.is_read_elsewhere:
            raise self._refused()

    def add(self, reader: Reader) -> None:
        """Takes in a further iterator; it leaves with its last reference."""
        with self._lock:
            self._all.add(reader)

    def begin(self, reader: Reader) -> None:
        """Has an iterator wait for an event; the error is that of `check`, which its own waits do not cause."""
        with self._lock:
            if self._is_read_beside(reader):
                raise self._refused()
            reader.begin()

    def _is_read_beside(self, own: Reader | None) -> bool:
        return any(reader is not own and reader.is_elsewhere for reader in self._all)

    def _refused(self) -> PieError:
        message = f"the events of process {self._pid} are read already, by another loop, which gets all of them; read them in one place"
        return PieError("future-taken", message)


class Reader:
    """One iterator over the events of a process, or one loop over it, which holds them until it is left."""

    def __init__(self, readers: Readers, *, is_loop: bool = False) -> None:
        self._readers = readers
        self._is_loop = is_loop
        self._n_waits = 0
        self._holder: asyncio.Task[Any] | threading.Thread | None = None
        readers.add(self)
        weakref.finalize(self, readers.wake).atexit = False  # a loop that was left leaves its events to others

    def looping(self) -> Reader:
        """That of a loop over the same events."""
        return Reader(self._readers, is_loop=True)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it waits for an event, or is a loop of another task or thread that was not left."""
        holder = self._holder
        return self._n_waits > 0 or (holder is not None and holder is not _current() and not _has_ended(holder))

    def begin(self) -> None:
        """Notes that it waits for an event, and who loops."""
        self._n_waits += 1
        holder = _current() if self._is_loop else None
        if holder is not self._holder:
            self._holder = holder
            if isinstance(holder, asyncio.Task):
                wake = self._readers.wake
                holder.add_done_callback(lambda _: wake())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Waits for one event inside. Raises PieError `future-taken` where another iterator reads them."""
        self._readers.begin(self)
        try:
            yield
        except PieError:  # nothing more comes
            self.end()
            raise
        finally:
            self._n_waits -= 1
            if self._holder is None:
                self._readers.wake()

    def end(self) -> None:
        """Notes that it has read all of them."""
        self._is_loop = False
        self._holder = None


class EventIterator:
    """Gives the events of a process in order, up to its last, to a loop that blocks."""

    def __init__(self, take: Callable[[], AnyEvent | None], readers: Readers) -> None:
        """`take` waits for an event and takes it, and gives None after the last."""
        self._take = take
        self._reader = Reader(readers)

    def __iter__(self) -> Self:
        return looping(self)

    def __next__(self) -> AnyEvent:
        with self._reader.waiting():
            event = self._take()
        if event is None or isinstance(event, Event.Return | Event.Error):
            self._reader.end()
        if event is None:
            raise StopIteration
        return event


class _Iterator(Protocol):
    _reader: Reader


_E = TypeVar("_E", bound=_Iterator)


def looping(events: _E) -> _E:
    """The iterator of one loop over events: its last reference goes when the loop is left."""
    loop = copy.copy(events)
    loop._reader = events._reader.looping()
    return loop


def _current() -> asyncio.Task[Any] | threading.Thread:
    """The task that runs, or else the thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.current_thread()


def _has_ended(holder: asyncio.Task[Any] | threading.Thread) -> bool:
    return holder.done() if isinstance(holder, asyncio.Task) else not holder.is_alive()
