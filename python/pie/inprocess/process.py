"""A program that was launched in an engine of this process: its events, its value, and what is sent to it."""

from __future__ import annotations

import asyncio
import threading
import weakref
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from pie import checks
from pie.errors import PieError
from pie.events import AnyEvent, Event, LastEvent, failure
from pie.readers import EventIterator, Readers, looping

if TYPE_CHECKING:
    from pie import _engine


class Process:
    """A launched program. Each of its events is read once, in one place; whoever drops the process ends the program.

    What nobody reads waits, and holds the program up when it is too much. Ctrl-C ends a wait, and not the program.
    """

    def __init__(self, raw: _engine.Process, owner: object = None) -> None:
        """Wraps a process; `owner`, its engine, is not closed by being forgotten while the process is held."""
        self._raw = raw
        self._owner = owner
        self._lock = threading.Lock()
        self._last: LastEvent | None = None
        self._readers = Readers(raw.pid)
        self._reader: _Reader | None = None
        # What a task of asyncio waits for; one that was cancelled leaves it to whoever reads next.
        self._asked: Future[AnyEvent | None] | None = None

    @property
    def pid(self) -> int:
        """Its number, counted from 1 in each engine."""
        return self._raw.pid

    @property
    def launch_seed(self) -> int:
        """The seed from which every unseeded draw derives; launching with it again repeats the run."""
        return self._raw.launch_seed

    @property
    def ended(self) -> bool:
        """Whether the last event was read."""
        return self._last is not None or self._raw.ended

    @property
    def cpu_s(self) -> float:
        """Processor time that the program has used."""
        return self._raw.cpu_s

    def events(self) -> Events:
        """The events that were not read yet, in order, for `for` and for `async for`; the last is Return or Error.

        While another thread or task waits in an iterator, or loops over one, a second is the error `future-taken`.
        """
        self._readers.check()
        return Events(self)

    def result(self) -> Any:
        """Waits for the end and returns what the program returned, passing over events that were not read.

        An error of the program is a PieError with its code; `details` has its `kind`, `message` and `traceback`.
        """
        while self._take() is not None:
            pass
        return self._value()

    async def result_async(self) -> Any:
        """As `result`, and other tasks run meanwhile. To cancel the wait ends no program."""
        while await self._take_async() is not None:
            pass
        return self._value()

    def send(self, text: str, timeout_s: float | None = None) -> None:
        """Sends a message, which the program receives with `session.receive`.

        It waits at most `timeout_s` until the queue of the program has room; None: as long as that takes. Raises
        PieError `limit-queue` when there is none, `limit-message` for a text that is too long, `session-closed` when
        the program has ended or the input was closed.
        """
        self._raw.send(checks.text("text", text), checks.wait_s("timeout_s", timeout_s))

    def send_file(self, data: bytes | bytearray | memoryview, timeout_s: float | None = None) -> None:
        """Sends a file, which the program receives with `session.receive_file`; the rest as in `send`."""
        self._raw.send_file(checks.content("data", data), checks.wait_s("timeout_s", timeout_s))

    def close_input(self) -> None:
        """Says that nothing will follow: when the program has received what waits, `receive` fails."""
        self._raw.close_input()

    def cancel(self) -> None:
        """Ends the program; its last event is the error `cancelled`, unless it has ended before."""
        self._raw.cancel()

    def __repr__(self) -> str:
        return f"<Process {self.pid}, {'ended' if self.ended else 'running'}>"

    def _take(self) -> AnyEvent | None:
        """The next event, for which this thread waits; None after the last."""
        while self._last is None:
            asked = self._asked
            if asked is None:
                event = self._raw.next_event()
                with self._lock:
                    self._note(event)
                return event
            event = asked.result()
            if self._claim(asked, event):
                return event
        return None

    async def _take_async(self) -> AnyEvent | None:
        """The next event, for which this task waits; None after the last. A cancelled call has taken nothing."""
        while (asked := self._ask()) is not None:
            event = await asyncio.wrap_future(asked)
            if self._claim(asked, event):
                return event
        return None

    def _ask(self) -> Future[AnyEvent | None] | None:
        """Has the reader wait for an event, unless it does so already; None where there is no further one."""
        with self._lock:
            if self._last is not None:
                return None
            if self._reader is None:
                self._reader = _Reader(self._raw)
                weakref.finalize(self, self._reader.give_up)
            if self._asked is None:
                self._asked = self._reader.ask()
            return self._asked

    def _claim(self, asked: Future[AnyEvent | None], event: AnyEvent | None) -> bool:
        """Whether the event is for the caller: of several who wait for one, the first to come has it."""
        with self._lock:
            if self._asked is not asked:
                return False
            self._asked = None
            self._note(event)
            return True

    def _note(self, event: AnyEvent | None) -> None:
        """Keeps the last event; called with the lock, so that nothing is asked of a reader that has ended."""
        if isinstance(event, Event.Return | Event.Error):
            self._last = event
            if self._reader is not None:
                self._reader.end()

    def _value(self) -> Any:
        last = self._last
        if last is None:
            message = f"the last event of process {self.pid} was read elsewhere; read its events, or wait for its value, in one place"
            raise PieError("future-taken", message)
        if isinstance(last, Event.Error):
            error = failure(last, self.pid)
            if last.traceback.strip():
                error.add_note(last.traceback.rstrip("\n"))
            raise error
        return last.value


class Events(EventIterator):
    """The events of a process in order, up to its last. Leaving the loop loses no event that it was not given."""

    def __init__(self, process: Process) -> None:
        super().__init__(process._take, process._readers)
        self._process = process

    def __aiter__(self) -> Self:
        return looping(self)

    async def __anext__(self) -> AnyEvent:
        with self._reader.waiting():
            event = await self._process._take_async()
        if event is None or isinstance(event, Event.Return | Event.Error):
            self._reader.end()
        if event is None:
            raise StopAsyncIteration
        return event


class _Reader:
    """A thread that waits for events on behalf of asyncio.

    The interpreter does not wait for it: what it waits for may never come.
    """

    def __init__(self, raw: _engine.Process) -> None:
        self._raw = raw
        self._questions: SimpleQueue[Future[AnyEvent | None] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=f"pie-events-{raw.pid}", daemon=True).start()

    def ask(self) -> Future[AnyEvent | None]:
        """What will hold the next event."""
        question: Future[AnyEvent | None] = Future()
        # From here on nobody can cancel it: a task that gives up leaves the event to the next one.
        question.set_running_or_notify_cancel()
        self._questions.put(question)
        return question

    def end(self) -> None:
        """Nothing is asked any more."""
        self._questions.put(None)

    def give_up(self) -> None:
        """The same, and nobody wants the program."""
        self._raw.cancel()
        self._questions.put(None)

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            try:
                event = self._raw.next_event()
            except BaseException as error:
                question.set_exception(error)
            else:
                question.set_result(event)
