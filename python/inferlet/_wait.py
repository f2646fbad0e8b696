"""All waiting of the SDK: the event loop over WASI pollables, and what awaits or blocks on a future of the engine."""

from __future__ import annotations

import asyncio
import sys
from asyncio import base_events, events
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import Executor
from types import CoroutineType, FrameType, TracebackType
from typing import Any, NoReturn, Protocol, TypeVar, TypeVarTuple, Unpack, cast

from componentize_py_types import Err, Ok
from wit_world.imports import monotonic_clock as _clock
from wit_world.imports import poll as _poll
from wit_world.imports import types as _types

from inferlet.errors import DeadlockError, ErrorCode, from_host

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_NS_PER_S = 1_000_000_000
# A timer of the engine counts nanoseconds in 64 bits; a longer wait is cut and asked for again.
_MAX_WAIT_S = 86_400.0
_MAX_TASKS_SHOWN = 8

lost_errors: list[BaseException] | None = []
"""The first exception that nothing took, of a task that nobody awaited or of a callback: it is the program's error when
the program ends. None: all are told at once, on standard error.
"""
never_awaited: list[str] = []
"""What is told of coroutines that the program made and lost without awaiting them."""
kept_unawaited: Callable[[], list[str]] | None = None
"""Tells of coroutines that the program holds and has not awaited. The runtime of programs puts it here."""
before_sleep: Callable[[int], None] | None = None
"""Called before a sleep without an end, with the number of waits, where there is something in `never_awaited`."""
told_blocks: set[str] = set()
"""Places that were told of, where a value is used that was not awaited."""
_MAX_BLOCKS_TOLD = 8


class HostFuture(Protocol[_T]):
    """A future of the engine: dropping it cancels what it waits for."""

    def pollable(self) -> _poll.Pollable:
        """Ready when the answer is there; a child of the future, dropped before it."""
        ...

    def get(self) -> Ok[_T] | Err[_types.Error] | None:
        """The answer, once; None until it is there."""
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool | None: ...


