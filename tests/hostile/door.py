"""A WebSocket client that writes its frames by hand, so that it can write wrong ones, and never reads unless it is told
to.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from support.serving import Served

TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
MIB = 1 << 20
# Bytes of a message that are sent at once.
STRIDE = 256 << 10


def header(opcode: int, n_bytes: int, *, last: bool = True) -> bytes:
    """The head of a frame, masked with zeros, which leave the payload as it is."""
    first = opcode | (0x80 if last else 0)
    if n_bytes < 126:
        return struct.pack("!BBI", first, 0x80 | n_bytes, 0)
    return struct.pack("!BBQI", first, 0xFF, n_bytes, 0)


def frame(opcode: int, payload: bytes, *, last: bool = True) -> bytes:
    """A whole frame."""
    return header(opcode, len(payload), last=last) + payload


def text(message: object) -> bytes:
    """A message as a text frame."""
    return frame(TEXT, json.dumps(message).encode())


def binary(head: object, payload: bytes) -> bytes:
    """A message with a payload."""
    packed = json.dumps(head).encode()
    return frame(BINARY, struct.pack("<I", len(packed)) + packed + payload)


class Raw:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *parts: bytes) -> bool:
        """Sends bytes as they are; false when the server has hung up."""
        try:
            for part in parts:
                self.writer.write(part)
                await self.writer.drain()
        except ConnectionError:
            return False
        return True

    async def begin(self, opcode: int, n_announced: int, n_sent: int) -> bool:
        """Announces a frame and sends a part of it only; false when the server has hung up."""
        parts = [b"\0" * min(STRIDE, n_sent - at) for at in range(0, n_sent, STRIDE)]
        return await self.send(header(opcode, n_announced), *parts)

    async def hear(self) -> tuple[int, bytes] | None:
        """The next frame: its opcode and its payload. None when the server has hung up."""
        try:
            first, length = await self.reader.readexactly(2)
            n_bytes = length
            if length == 126:
                (n_bytes,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif length == 127:
                (n_bytes,) = struct.unpack("!Q", await self.reader.readexactly(8))
            return first & 0x0F, await self.reader.readexactly(n_bytes)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def message(self) -> dict[str, Any] | None:
        """The next message; None when the server closes or has hung up."""
        while (heard := await self.hear()) is not None:
            opcode, payload = heard
            if opcode == CLOSE:
                return None
            if opcode == TEXT:
                message: dict[str, Any] = json.loads(payload)
                return message
        return None

    async def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and waits for its answer; an error of the whole connection counts as one."""
        assert await self.send(text(message))
        return await self.answer(message["id"])

    async def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request that was sent."""
        while (heard := await self.message()) is not None:
            if heard.get("id") == number or heard.get("type") == "error":
                return heard
        raise AssertionError("the server has hung up")

    async def told(self) -> tuple[str | None, int | None]:
        """The code of the error that ends the connection, and the code of its closing."""
        error = None
        while (heard := await self.hear()) is not None:
            opcode, payload = heard
            if opcode == CLOSE:
                return error, struct.unpack("!H", payload[:2])[0]
            message = json.loads(payload) if opcode == TEXT else {}
            if message.get("type") == "error":
                error = message["error"]["code"]
        return error, None

    async def until_hung_up(self) -> None:
        """Reads and forgets until the server has hung up."""
        with suppress(ConnectionError):
            while await self.reader.read(STRIDE):
                pass


@asynccontextmanager
async def connected(served: Served, user: str | None = None, *, host: str = "127.0.0.1") -> AsyncIterator[Raw]:
    """A WebSocket from the address `host`, which says hello where it has a user."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1 << 16, local_addr=(host, 0))
    try:
        raw = Raw(reader, writer)
        await raw.send(UPGRADE)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        if user is not None:
            await raw.send(text({"type": "hello", "protocol": 1, "user": user}))
        yield raw
    finally:
        writer.transport.abort()


async def admitted(raw: Raw) -> bool:
    """Whether the hello of a client was answered with one."""
    heard = await raw.message()
    return heard is not None and heard["type"] == "hello"


async def http(served: Served, request: bytes) -> tuple[int, str]:
    """The status and the body of an answer without a WebSocket."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(request)
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    assert f"Content-Length: {len(body)}\r\n" in head or request.startswith(b"HEAD")
    assert "Connection: close" in head
    return int(head.split()[1]), body


def resident(served: Served) -> int:
    """Bytes of memory that the process of the server has."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


class Growth:
    """The most memory that the server has had beyond what it had at the start."""

    def __init__(self, served: Served) -> None:
        self.served, self.start, self.most = served, resident(served), 0

    def look(self) -> int:
        """Bytes beyond those at the start."""
        grown = resident(self.served) - self.start
        self.most = max(self.most, grown)
        return grown

    async def watch(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(0.01)
