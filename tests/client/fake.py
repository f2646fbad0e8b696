"""A server that says what a test wants, for the client alone: it knows frames, and no engine."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

PATIENCE_S = 60.0
WINDOW_BYTES = 4096
LIMITS = {"frame_bytes": 1 << 20, "message_bytes": 1 << 20, "upload_bytes": 8 << 20, "window_bytes": WINDOW_BYTES, "open_requests": 64}


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs an async test, and checks that it leaves no task and no complaint of the event loop behind."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        complaints: list[dict[str, Any]] = []
        left: set[asyncio.Task[Any]] = set()

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
            async with asyncio.timeout(PATIENCE_S):
                await test(*arguments, **named)
            gc.collect()
            left.update(asyncio.all_tasks() - {asyncio.current_task()})

        asyncio.run(main())
        gc.collect()
        assert complaints == []
        assert left == set()

    return run


class Peer:
    """The server's end of one connection, after the hello."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket
        self.acks: dict[int, int] = {}
        self._acked = asyncio.Event()
        self._seqs: dict[int, int] = {}

    async def receive(self) -> dict[str, Any]:
        """The next message; acks are noted on the way. A binary one has its payload under `payload`."""
        while True:
            message = unpack(await self.socket.recv())
            if message["type"] != "ack":
                return message
            assert message["seq"] > self.acks.get(message["pid"], 0), "an ack never goes back"
            self.acks[message["pid"]] = message["seq"]
            self._acked.set()

    async def expect(self, kind: str) -> dict[str, Any]:
        """The next message, which must be of that type."""
        message = await self.receive()
        assert message["type"] == kind, message
        return message

    async def tell(self, message: dict[str, Any]) -> None:
        """Sends one message."""
        await self.socket.send(json.dumps(message))

    async def answer(self, request: dict[str, Any], **ok: Any) -> None:
        """Answers a request well."""
        await self.tell({"id": request["id"], "ok": ok})

    async def refuse(self, request: dict[str, Any], code: str, message: str = "no") -> None:
        """Answers a request with an error."""
        await self.tell({"id": request["id"], "error": {"code": code, "message": message}})

    async def event(self, pid: int, kind: str, **fields: Any) -> int:
        """Sends the next event of a process, and returns its number."""
        seq = self._seqs[pid] = self._seqs.get(pid, 0) + 1
        header = {"type": "event", "pid": pid, "seq": seq, "kind": kind}
        if kind == "file":
            await self.socket.send(pack(header, fields["data"]))
        else:
            await self.tell(header | fields)
        return seq

    async def acked(self, pid: int, seq: int) -> None:
        """Waits until the client has acked up to `seq`, while `serve_forever` or `receive` reads."""
        while self.acks.get(pid, 0) < seq:
            self._acked.clear()
            await self._acked.wait()

    async def serve_forever(self) -> None:
        """Answers pings, launches (pids count up) and lists of programs (none) until the client has gone."""
        n_launched = 0
        while True:
            message = await self.receive()
            if message["type"] == "launch":
                n_launched += 1
                await self.answer(message, pid=n_launched, launch_seed=7)
            elif message["type"] == "programs":
                await self.answer(message, programs=[])
            else:
                await self.answer(message)


def pack(header: dict[str, Any], payload: bytes) -> bytes:
    """A binary frame."""
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + payload


def unpack(frame: str | bytes) -> dict[str, Any]:
    """A frame of either form."""
    if isinstance(frame, str):
        return json.loads(frame)
    (n_bytes,) = struct.unpack_from("<I", frame)
    return json.loads(frame[4 : 4 + n_bytes]) | {"payload": frame[4 + n_bytes :]}


@asynccontextmanager
async def fake_server(script: Callable[[Peer], Awaitable[None]], *, limits: dict[str, int] | None = None) -> AsyncIterator[str]:
    """A server that greets, then runs `script` for its one connection; returns its address.

    At the end the script must have ended by itself, or be cancelled where it still serves; what it raised is raised
    here.
    """
    failures: list[Exception] = []

    async def handle(socket: ServerConnection) -> None:
        hello = json.loads(await socket.recv())
        assert hello["type"] == "hello"
        assert hello["protocol"] == 1
        user = hello.get("user", "nobody")
        greeting = {"type": "hello", "protocol": 1, "server": "fake/1", "instance": "i", "user": user, "limits": LIMITS | (limits or {})}
        await socket.send(json.dumps(greeting))
        try:
            await script(Peer(socket))
        except ConnectionClosed:
            pass  # the client has left, as it may
        except Exception as error:  # told to the test
            failures.append(error)

    async with raw_server(handle) as address:
        yield address
    if failures:
        raise failures[0]


@asynccontextmanager
async def raw_server(handle: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[str]:
    """A WebSocket server that does not even greet by itself."""
    async with serve(handle, "127.0.0.1", 0, compression=None, max_size=None, logger=None) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}"