async def resolve(future: HostFuture[_T], owner: object = None) -> _T:
    """Awaits a future of the engine. Cancelling the task that waits drops the future, and with it what it stands for.

    `owner` is what the future works on: it lives until the answer is taken, whatever else the program keeps.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, EventLoop):
        raise RuntimeError(f"a {type(loop).__name__} cannot wait for the engine; run the program on inferlet's event loop")
    pollable = None
    try:
        while True:
            pollable = future.pollable()
            await loop.waiter(pollable)
            answer = future.get()
            if answer is not None:
                return answer.value if isinstance(answer, Ok) else _value(answer)
    finally:
        if pollable is not None:
            loop.forget(pollable)
        future.__exit__(None, None, None)


def block_on(future: HostFuture[_T]) -> _T:
    """Blocks the whole program until a future of the engine has its answer."""
    flush_output()
    try:
        while True:
            pollable = future.pollable()
            try:
                pollable.block()
            finally:
                pollable.__exit__(None, None, None)
            answer = future.get()
            if answer is not None:
                return _value(answer)
    finally:
        future.__exit__(None, None, None)


async def failed(error: Exception) -> NoReturn:
    """Raises an error to whoever awaits what could not be begun."""
    raise error


def resolve_or_block(future: HostFuture[_T], owner: object = None, name: str = "") -> Coroutine[Any, Any, _T]:
    """Inside a running loop a `Deferred` to await; outside of one blocks and returns the value itself.

    So a name that older programs call blocking and newer ones await serves both; its type is that of the newer ones.
    `owner` as in `resolve`; `name` is the call as programs write it, for messages.
    """
    if in_loop():
        return Deferred(future, owner, name)
    return cast("Coroutine[Any, Any, _T]", block_on(future))


class Deferred(Coroutine[Any, Any, _T]):
    """What a call that older programs block in gives inside of a running loop: a coroutine to await.

    Older code that was put into `async def main` uses it as the value itself: compares it, prints it, joins it to a
    text. It blocks the whole program then, until the value is there, and says so. What is under way is awaited and
    nothing else.
    """

    __slots__ = ("_answer", "_awaited", "_future", "_name", "_owner", "_place")

    def __init__(self, future: HostFuture[_T], owner: object, name: str = "") -> None:
        self._future = future
        self._owner = owner
        self._name = name
        self._place = place_of_program() if name else ""
        self._awaited: Coroutine[Any, Any, _T] | None = None
        self._answer: list[_T] = []

    def send(self, value: Any, /) -> Any:
        """Goes on to wait."""
        return self._begun().send(value)

    def throw(self, error: Any, value: Any = None, trace: Any = None, /) -> Any:
        """Ends the wait by an error."""
        waiting = self._begun()
        return waiting.throw(error) if value is None and trace is None else waiting.throw(error, value, trace)

    def close(self) -> None:
        """Gives the wait up."""
        if self._awaited is not None:
            self._awaited.close()
        elif not self._answer:
            self._answer = []
            self._awaited = _given_up()
            self._awaited.close()
            self._future.__exit__(None, None, None)

    def __await__(self) -> Generator[Any, Any, _T]:
        return self._begun().__await__()

    def __del__(self) -> None:
        if self._awaited is None and not self._answer:
            # The interpreter tells of this one as of any coroutine that was never awaited.
            left = cast("CoroutineType[Any, Any, _T]", resolve(self._future, self._owner))
            if self._name:
                left.__qualname__ = f"{self._place}: {self._name}" if self._place else self._name
            del left

    def __repr__(self) -> str:
        return "<a value of the engine; await it>"

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return bool(self._value() == (other._value() if isinstance(other, Deferred) else other))

    def __str__(self) -> str:
        return str(self._value())

    def __format__(self, spec: str) -> str:
        return format(self._value(), spec)

    def __bytes__(self) -> bytes:
        return bytes(cast("Any", self._value()))

    def __len__(self) -> int:
        return len(cast("Any", self._value()))

    def __iter__(self) -> Iterator[Any]:
        return iter(cast("Any", self._value()))

    def __contains__(self, item: object) -> bool:
        return bool(item in cast("Any", self._value()))

    def __getitem__(self, key: Any) -> Any:
        return cast("Any", self._value())[key]

    def __add__(self, other: Any) -> Any:
        return cast("Any", self._value()) + other

    def __radd__(self, other: Any) -> Any:
        return other + cast("Any", self._value())

    def __getattr__(self, name: str) -> Any:
        # What asyncio and tracebacks ask a coroutine for is not of the value.
        if name.startswith(("_", "cr_", "gi_", "ag_")):
            raise AttributeError(f"a value of the engine has no {name!r}; await it")
        return getattr(self._value(), name)

    def _begun(self) -> Coroutine[Any, Any, _T]:
        if self._awaited is None:
            self._awaited = _told(self._answer[0]) if self._answer else resolve(self._future, self._owner)
        return self._awaited

    def _value(self) -> _T:
        if not self._answer:
            if self._awaited is not None:
                raise RuntimeError("this value of the engine is awaited already; use what the await returns")
            if self._name:
                self._tell_of_block()
            self._answer.append(block_on(self._future))
        return self._answer[0]

    def _forgotten(self) -> str:
        """What is told of it where nothing has awaited it and nothing has used it; empty otherwise."""
        if self._awaited is not None or self._answer:
            return ""
        at = f" at {self._place}" if self._place else ""
        return f"`{self._name or 'a call of the SDK'}` was called without `await`{at}"

    def _tell_of_block(self) -> None:
        """Says on standard error that the program stands still until the value is there.

        Nobody may ever send it: then the program is ended from outside, and nothing else tells of the call. It is told
        of where the value is there already, too: the next run may have to wait.
        """
        place = self._place
        if place in told_blocks or len(told_blocks) >= _MAX_BLOCKS_TOLD:
            return
        told_blocks.add(place)
        print(
            f"warning: {self._forgotten()}, and is used as a value: the whole program stands still until that is there; "
            f"write `await` before the call",
            file=sys.stderr,
            flush=True,
        )


async def _told(value: _T) -> _T:
    """A value that is there."""
    return value


async def _given_up() -> Any:
    """The wait for a value that nobody wants any more."""


def in_loop() -> bool:
    """Whether an event loop runs: then what waits is awaited, and blocks otherwise."""
    return events._get_running_loop() is not None


def flush_output() -> None:
    """Sends what was printed without a line's end: output is never held back while the program sleeps."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _value(answer: Ok[_T] | Err[_types.Error]) -> _T:
    if isinstance(answer, Err):
        raise from_host(answer.value) from None
    return answer.value


