"""Attacks on the port: frames and connections, written by hand over a socket."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

_MASK = b"\x01\x02\x03\x04"
_TEXT, _BINARY, _CONTINUED, _PING, _FINAL = 1, 2, 0, 9, 0x80
HOLD_S = 8.0
"""How long an attack that holds something holds it."""


@dataclass(frozen=True)
class Target:
    """Where an attacker attacks, and under which name."""

    host: str
    port: int
    user: str


class Raw:
    """A WebSocket that sends whatever it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def frame(self, kind: int, payload: bytes, *, final: bool = True, length: int | None = None) -> None:
        """Sends a frame, which may claim to be longer than it is."""
        n_bytes = len(payload) if length is None else length
        size = struct.pack("!B", 0x80 | n_bytes) if n_bytes < 126 else struct.pack("!BQ", 0x80 | 127, n_bytes)
        body = bytes(byte ^ _MASK[index % 4] for index, byte in enumerate(payload)) if len(payload) < 4096 else payload
        self._writer.write(bytes([(_FINAL if final else 0) | kind]) + size + _MASK + body)
        await self._writer.drain()

    async def raw(self, data: bytes) -> None:
        """Sends bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def say(self, message: object) -> None:
        """Sends a JSON object."""
        await self.frame(_TEXT, json.dumps(message).encode())

    async def hear(self, n_bytes: int = 1 << 16) -> bytes:
        """What has come, waiting for the first of it."""
        return await self._reader.read(n_bytes)


@asynccontextmanager
async def socket(target: Target, *, hello: bool = True) -> AsyncIterator[Raw]:
    """A connection that was upgraded, and has said hello."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    try:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET / HTTP/1.1\r\nHost: {target.host}:{target.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        writer.write(lines.encode())
        await reader.readuntil(b"\r\n\r\n")
        raw = Raw(reader, writer)
        if hello:
            await raw.say({"type": "hello", "protocol": 1, "user": target.user})
            await raw.hear()
        yield raw
    finally:
        writer.transport.abort()


async def pings_before_hello(target: Target) -> None:
    """Pings without reading the answers, before the hello."""
    async with socket(target, hello=False) as raw:
        for _ in range(20_000):
            await raw.frame(_PING, b"x" * 125)


async def frame_without_end_before_hello(target: Target) -> None:
    """Fifteen of sixteen megabytes of a frame, held."""
    async with socket(target, hello=False) as raw:
        await raw.frame(_TEXT, b"", length=16 << 20)
        await raw.raw(bytes(15 << 20))
        await asyncio.sleep(HOLD_S)


async def frames_without_end(target: Target) -> None:
    """The same after the hello, on eight connections at once."""

    async def hold() -> None:
        async with socket(target) as raw:
            await raw.frame(_TEXT, b"", length=16 << 20)
            for _ in range(15):
                await raw.raw(bytes(1 << 20))
            await asyncio.sleep(HOLD_S)

    await together(hold, 8)


async def fragments_with_pings(target: Target) -> None:
    """A message in fragments that never ends, kept alive by pings."""
    async with socket(target) as raw:
        await raw.frame(_TEXT, b"{", final=False)
        for _ in range(30):
            await raw.frame(_CONTINUED, bytes(256 << 10), final=False)
            await raw.frame(_PING, b"")
            await asyncio.sleep(0.1)


async def many_fields(target: Target) -> None:
    """One message with very many fields."""
    async with socket(target) as raw:
        fields = ",".join(f'"{n:x}":0' for n in range(300_000))
        await raw.frame(_TEXT, b'{"id":1,"type":"ping",' + fields.encode() + b"}")
        await raw.hear()


async def acknowledgements(target: Target) -> None:
    """Acknowledgements as fast as they go."""
    payload = b'{"type":"ack","pid":1,"seq":1}'
    body = bytes(byte ^ _MASK[index % 4] for index, byte in enumerate(payload))
    frame = bytes([_FINAL | _TEXT, 0x80 | len(payload)]) + _MASK + body
    async with socket(target) as raw:
        for _ in range(2000):
            await raw.raw(frame * 100)


async def slow_hello(target: Target) -> None:
    """Sixty connections that say hello a byte at a time."""

    async def drip() -> None:
        async with socket(target, hello=False) as raw:
            for byte in b'\x81\xa0\x01\x02\x03\x04{"type":':
                await raw.raw(bytes([byte]))
                await asyncio.sleep(0.5)

    await together(drip, 60)


async def connections(target: Target) -> None:
    """As many connections as the server gives."""

    async def hold() -> None:
        async with socket(target):
            await asyncio.sleep(HOLD_S)

    await together(hold, 400)


async def uploads(target: Target) -> None:
    """Uploads that are begun and never ended."""

    async def hold() -> None:
        async with socket(target) as raw:
            for number in range(4):
                header = {"id": number, "type": "upload", "digest": f"sha256:{number:064x}", "bytes": 16 << 20, "offset": 0, "last": False}
                text = json.dumps(header).encode()
                await raw.frame(_BINARY, struct.pack("<I", len(text)) + text + bytes(1 << 20))
            await asyncio.sleep(HOLD_S)

    await together(hold, 16)


async def churn(target: Target) -> None:
    """Connections that come and go."""
    for _ in range(200):
        async with socket(target):
            pass


async def unread_answers(target: Target) -> None:
    """Requests whose answers nobody reads."""
    async with socket(target) as raw:
        for number in range(5000):
            await raw.say({"id": number, "type": "stats" if number % 2 else "programs"})
        await asyncio.sleep(HOLD_S)


async def together(attack: Callable[[], Coroutine[None, None, None]], n: int) -> None:
    """Makes an attack so often at once. It fails where all of them do."""
    results = await asyncio.gather(*(attack() for _ in range(n)), return_exceptions=True)
    faults = [result for result in results if isinstance(result, Exception)]
    if len(faults) == n:
        raise faults[0]


ATTACKS = (
    pings_before_hello,
    frame_without_end_before_hello,
    frames_without_end,
    fragments_with_pings,
    many_fields,
    acknowledgements,
    slow_hello,
    connections,
    uploads,
    churn,
    unread_answers,
)
