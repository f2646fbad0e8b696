"""The events of one process on their way to whoever reads them: a queue that the window of the process bounds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from pie.client.wire import event_bytes
from pie.errors import PieError
from pie.events import AnyEvent, Event, LastEvent

# A server that does not keep to the window is cut off after this many times as much.
_WINDOWS_TOLERATED = 4
# The most that `limits.queue_events` of a server may be, and as many again: events without a text count nothing in a
# window.
_MAX_WAITING = 1 << 21


class Stream:
    """Events that arrived and were not taken.

    The connection fills it and never waits; acks are what lets the server send more.
    """

    def __init__(self, pid: int, *, window_bytes: int, after_seq: int, ack: Callable[[int, int, bool], None]) -> None:
        """`ack(pid, seq, now)` is called for what was taken; events up to `after_seq` are passed over."""
        self.pid = pid
        self.last: LastEvent | None = None
        """The last event, once it was taken."""
        self._window_bytes = window_bytes
        self._ack = ack
        self._seq = after_seq
        self._taken_bytes = 0
        self._waiting: deque[tuple[AnyEvent, int]] = deque()
        self._waiting_bytes = 0
        self._end: PieError | None = None
        self._changed = asyncio.Event()

    def push(self, event: AnyEvent) -> None:
        """Takes an event that arrived. PieError `protocol-error` from a server that sends far more than was acked."""
        if self._end is not None or event.seq <= self._seq:
            return
        self._seq = event.seq
        n_bytes = event_bytes(event)
        if self._waiting_bytes > _WINDOWS_TOLERATED * self._window_bytes or len(self._waiting) >= _MAX_WAITING:
            message = (
                f"the server sent {len(self._waiting)} events of process {self.pid} with {self._waiting_bytes} bytes before they were "
                f"read, beyond its window of {self._window_bytes} bytes"
            )
            raise PieError("protocol-error", message)
        self._waiting.append((event, n_bytes))
        self._waiting_bytes += n_bytes
        self.wake()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be read, and nothing more comes."""
        return self._end is not None and not self._waiting

    def fail(self, error: PieError) -> None:
        """Ends the stream: a reader gets what has arrived, then the error."""
        if self._end is None:
            self._end = error
            self.wake()

    def abandon(self, error: PieError) -> None:
        """Ends the stream at once: what has arrived and was not read stays with the server."""
        self._waiting.clear()
        self._waiting_bytes = 0
        self.fail(error)

    async def take(self) -> AnyEvent | None:
        """The next event; None after the last.

        A cancelled call has taken nothing. The errors are those of `take_now`.
        """
        while (event := self.take_now()) is None and self.last is None:
            await self.change()
        return event

    async def change(self) -> None:
        """Waits until something about the stream has changed, or `wake` was called."""
        self._changed.clear()
        await self._changed.wait()

    def wake(self) -> None:
        """Has everybody who waits look again."""
        self._changed.set()

    def take_now(self) -> AnyEvent | None:
        """The next event, if one has arrived.

        Raises PieError `connection-failed` when the connection broke, `session-closed` after `detach`.
        """
        if not self._waiting:
            if self._end is not None and self.last is None:
                raise PieError(self._end.code, self._end.message, self._end.details)
            return None
        event, n_bytes = self._waiting.popleft()
        self._waiting_bytes -= n_bytes
        self._taken_bytes += n_bytes
        if isinstance(event, Event.Return | Event.Error):
            self.last = event
            self.wake()
        urgent = self.last is not None or self._taken_bytes >= self._window_bytes // 4
        if urgent:
            self._taken_bytes = 0
        self._ack(self.pid, event.seq, urgent)
        return event