class _Selector:
    """Pollables of the engine with the asyncio futures that wait for them, in the order of registration."""

    def __init__(self, tasks: Callable[[], Iterator[str]]) -> None:
        self._waiting: dict[_poll.Pollable, asyncio.Future[None]] = {}
        self._tasks = tasks

    def register(self, pollable: _poll.Pollable, waiter: asyncio.Future[None]) -> None:
        """Wakes `waiter` when the pollable is ready. The selector owns the pollable from here on."""
        self._waiting[pollable] = waiter

    def remove(self, pollable: _poll.Pollable) -> asyncio.Future[None] | None:
        """Drops the pollable and returns who waited; None where it was removed before."""
        waiter = self._waiting.pop(pollable, None)
        if waiter is not None:
            pollable.__exit__(None, None, None)
        return waiter

    def close(self) -> None:
        """Drops every pollable."""
        for pollable in list(self._waiting):
            self.remove(pollable)

    def select(self, timeout_s: float | None) -> Sequence[_poll.Pollable]:
        """The pollables that are ready, after a wait of at most `timeout_s`; None: until one is ready."""
        pollables = list(self._waiting)
        if timeout_s is not None and timeout_s <= 0:
            return [pollable for pollable in pollables if pollable.ready()]
        flush_output()
        if timeout_s is not None:
            timer = _clock.subscribe_duration(max(1, int(min(timeout_s, _MAX_WAIT_S) * _NS_PER_S)))
            try:
                ready = _poll.poll([*pollables, timer])
            finally:
                timer.__exit__(None, None, None)
            return [pollables[index] for index in sorted(ready) if index < len(pollables)]
        if not pollables:
            raise self._deadlock()
        if never_awaited and before_sleep is not None:
            before_sleep(len(pollables))
        if len(pollables) == 1:
            pollables[0].block()
            return pollables
        return [pollables[index] for index in sorted(_poll.poll(pollables))]

    def _deadlock(self) -> DeadlockError:
        waiting = list(self._tasks())
        tasks = "1 task waits" if len(waiting) == 1 else f"{len(waiting)} tasks wait"
        where = "; ".join(waiting[:_MAX_TASKS_SHOWN]) + ("; ..." if len(waiting) > _MAX_TASKS_SHOWN else "")
        lost = [*never_awaited, *(kept_unawaited() if kept_unawaited is not None else ())]
        remedy = "; ".join(lost) if lost else "await something that the engine, a timer or the client can complete"
        return DeadlockError(
            ErrorCode.DEADLOCK,
            f"nothing can wake this program: {tasks} ({where}); {remedy}",
            {"tasks": waiting[:_MAX_TASKS_SHOWN]},
        )


class EventLoop(base_events.BaseEventLoop):
    """asyncio over the pollables of the engine: timers, tasks and futures as everywhere, threads run inline."""

    def __init__(self) -> None:
        super().__init__()
        # The base class polls through this name.
        self._selector = _Selector(self._waiting_tasks)

    def waiter(self, pollable: _poll.Pollable) -> asyncio.Future[None]:
        """Done when the pollable is ready, which is dropped then. Whoever waits no longer forgets it."""
        waiter: asyncio.Future[None] = self.create_future()
        self._selector.register(pollable, waiter)
        return waiter

    def forget(self, pollable: _poll.Pollable) -> None:
        """Drops a pollable that is waited for; nothing where it was dropped."""
        self._selector.remove(pollable)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keeps the first exception that nothing took, unless the program has a handler of its own for them.

        All others are told on standard error.
        """
        error = context.get("exception")
        lost = lost_errors
        if isinstance(error, BaseException) and lost is not None and not lost and self.get_exception_handler() is None:
            lost.append(error)
            return
        super().call_exception_handler(context)

    def close(self) -> None:
        """Closes the loop and drops what is still registered."""
        if not self.is_closed():
            self._selector.close()
        super().close()

    def run_in_executor(self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts) -> asyncio.Future[_T]:
        """Runs the function here: a program has one thread."""
        result: asyncio.Future[_T] = self.create_future()
        try:
            result.set_result(func(*args))
        except StopIteration as error:
            # A future cannot hold StopIteration: it would end the coroutine that awaits it.
            result.set_exception(RuntimeError(f"function raised StopIteration: {error}"))
        except Exception as error:
            result.set_exception(error)
        return result

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Nothing to shut down."""

    def _process_events(self, ready: Sequence[_poll.Pollable]) -> None:
        for pollable in ready:
            waiter = self._selector.remove(pollable)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def _write_to_self(self) -> None:
        """No other thread could have to wake this one."""

    def _waiting_tasks(self) -> Iterator[str]:
        # Given names end in a number that counts up: shorter ones are older.
        for task in sorted(asyncio.all_tasks(self), key=lambda task: (len(task.get_name()), task.get_name())):
            yield _position(task.get_coro()) or task.get_name()


def place_of_program() -> str:
    """Where the program calls the SDK, as in `main.py:12`; empty outside of its own lines."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # The paths of a program are relative, those of the libraries are not.
        if not frame.f_code.co_filename.startswith(("/", "<")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _position(coroutine: object) -> str:
    """Where a coroutine stands: the innermost frame of its chain of awaits that is the program's own."""
    found = ""
    while isinstance(coroutine, CoroutineType):
        frame = coroutine.cr_frame
        # The paths of a program are relative, those of the libraries are not.
        if frame is not None and not frame.f_code.co_filename.startswith(("/", "<")):
            found = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        coroutine = coroutine.cr_await
    return found
