"""Attacks by HTTP, on programs that anybody may ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pie.client import connect
from tools.siege.doors import HOLD_S, Target, together
from tools.siege.programs import Attack, packed, url_of

_ANSWERS = b"""
from inferlet.http_server import Response


async def fetch(request):
    return Response("hello")
"""

_STREAMS = b"""
from inferlet.http_server import Response


async def fetch(request):
    async def parts():
        while True:
            yield b"x" * (1 << 20)

    return Response(parts())
"""

_EVENTS = b"""
from inferlet.http_server import Response


async def fetch(request):
    async def events():
        n = 0
        while True:
            n += 1
            yield {"n": n, "text": "x" * 10_000}

    return Response.events(events())
"""

_READ_BYTES = 16 << 10


class Asking:
    """A connection that asks by any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Sends bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def hear(self, n_bytes: int = _READ_BYTES) -> bytes:
        """What has come, waiting for the first of it."""
        return await self._reader.read(n_bytes)


@asynccontextmanager
async def asking(target: Target) -> AsyncIterator[Asking]:
    """A connection that is cut at the end. It takes little ahead of what is read."""
    reader, writer = await asyncio.open_connection(target.host, target.port, limit=_READ_BYTES)
    try:
        yield Asking(reader, writer)
    finally:
        writer.transport.abort()


async def installed(target: Target, name: str, text: bytes, instance: str = "request") -> str:
    """Installs a program that anybody may ask; its path."""
    manifest = f'[package]\nname = "{name}"\nversion = "1"\n[http]\ninstance = "{instance}"\npublic = true\n'
    async with connect(url_of(target), user=target.user) as client:
        await client.install(packed("main.py", text), manifest=manifest)
    return f"/http/~{target.user}/{name}/"


def request(target: Target, path: str, *headers: str, method: str = "GET") -> bytes:
    """The head of a request."""
    lines = (f"{method} {path} HTTP/1.1", f"Host: {target.host}:{target.port}", *headers, "", "")
    return "\r\n".join(lines).encode()


async def slow_readers(target: Target) -> None:
    """Twenty-four readers of answers without an end, who take a little at a time."""
    path = await installed(target, "streams", _STREAMS)

    async def read() -> None:
        async with asking(target) as connection:
            await connection.send(request(target, path))
            for _ in range(int(HOLD_S / 0.25)):
                if not await connection.hear(1 << 10):
                    return
                await asyncio.sleep(0.25)

    await together(read, 24)


async def half_requests(target: Target) -> None:
    """A hundred requests that are never whole: half a head, or a body that drips."""
    path = await installed(target, "answers", _ANSWERS)
    halves = [request(target, path)[:-2], request(target, path, "Content-Length: 1000000", method="POST")]

    async def drip() -> None:
        half = halves[0]
        halves.reverse()
        async with asking(target) as connection:
            await connection.send(half)
            for _ in range(int(HOLD_S)):
                await asyncio.sleep(1)
                await connection.send(b"x")

    await together(drip, 100)


async def huge_heads(target: Target) -> None:
    """Heads as long as they may be and longer, by one header, by many, and by their path."""
    path = await installed(target, "answers", _ANSWERS)
    heads = (
        request(target, path, "A: " + "x" * 31_000),
        request(target, path, "A: " + "x" * 1_000_000),
        request(target, path, *["A: b"] * 200),
        request(target, path, *["A: b"] * 100_000),
        request(target, path + "x" * 60_000),
    )
    for _ in range(10):
        for head in heads:
            async with asking(target) as connection:
                # Who has heard enough reads no more, and closes.
                with suppress(ConnectionError):
                    await connection.send(head)
                    await connection.hear()


async def public_routes(target: Target) -> None:
    """Requests in a loop to programs that anybody may ask, each an instance, and to some that there are not."""
    own = await installed(target, "answers", _ANSWERS)
    paths = (own, f"/http/~{target.user}/absent/", "/http/~nobody/answers/", f"/http/~{target.user}/answers@9/")
    heads = b"".join(request(target, path) for path in paths)

    async def ask() -> None:
        async with asking(target) as connection:
            for _ in range(100):
                await connection.send(heads)
                if not await connection.hear():
                    return

    await together(ask, 8)


async def unread_events(target: Target) -> None:
    """Thirty-two streams of events of one instance, which nobody reads."""
    path = await installed(target, "events", _EVENTS, "shared")

    async def hold() -> None:
        async with asking(target) as connection:
            await connection.send(request(target, path, "Accept: text/event-stream"))
            await asyncio.sleep(HOLD_S)

    await together(hold, 32)


ATTACKS: tuple[Attack, ...] = (slow_readers, half_requests, huge_heads, public_routes, unread_events)
