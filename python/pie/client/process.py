"""A process of a server, as the client that is attached to it sees it."""

from __future__ import annotations

from typing import Any, NoReturn, Self

import msgspec

from pie import checks
from pie.client.connection import Connection, nothing
from pie.client.stream import Stream
from pie.errors import PieError
from pie.events import AnyEvent, Event, failure
from pie.readers import Reader, Readers, looping


class Events:
    """The events of a process in order, up to its last, `Return` or `Error`.

    Leaving the loop loses no event that it was not given.
    """

    def __init__(self, stream: Stream, readers: Readers) -> None:
        self._stream = stream
        self._reader = Reader(readers)

    def __aiter__(self) -> Self:
        return looping(self)

    def __iter__(self) -> NoReturn:
        """Says how they are looped over."""
        raise TypeError("these events are awaited: write `async for event in process.events()`; those of pie.client.sync are not")

    async def __anext__(self) -> AnyEvent:
        with self._reader.waiting():
            event = await self._stream.take()
        if self._stream.last is not None:
            self._reader.end()
            self._stream.wake()
        if event is None:
            raise StopAsyncIteration
        return event


class Process:
    """A launched program. One client at a time is attached to it and reads its events; each event is read once.

    Every method raises PieError `connection-failed` when the connection broke: the process may go on, so attach to it
    again; and `invalid-argument` for an argument of the wrong type, before anything is sent.
    """

    def __init__(self, connection: Connection, stream: Stream, launch_seed: int | None) -> None:
        self._connection = connection
        self._stream = stream
        self._launch_seed = launch_seed
        self._readers = Readers(stream.pid, stream.wake)

    @property
    def pid(self) -> int:
        """Its number, which its server gives to no other process, also after it has started again."""
        return self._stream.pid

    @property
    def launch_seed(self) -> int | None:
        """The seed from which every unseeded draw derives; launching with it again repeats the run.

        None where another launched it.
        """
        return self._launch_seed

    @property
    def has_ended(self) -> bool:
        """Whether the last event was read here: by `events`, or by `result`."""
        return self._stream.last is not None

    def events(self) -> Events:
        """The events that were not read yet, in order; what is not read in time holds the program up, and nobody else.

        PieError `connection-failed` ends the loop when the connection breaks, `session-closed` after `detach`. While
        one iterator waits, or another task loops over one, a second is the error `future-taken`: the first gets all.
        """
        self._readers.check()
        return Events(self._stream, self._readers)

    async def next_event(self) -> AnyEvent | None:
        """Waits for one event and takes it; None after the last. The errors are those of `events`."""
        return await self._stream.take()

    async def result(self) -> Any:
        """Waits for the end and returns what the program returned; an error of the program is a PieError with its code.

        Its text is `KeyError: 'greeting'` for an exception that the program did not handle; `details` has the parts:
        `kind`, `message` and `traceback`, and the `pid`.

        Events that nobody reads are passed over, also where an iterator is held in which nobody waits; while another
        task loops over `events`, they are left to it.
        """
        while self._stream.last is None:
            is_left_to_loops = self._readers.is_read_elsewhere and not self._stream.is_over
            if is_left_to_loops or self._stream.take_now() is None:
                await self._stream.change()
        last = self._stream.last
        if isinstance(last, Event.Error):
            raise failure(last, self.pid)
        return last.value

    async def send(self, text: str) -> None:
        """Sends a message, which the program receives with `session.receive`.

        Raises PieError `limit-queue` when its queue is full (send again after it has received some), `limit-message`
        for a text that is too long, `session-closed` when the program has ended or the input was closed.
        """
        await self._connection.request("send", {"pid": self.pid, "text": checks.text("text", text)}, nothing)

    async def signal(self, text: str) -> None:
        """Sends a signal: a message that the program receives with the others, in order.

        The errors are those of `send`.
        """
        await self._connection.request("signal", {"pid": self.pid, "text": checks.text("text", text)}, nothing)

    async def transfer_file(self, data: bytes | bytearray | memoryview) -> None:
        """Sends a file, which the program receives with `session.receive_file`. The errors are those of `send`."""
        await self._connection.transfer({"type": "file", "pid": self.pid}, checks.content("data", data))

    async def close_input(self) -> None:
        """Says that no message and no file will follow: when the program has received what waits, `receive` fails."""
        await self._connection.request("close_input", {"pid": self.pid}, nothing)

    async def terminate(self) -> None:
        """Ends the program; its last event is the error `cancelled`, unless it has ended before."""
        await self._connection.request("terminate", {"pid": self.pid}, nothing)

    async def detach(self) -> None:
        """Leaves the process running for whoever attaches next. Events that were not read here are kept for them."""

        def accept(_: msgspec.Raw) -> None:  # also where the caller has given up: the server has let go
            self._connection.drop(self._stream)
            self._stream.abandon(PieError("session-closed", f"this client has detached from process {self.pid}; attach to it again"))

        await self._connection.settle()
        await self._connection.request("detach", {"pid": self.pid}, accept)
