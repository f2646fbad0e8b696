"""The front: one address, behind which each session goes to a replica, byte for byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address, ip_network

from pie.errors import PieError
from pie.replicas import head, routing
from pie.replicas.head import BadHeadError, Head

_LOOPBACK = "127.0.0.1"
_PART_BYTES = 64 << 10
_PROBE_S = 5.0
"""How long a replica may take to say whether it is ready."""
_MAX_HOPS = 16
"""Addresses that are looked at of those that proxies name, from the last."""
_MORE_OPEN = 256
"""Connections beside those of clients: the ones that have not said yet what they are."""
_MORE_REFUSED = 64
"""Connections beside all of those that are told why there is no place for them; one more is cut off."""
_LINGER_S = 1.0
"""How long what a refused client still sends is thrown away, so that it gets its answer."""
_LINGER_BYTES = 64 << 10
_TLS_HANDSHAKE = b"\x16"
"""The first byte of a client that begins with TLS: the type of its record, by RFC 8446, 5.1."""
_CLOSE_S = 2.0
"""How long a client may take to read what is left for it."""


@dataclass(frozen=True)
class FrontOptions:
    """How clients are let in."""

    trusted_proxies: Sequence[str]
    """Addresses and networks of proxies, which may name users and addresses."""
    user_header: str
    """The header in which they name users."""
    inner_header: str
    """The header in which the front names them to replicas."""
    max_connections: int
    handshake_timeout_s: float


class Front:
    """Passes connections on to replicas that live. It belongs to one event loop."""

    def __init__(self, n_replicas: int, options: FrontOptions) -> None:
        self._options = options
        self._trusted = [ip_network(proxy, strict=False) for proxy in options.trusted_proxies]
        self._ports: list[int | None] = [None] * n_replicas
        self._reasons = ["it is about to start"] * n_replicas
        self._n_open = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def live(self) -> Mapping[int, int]:
        """The ports of the replicas that live, by their number."""
        return {index: port for index, port in enumerate(self._ports) if port is not None}

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Opens the address; returns it. PieError `port-in-use` where it cannot be had."""
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=head.MAX_BYTES)
        except OSError as error:
            raise PieError(
                "port-in-use", f"{host}:{port} cannot be served on ({error.strerror or error}); choose another one with server.port"
            ) from error
        address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return address

    def up(self, index: int, port: int) -> None:
        """A replica serves on that port of this machine."""
        self._ports[index] = port

    def down(self, index: int, reason: str) -> None:
        """A replica does not serve; its sessions go to others."""
        self._ports[index], self._reasons[index] = None, reason

    async def close(self) -> None:
        """Ends all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._n_open += 1
        try:
            n_more = self._n_open - self._options.max_connections - _MORE_OPEN
            if n_more <= 0:
                await self._serve(reader, writer)
            elif n_more <= _MORE_REFUSED:
                message = f"{self._n_open - 1} connections are open, and server.max_connections allows no more; come back later or raise it"
                await self._refuse(writer, HTTPStatus.SERVICE_UNAVAILABLE, "limit-connections", message)
                await _linger(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client or the replica is gone, and the other learns it by the end of its connection
        except asyncio.CancelledError:
            pass  # the front is closed
        finally:
            await _closed(writer)
            self._n_open -= 1
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, from the first byte to the last."""
        peer = writer.get_extra_info("peername")
        if peer is None:
            return  # it was gone before it was looked at
        await self._answer(peer[0], reader, writer)
        await _linger(reader, writer)

    async def _answer(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes a connection on, or says why not."""
        try:
            async with asyncio.timeout(self._options.handshake_timeout_s):
                request = head.read(await _head(reader))
            if not request.is_upgrade and request.path == "/readyz":
                await self._say(writer, *await self._readiness())
                return
            prefix, is_trusted = request.prefix(), self._trusts(address)
        except TimeoutError:
            await self._say(writer, HTTPStatus.REQUEST_TIMEOUT, "the request took too long")
            return
        except asyncio.LimitOverrunError:
            await self._say(writer, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a request has at most {head.MAX_BYTES} bytes")
            return
        except BadHeadError as error:
            await self._say(writer, HTTPStatus.BAD_REQUEST, str(error))
            return
        if request.values(self._options.user_header.lower()) and not is_trusted:
            message = (
                f"the header {self._options.user_header} names a user, and {address} is not a proxy that server.trusted_proxies names; "
                "prove who you are with a key, or add the proxy there"
            )
            await self._refuse(writer, HTTPStatus.FORBIDDEN, "untrusted-header", message)
            return
        await self._pass_on(session_key(request, prefix, address), self._inner(request, address, is_trusted), reader, writer)

    async def _pass_on(self, key: bytes, request: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connects a client with the first replica of its order that lives, until one of them ends."""
        for index in routing.order(key, len(self._ports)):
            port = self._ports[index]
            if port is None:
                continue
            try:
                theirs, mine = await asyncio.open_connection(_LOOPBACK, port)
            except OSError:
                continue  # it has ended, which is about to be known
            try:
                mine.write(request.written())
                await _joined(reader, mine, theirs, writer)
            finally:
                await _closed(mine)
            return
        reasons = "; ".join(f"replica {index}: {reason}" for index, reason in enumerate(self._reasons))
        await self._refuse(
            writer, HTTPStatus.SERVICE_UNAVAILABLE, "model-unavailable", f"no replica serves now ({reasons}); connect again later"
        )

    def _inner(self, request: Head, address: str, is_trusted: bool) -> Head:
        """The request as a replica gets it: with the address of the client, and the user that a proxy names."""
        options = self._options
        inner = request if request.is_for_program else request.without_query()
        for name in (options.user_header.lower(), options.inner_header.lower(), head.FORWARDED_FOR):
            inner = inner.without(name)
        for user in request.values(options.user_header.lower()):
            inner = inner.with_field(options.inner_header, user)
        if request.is_for_program or not request.is_upgrade:
            # A further request of this connection would be passed on unread, and name any address.
            inner = inner.without("connection").with_field("Connection", "close")
        return inner.with_field("X-Forwarded-For", self._forwarded(request, address) if is_trusted else address)

    def _forwarded(self, request: Head, address: str) -> str:
        """The last address that a proxy names and that is not a proxy; that of the proxy where there is none."""
        hops = [hop.strip() for value in request.values(head.FORWARDED_FOR) for hop in value.split(",")]
        for hop in reversed(hops[-_MAX_HOPS:]):
            try:
                if not self._trusts(hop):
                    return hop
            except ValueError:
                break
        return address

    def _trusts(self, address: str) -> bool:
        found = ip_address(address.partition("%")[0])
        mapped = getattr(found, "ipv4_mapped", None)
        return any((mapped or found) in network for network in self._trusted)

    async def _readiness(self) -> tuple[HTTPStatus, str]:
        """Ready as long as one replica is; with what is in the way of the others, one a line."""
        said = [f"replica {index}: {reason}" for index, reason in enumerate(self._reasons) if self._ports[index] is None]
        answers = await asyncio.gather(*(_ready(port) for port in self.live.values()))
        said += [f"replica {index}: {why}" for index, why in zip(self.live, answers, strict=True) if why]
        is_ready = any(not why for why in answers)
        return HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, "\n".join(["ready", *said] if is_ready else said)

    async def _refuse(self, writer: asyncio.StreamWriter, status: HTTPStatus, code: str, message: str) -> None:
        """Answers an upgrade as a server does that refuses it."""
        await self._say(writer, status, json.dumps({"error": {"code": code, "message": message, "details": {}}}), "application/json")

    @staticmethod
    async def _say(writer: asyncio.StreamWriter, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        body = f"{text}\n".encode()
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close"]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()


async def _head(reader: asyncio.StreamReader) -> bytes:
    """What a client sends, up to the end of the head of its request."""
    first = await reader.readexactly(1)
    if first == _TLS_HANDSHAKE:
        # The end of a head would not come: the client waits for the other side of TLS.
        raise BadHeadError("this server speaks no TLS; write ws:// in place of wss://, or http:// in place of https://")
    return first + await reader.readuntil(b"\r\n\r\n")


def session_key(request: Head, prefix: str | None, address: str) -> bytes:
    """By what sessions go to the same replica: the prefix that they name, else their key, else their address."""
    if prefix is not None:
        return b"prefix:" + prefix.encode()
    if keys := request.values("authorization"):
        return b"key:" + keys[0].encode("latin-1")
    return b"address:" + address.encode()


async def _joined(
    reader: asyncio.StreamReader, mine: asyncio.StreamWriter, theirs: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Passes bytes both ways until the replica ends the connection, as it does when the client has.

    Raises OSError where either is cut off: the other one would wait for it for ever.
    """
    up, down = asyncio.create_task(_pumped(reader, mine)), asyncio.create_task(_pumped(theirs, writer))
    try:
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        if up.done():
            up.result()
            await down
        else:
            down.result()
    except OSError:
        mine.transport.abort()
        raise
    finally:
        for task in (up, down):
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes on what comes, no faster than it is taken."""
    while part := await reader.read(_PART_BYTES):
        writer.write(part)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Throws away what an answered client still sends: the system would cut it off before it has read the answer."""
    if writer.can_write_eof():
        writer.write_eof()
    n_bytes = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while n_bytes < _LINGER_BYTES and (part := await reader.read(_PART_BYTES)):
                n_bytes += len(part)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Closes a connection; whoever does not read what is left is cut off."""
    writer.close()
    try:
        async with asyncio.timeout(_CLOSE_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()


async def _ready(port: int) -> str:
    """Why a replica is not ready; empty where it is."""
    try:
        async with asyncio.timeout(_PROBE_S):
            reader, writer = await asyncio.open_connection(_LOOPBACK, port)
            try:
                writer.write(f"GET /readyz HTTP/1.1\r\nHost: {_LOOPBACK}:{port}\r\n\r\n".encode())
                answer = await reader.read(_PART_BYTES)
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        return f"it does not answer ({type(error).__name__})"
    first, _, body = answer.partition(b"\r\n\r\n")
    return "" if first.startswith(b"HTTP/1.1 200") else " ".join(body.decode(errors="replace").split())
