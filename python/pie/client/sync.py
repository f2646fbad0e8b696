"""The client for code without asyncio: every verb of `pie.client` waits for its answer.

with pie.client.sync.connect("ws://127.0.0.1:8080") as client:
    print(client.run("story.py", {"topic": "rain"}))
    process = client.launch("chat@1.0", input={"prompt": "Hello!"})
    for event in process.events():
        ...

The connection lives on a thread of its own, with a loop of asyncio. Any thread may call, also one in which a loop runs.
A function that `run` gets as `on_event` is called on that thread of the connection, where no verb of the client can be
called. Ctrl-C ends the call that waits, and the connection stays as usable as before.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from pie.client import client as awaited
from pie.client import process as awaited_process
from pie.client.signing import PrivateKey
from pie.errors import PieError
from pie.readers import EventIterator, Readers

__all__ = ["Client", "Events", "Process", "connect"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Loop:
    """A thread with a loop of asyncio, which runs what other threads wait for. It never keeps the interpreter alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._is_over = False
        self._failure: OSError | None = None
        self.close_first: Callable[[], Coroutine[Any, Any, None]] | None = None
        """What is awaited before the loop ends."""
        self._thread = threading.Thread(target=self._work, name="pie-client", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            message = f"no loop can be opened for a connection ({self._failure.strerror}); close files or connections first"
            raise PieError("connection-failed", message) from self._failure

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Waits for a coroutine; whoever stops waiting, as at Ctrl-C, cancels it."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            message = "this client is called on the thread of its connection, as `on_event` is, which would wait for itself"
            raise PieError("invalid-argument", f"{message}; call it on another thread")
        with self._lock:
            # What is begun in front of the end is cancelled by it.
            future = None if self._is_over else asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        if future is None:
            coroutine.close()
            self._refuse()
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            self._refuse()
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        """Closes what is open, and waits for the end of the thread. A second call does nothing."""
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._loop.call_soon_threadsafe(self._stopping.set)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _refuse(self) -> NoReturn:
        raise PieError("connection-failed", "this client has closed the connection; connect again") from None

    def _work(self) -> None:
        life = self._live()
        try:
            asyncio.run(life)
        except OSError as error:  # as where the process may open no more files
            if self._ready.is_set():
                raise
            self._failure = error
        finally:
            life.close()
            self._ready.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._ready.set()
        await self._stopping.wait()
        if self.close_first is not None:
            await self.close_first()


def _client_verb(
    method: Callable[Concatenate[awaited.Client, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Client, _P], _T]:
    """The same verb, which waits."""

    @functools.wraps(method)
    def call(self: Client, /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        return self._loop.run(method(self._awaited, *arguments, **named))

    return call


def _launching_verb(
    method: Callable[Concatenate[awaited.Client, _P], Coroutine[Any, Any, awaited_process.Process]],
) -> Callable[Concatenate[Client, _P], Process]:
    """The same verb, which waits, and gives a process whose verbs wait."""

    @functools.wraps(method)
    def call(self: Client, /, *arguments: _P.args, **named: _P.kwargs) -> Process:
        return Process(self, self._loop.run(method(self._awaited, *arguments, **named)))

    return call


def _process_verb(
    method: Callable[Concatenate[awaited_process.Process, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Process, _P], _T]:
    @functools.wraps(method)
    def call(self: Process, /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        return self._loop.run(method(self._awaited, *arguments, **named))

    return call


class Client:
    """An open connection to a server, from `connect`; it is closed at the end of a `with` block, or by `close`.

    Its verbs are those of `pie.client.Client`, with the same arguments and errors.
    """

    def __init__(self, loop: _Loop, client: awaited.Client) -> None:
        self._loop = loop
        self._awaited = client
        loop.close_first = client.close
        # Who forgets to close it gets it closed with the last reference, or where the interpreter ends.
        self._end = weakref.finalize(self, loop.end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def user(self) -> str:
        """Whose programs and processes this client sees."""
        return self._awaited.user

    @property
    def role(self) -> str:
        """What this client may do: `read`, `user` or `operator`."""
        return self._awaited.role

    @property
    def server(self) -> str:
        """The name and version of the server."""
        return self._awaited.server

    @property
    def instance(self) -> str:
        """The name by which programs know the engine of the server."""
        return self._awaited.instance

    @property
    def is_draining(self) -> bool:
        """Whether the server has said that it is about to end: it launches nothing more."""
        return self._awaited.is_draining

    def close(self) -> None:
        """Ends the connection, as `pie.client.Client.close`, and the thread behind it. A second call does nothing."""
        self._end()

    ping = _client_verb(awaited.Client.ping)
    upload = _client_verb(awaited.Client.upload)
    install = _client_verb(awaited.Client.install)
    launch_daemon = _client_verb(awaited.Client.launch_daemon)
    uninstall = _client_verb(awaited.Client.uninstall)
    programs = _client_verb(awaited.Client.programs)
    check_program = _client_verb(awaited.Client.check_program)
    resolve_version = _client_verb(awaited.Client.resolve_version)
    snapshots = _client_verb(awaited.Client.snapshots)
    delete_snapshot = _client_verb(awaited.Client.delete_snapshot)
    adapters = _client_verb(awaited.Client.adapters)
    delete_adapter = _client_verb(awaited.Client.delete_adapter)
    topics = _client_verb(awaited.Client.topics)
    discard_topic = _client_verb(awaited.Client.discard_topic)
    connections = _client_verb(awaited.Client.connections)
    disconnect = _client_verb(awaited.Client.disconnect)
    launch = _launching_verb(awaited.Client.launch)
    run = _client_verb(awaited.Client.run)
    attach = _launching_verb(awaited.Client.attach)
    list = _client_verb(awaited.Client.list)
    logs = _client_verb(awaited.Client.logs)
    outcome = _client_verb(awaited.Client.outcome)
    terminate = _client_verb(awaited.Client.terminate)
    register_mcp_server = _client_verb(awaited.Client.register_mcp_server)
    unregister_mcp_server = _client_verb(awaited.Client.unregister_mcp_server)
    stats = _client_verb(awaited.Client.stats)

    install_program = install
    launch_process = launch
    attach_process = attach
    list_processes = list  # noqa: A003  # the method of this class
    terminate_process = terminate
    """Longer names of the same methods."""


class Process:
    """A launched program; its verbs are those of `pie.client.Process`, with the same arguments and errors."""

    def __init__(self, client: Client, process: awaited_process.Process) -> None:
        # The connection is not closed by being forgotten while a process is held.
        self._client = client
        self._loop = client._loop
        self._awaited = process
        self._readers = Readers(process.pid)

    @property
    def pid(self) -> int:
        """Its number, which its server gives to no other process, also after it has started again."""
        return self._awaited.pid

    @property
    def launch_seed(self) -> int | None:
        """The seed from which every unseeded draw derives; None where another launched it."""
        return self._awaited.launch_seed

    @property
    def has_ended(self) -> bool:
        """Whether the last event was read here: by `events`, or by `result`."""
        return self._awaited.has_ended

    def events(self) -> Events:
        """The events that were not read yet, in order, up to the last. Read them in one place.

        While another thread waits in an iterator, or loops over one, a second is the error `future-taken`.
        """
        self._readers.check()
        return Events(self)

    next_event = _process_verb(awaited_process.Process.next_event)
    result = _process_verb(awaited_process.Process.result)
    send = _process_verb(awaited_process.Process.send)
    signal = _process_verb(awaited_process.Process.signal)
    transfer_file = _process_verb(awaited_process.Process.transfer_file)
    close_input = _process_verb(awaited_process.Process.close_input)
    terminate = _process_verb(awaited_process.Process.terminate)
    detach = _process_verb(awaited_process.Process.detach)


class Events(EventIterator):
    """The events of a process in order, up to its last. Leaving the loop loses no event that it was not given."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.next_event, process._readers)


def connect(
    address: str = awaited.DEFAULT_ADDRESS,
    *,
    user: str | None = None,
    key: str | None = None,
    private_key: PrivateKey | str | Path | None = None,
    timeout_s: float = 10.0,
) -> Client:
    """Connects to the server at `address` (`ws://HOST:PORT`) as `user`.

    Arguments and errors are those of `pie.client.connect`.
    """
    loop = _Loop()

    async def opened() -> awaited.Client:
        return await awaited.connect(address, user=user, key=key, private_key=private_key, timeout_s=timeout_s)

    try:
        return Client(loop, loop.run(opened()))
    except BaseException:
        loop.end()
        raise
