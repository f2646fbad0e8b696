"""One connection to a server: requests and their answers, events to their streams, and what happens when it breaks.

The reader task never waits for anybody: answers complete futures, events go to the bounded queue of their process. A
request that was given up stays known until it is answered, so that its answer can be undone: giving up leaves the
connection as usable as before, and closing waits for such answers, for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

import msgspec
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from pie.client.mcp import McpServers
from pie.client.opening import Identity, Socket, open_socket
from pie.client.stream import Stream
from pie.client.wire import Frame, Hello, decode, encode, encode_binary, to_event
from pie.errors import PieError

T = TypeVar("T")

# Of the requests that may be open at once, these are for taking back what was given up.
_RESERVED_REQUESTS = 8
_CHUNK_BYTES = 256 << 10
_MIN_CHUNK_BYTES = 1 << 10
_FLUSH_S = 2.0
# Acks of a reader that keeps up are gathered for this long: one for many small events.
_ACK_DELAY_S = 0.02
_OF_MCP = {"mcp_start", "mcp_line", "mcp_stop"}
_CLOSE_PROTOCOL_ERROR = 1002
_CLOSE_TOO_BIG = 1009
_CLOSE_KEY_GONE = (1008, "the key is no longer good")


@dataclass
class _Request(Generic[T]):
    """A request without its answer."""

    accept: Callable[[msgspec.Raw], T]
    """Reads the answer. Runs in the reader, so that what comes right behind the answer finds what it set up."""
    undo: Callable[[T], None] | None
    """Takes back what was done for a caller that has given up."""
    answer: asyncio.Future[T]
    is_post: bool = False
    """Whether nobody ever waited for the answer."""


class Connection:
    """An open connection; `close` ends it."""

    def __init__(self, socket: Socket, hello: Hello) -> None:
        self.hello = hello
        self.draining = False
        """Whether the server has said that it is about to end."""
        self._socket = socket
        self._failure: PieError | None = None
        self._is_closing = False
        """Whether this side ends the connection: what nobody waits for any more is still answered."""
        self._has_closed = asyncio.Event()
        self.mcp = McpServers(self._tell, hello.limits.frame_bytes)
        """The MCP servers that this client runs."""
        self._ids = count(1)
        self._requests: dict[int, _Request[Any]] = {}
        self._max_posts = min(_RESERVED_REQUESTS, hello.limits.open_requests // 2)
        self._slots = asyncio.Semaphore(max(1, hello.limits.open_requests - self._max_posts))
        self._streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
        self._acks: dict[int, int] = {}
        self._cuts: deque[bytes] = deque()
        self._posts: deque[tuple[str, dict[str, Any]]] = deque()
        self._n_open_posts = 0
        self._wake = asyncio.Event()
        self._ack_timer: asyncio.TimerHandle | None = None
        self._reader = asyncio.create_task(self._read(), name="pie-client-reader")
        self._notifier = asyncio.create_task(self._notify(), name="pie-client-notifier")

    @classmethod
    async def open(cls, address: str, who: Identity, *, timeout_s: float) -> Connection:
        """Connects; the errors are those of `open_socket`."""
        socket, hello = await open_socket(address, who, timeout_s=timeout_s)
        return cls(socket, hello)

    async def request(
        self,
        kind: str,
        fields: dict[str, Any],
        accept: Callable[[msgspec.Raw], T],
        *,
        undo: Callable[[T], None] | None = None,
    ) -> T:
        """Sends a request and waits for its answer.

        PieError: the error that the server answered, or `connection-failed`.
        """
        request_id = next(self._ids)
        frame = encode({"id": request_id, "type": kind, **fields})
        self._check_size(len(frame.encode()))
        return await self._exchange(request_id, [frame], accept, undo=undo)

    async def transfer(self, header: dict[str, Any], payload: bytes) -> None:
        """Sends a request in one binary frame, and waits for its answer."""
        request_id = next(self._ids)
        frame = encode_binary({"id": request_id, **header}, payload)
        self._check_size(len(frame))
        await self._exchange(request_id, [frame], nothing)

    async def upload(self, data: bytes, digest: str, name: str | None = None) -> None:
        """Sends what may be larger than a frame, in chunks, with what lists call it where the server keeps that.

        One that is given up is ended early: the server refuses what has come until then, and drops it.
        """
        request_id = next(self._ids)
        header = {"id": request_id, "type": "upload", "digest": digest, "bytes": len(data)}
        if name is not None and self.hello.limits.name_bytes:
            header["name"] = name
        view = memoryview(data)
        chunk_bytes = max(_MIN_CHUNK_BYTES, min(_CHUNK_BYTES, self.hello.limits.frame_bytes // 2))

        def chunks() -> Iterable[bytes]:
            for offset in range(0, max(len(data), 1), chunk_bytes):
                chunk = view[offset : offset + chunk_bytes]
                yield encode_binary({**header, "offset": offset, "last": offset + len(chunk) == len(data)}, chunk)

        cut = encode_binary({**header, "offset": len(data), "last": True}, b"")
        await self._exchange(request_id, chunks(), nothing, cut=cut)

    def post(self, kind: str, fields: dict[str, Any]) -> None:
        """Sends a request whose answer nobody waits for, soon."""
        self._posts.append((kind, fields))
        self._wake.set()

    def attach(self, pid: int, *, window_bytes: int, after_seq: int = 0) -> Stream:
        """A stream for the events of a process, which begin after `after_seq`."""
        stream = Stream(pid, window_bytes=window_bytes, after_seq=after_seq, ack=self._acknowledge)
        self._streams[pid] = stream
        if after_seq:
            self._acknowledge(pid, after_seq, True)
        return stream

    def drop(self, stream: Stream) -> None:
        """Forgets a stream: its events are passed over from now on."""
        if self._streams.get(stream.pid) is stream:
            del self._streams[stream.pid]

    async def settle(self) -> None:
        """Sends at once what was to be sent soon: acks, and requests whose answers nobody waits for."""
        await self._flush()

    async def close(self) -> None:
        """Ends the connection: open requests and streams get `connection-failed`. A second call waits for the first.

        What an unanswered request may have done at the server is taken back first, if its answer comes soon.
        """
        if self._is_closing:
            await self._has_closed.wait()
            return
        is_open = self._failure is None
        self._is_closing = is_open
        self._fail(PieError("connection-failed", "this client has closed the connection; connect again"))
        self._notifier.cancel()
        try:
            if is_open:
                with contextlib.suppress(PieError, TimeoutError):
                    async with asyncio.timeout(_FLUSH_S):
                        await self._finish()
            with contextlib.suppress(ConnectionClosed):
                await self._socket.close()
        finally:
            self._reader.cancel()
            self._socket.abort()
            try:
                await self.mcp.close()
                await asyncio.wait({self._reader, self._notifier})
            finally:
                self._has_closed.set()

    def _check_size(self, n_bytes: int) -> None:
        """Refuses here what the server would close the connection for."""
        limit = self.hello.limits.frame_bytes
        if n_bytes > limit:
            raise PieError("limit-message", f"a message of {n_bytes} bytes is larger than the server takes ({limit}); send it in parts")

    async def _exchange(
        self,
        request_id: int,
        frames: Iterable[str | bytes],
        accept: Callable[[msgspec.Raw], T],
        *,
        undo: Callable[[T], None] | None = None,
        cut: bytes | None = None,
    ) -> T:
        """Sends the frames of one request and waits for the answer.

        `cut` ends it early at the server, if not all were sent.
        """
        await self._slots.acquire()
        if self._failure is not None:
            self._slots.release()
            raise _again(self._failure)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._requests[request_id] = _Request(accept, undo, answer)
        is_sent = False
        try:
            coming = iter(frames)
            frame = next(coming, None)
            while frame is not None and not answer.done():  # a request may be refused before all was sent
                following = next(coming, None)
                is_sent = following is None  # by the next line, even if it is cancelled
                await self._send(frame)
                frame = following
            return await answer
        except BaseException:
            if cut is not None and not is_sent:  # one that was refused, too: its last part frees its number
                self._cuts.append(cut)
                self._wake.set()
            if not answer.done():
                answer.cancel()  # the reader undoes what is still to be answered
            elif not answer.cancelled() and answer.exception() is None and undo is not None:
                undo(answer.result())
            raise

    async def _send(self, frame: str | bytes) -> None:
        """Hands a frame to the socket and waits until there is room for more. A cancelled call has sent it whole."""
        try:
            await self._socket.send(frame)
        except ConnectionClosed:
            await asyncio.wait({self._reader}, timeout=_FLUSH_S)  # it knows what the server said before it closed
            raise _again(self._failure or _closed(None)) from None

    async def _tell(self, kind: str, fields: dict[str, Any]) -> None:
        """Sends a message that is not answered."""
        with contextlib.suppress(PieError):  # a broken connection: the reader tells everybody
            await self._send(encode({"type": kind, **fields}))

    async def _read(self) -> None:
        try:
            while True:
                self._dispatch(await self._socket.recv())
        except ConnectionClosed as error:
            self._fail(_closed(error))
        except PieError as error:
            self._fail(error)
            with contextlib.suppress(ConnectionClosed):
                await self._socket.close(_CLOSE_PROTOCOL_ERROR, error.code)
        finally:
            self._fail(_closed(None))
            self._wake.set()  # who closes the connection waits for no answer any more

    def _dispatch(self, data: str | bytes) -> None:
        frame, payload = decode(data)
        if frame.type == "event":
            stream = self._streams.get(frame.pid)
            if stream is not None:
                stream.push(to_event(frame, payload))
        elif frame.type == "draining":
            self.draining = True
        elif frame.type in _OF_MCP:
            self.mcp.take(frame)
        elif frame.id is not None:
            self._answer(frame, frame.id)
        elif frame.error is not None:
            raise frame.error.to_error()
        elif not frame.type:
            raise PieError("protocol-error", "the server sent a message that has neither a type nor an id")

    def _answer(self, frame: Frame, request_id: int) -> None:
        request = self._requests.get(request_id)
        if request is None:
            if self._is_closing:
                return  # who asked was told of the end
            raise PieError("protocol-error", f"the server answered the request {request_id}, which is not open")
        if frame.error is not None:
            if not request.answer.done():
                request.answer.set_exception(frame.error.to_error())
        elif bytes(frame.ok):
            result = request.accept(frame.ok)
            if not request.answer.done():
                request.answer.set_result(result)
            elif request.undo is not None:
                request.undo(result)
        else:
            raise PieError("protocol-error", f"the server answered the request {request_id} with neither a result nor an error")
        self._forget(request_id)

    def _forget(self, request_id: int) -> None:
        if self._requests.pop(request_id).is_post:
            self._n_open_posts -= 1
            self._wake.set()
        else:
            self._slots.release()
            if self._is_closing:
                self._wake.set()

    def _fail(self, error: PieError) -> None:
        """Ends every open request and every stream. Only the first reason counts.

        When this side closes, requests that their answers undo stay known.
        """
        if self._failure is not None:
            return
        self._failure = error
        if self._ack_timer is not None:
            self._ack_timer.cancel()
        for request_id, request in list(self._requests.items()):
            if not request.answer.done():
                request.answer.set_exception(_again(error))
            if not (self._is_closing and request.undo is not None):
                self._forget(request_id)
        self.mcp.stop()
        self._slots.release()  # whoever waits for a slot learns of the end, and hands it on
        for stream in list(self._streams.values()):
            stream.fail(error)
        self._wake.set()

    def _acknowledge(self, pid: int, seq: int, now: bool) -> None:
        if self._failure is not None:
            return
        self._acks[pid] = seq
        if now:
            self._wake.set()
        elif self._ack_timer is None:
            self._ack_timer = asyncio.get_running_loop().call_later(_ACK_DELAY_S, self._wake.set)

    async def _notify(self) -> None:
        with contextlib.suppress(PieError):  # a broken connection: the reader tells everybody
            while self._failure is None:
                await self._wake.wait()
                self._wake.clear()
                if self._ack_timer is not None:
                    self._ack_timer.cancel()
                    self._ack_timer = None
                await self._flush()

    async def _finish(self) -> None:
        """Sends what is still to be sent, and takes back what was given up as the answers come.

        It ends with the connection to the server at the latest.
        """
        await asyncio.sleep(0)  # calls that were answered and then cancelled take back what was done for them
        while self._socket.state is State.OPEN:
            self._wake.clear()
            await self._flush()
            if not self._posts and not self._n_open_posts and all(request.undo is None for request in self._requests.values()):
                return
            await self._wake.wait()

    async def _flush(self) -> None:
        while self._cuts:
            await self._send(self._cuts.popleft())
        while self._posts and self._n_open_posts < self._max_posts:
            kind, fields = self._posts.popleft()
            request_id = next(self._ids)
            unread = asyncio.get_running_loop().create_future()
            unread.cancel()
            self._requests[request_id] = _Request(nothing, None, unread, is_post=True)
            self._n_open_posts += 1
            await self._send(encode({"id": request_id, "type": kind, **fields}))
        while self._acks:
            pid, seq = self._acks.popitem()
            await self._send(encode({"type": "ack", "pid": pid, "seq": seq}))


def nothing(_answer: msgspec.Raw) -> None:
    """Reads an answer that says no more than that the request was done."""


def _again(error: PieError) -> PieError:
    """A copy to raise: one exception raised in several tasks would gather the tracebacks of all."""
    return PieError(error.code, error.message, error.details)


def _closed(error: ConnectionClosed | None) -> PieError:
    """Why the connection ended."""
    remedy = "check that `pie serve` runs, connect again and attach to your processes"
    if error is not None and error.sent is not None and error.sent.code == _CLOSE_TOO_BIG:
        return PieError("protocol-error", "the server sent a frame that is larger than this client takes; send less at once")
    if error is not None and error.rcvd is not None:
        if (error.rcvd.code, error.rcvd.reason) == _CLOSE_KEY_GONE:
            message = "the server closed the connection: the key was revoked or has expired; ask the operator of the server for another one"
            return PieError("authentication-failed", message)
        said = f"{error.rcvd.code}: {error.rcvd.reason}" if error.rcvd.reason else str(error.rcvd.code)
        return PieError("connection-failed", f"the server closed the connection ({said}); {remedy}")
    return PieError("connection-failed", f"the connection to the server broke; {remedy}")
