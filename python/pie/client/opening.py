"""Opening a connection: the WebSocket, the hellos, and what to tell the user when it does not come about."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidHandshake, InvalidStatus, InvalidURI

from pie.client.signing import PrivateKey
from pie.client.wire import PROTOCOL, Challenge, ErrorInfo, Greeting, Hello, decode, encode, parse
from pie.errors import PieError

# What a server may send beside what its `message_bytes` bounds: lists, logs, the hello itself.
_MAX_OTHER_BYTES = 64 << 20
# JSON may write a byte of a message as six.
_MAX_ESCAPED_BYTES = 6
_CLOSE_S = 2.0
_PING_S = 20.0
_PONG_S = 60.0
_SCHEMES = ("ws://", "wss://")
_NOT_THE_SERVER = "websocket-unsupported"
"""How a server of ours refuses a WebSocket at the address of a program."""
_WITHOUT_TLS = "write ws:// in place of wss://, or http:// in place of https://"

_challenges = msgspec.json.Decoder(Challenge)
_greetings = msgspec.json.Decoder(Greeting)
_hellos = msgspec.json.Decoder(Hello)
_refusals = msgspec.json.Decoder(dict[str, ErrorInfo])


@dataclass(frozen=True)
class Identity:
    """Who a client says that it is, and how it proves that."""

    user: str | None = None
    key: str | None = field(default=None, repr=False)
    private_key: PrivateKey | None = None


class Socket(ClientConnection):
    """A WebSocket that tells in one way that it has ended: by `ConnectionClosed`.

    A transport of CPython that was closed while it had bytes to send, and has sent them, has no loop any more, and does
    not know that it has ended: to abort it, which a WebSocket does by itself, is an AttributeError.
    """

    async def send(self, message: Any, *, text: bool | None = None) -> None:
        """Sends a message."""
        with self._telling_its_end():
            await super().send(message, text=text)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes it, and waits for the other side to do so too."""
        with self._telling_its_end():
            await super().close(code, reason)

    def abort(self) -> None:
        """Ends it at once; one that has ended stays so."""
        with contextlib.suppress(ConnectionClosed), self._telling_its_end():
            self.transport.abort()

    @contextlib.contextmanager
    def _telling_its_end(self) -> Iterator[None]:
        try:
            yield
        except AttributeError:
            if not self.transport.is_closing():
                raise
            raise ConnectionClosedError(None, None) from None


async def open_socket(address: str, who: Identity, *, timeout_s: float) -> tuple[Socket, Hello]:
    """Connects and exchanges hellos.

    Raises PieError `connection-failed` where that is not possible, `protocol-version` where the two do not understand
    each other, or the error with which the server refused.
    """
    socket: Socket | None = None
    try:
        async with asyncio.timeout(timeout_s):
            opened = await connect(
                address if address.startswith(_SCHEMES) else _refuse_scheme(address),
                compression=None,
                max_size=_MAX_OTHER_BYTES,
                open_timeout=None,
                close_timeout=_CLOSE_S,
                ping_interval=_PING_S,
                ping_timeout=_PONG_S,
                proxy=None,
                user_agent_header=_client_name(),
                create_connection=Socket,
            )
            assert isinstance(opened, Socket)
            socket = opened
            return socket, await _greet(socket, who)
    except BaseException as error:
        if socket is not None:
            socket.abort()
        told = _explain(error, address, timeout_s)
        if told is None:
            raise
        raise told from error


async def _greet(socket: ClientConnection, who: Identity) -> Hello:
    hello: dict[str, object] = {"type": "hello", "protocol": PROTOCOL, "client": _client_name()}
    proof = {"user": who.user, "key": who.key, "public_key": who.private_key and who.private_key.public_line}
    hello |= {name: value for name, value in proof.items() if value is not None}
    await socket.send(encode(hello))
    answer = await _answer(socket)
    if who.private_key is not None and (challenge := parse(answer, _challenges)).type == "challenge":
        # The name by which this client called the server: it is signed, so that no other server can use the signature.
        host = socket.request.headers["Host"] if socket.request is not None else ""
        signature = who.private_key.sign_hello(host=host, user=who.user or "", nonce=challenge.nonce)
        await socket.send(encode({"type": "proof", "signature": signature}))
        answer = await _answer(socket)
    greeting = parse(answer, _greetings)
    if greeting.protocol != PROTOCOL:
        message = (
            f"the server {greeting.server!r} speaks protocol {greeting.protocol}, and this client protocol {PROTOCOL}; "
            "install the same version of both"
        )
        raise PieError("protocol-version", message)
    said = parse(answer, _hellos)
    socket.protocol.max_message_size = _MAX_OTHER_BYTES + _MAX_ESCAPED_BYTES * max(0, said.limits.message_bytes)
    return said


async def _answer(socket: ClientConnection) -> str | bytes:
    """The next message of the server; PieError where it is a refusal."""
    answer = await socket.recv()
    frame, _ = decode(answer)
    if frame.error is not None:
        raise frame.error.to_error()
    return answer


def _explain(error: BaseException, address: str, timeout_s: float) -> PieError | None:
    """What to raise in place of `error`; None: the error itself."""
    match error:
        case PieError():
            return None
        case ssl.SSLError():  # that of a certificate is a ValueError, too
            reason = _of_tls(error)
        case InvalidURI() | ValueError():
            reason = "it is not the address of a server; write it as ws://HOST:PORT"
        case InvalidStatus():
            refusal = _refusal(error.response.body, address)
            if refusal is not None:
                return refusal
            reason = f"what listens there answers HTTP {error.response.status_code}; check that it is `pie serve`"
        case ConnectionClosed():
            said = f" ({error.rcvd.reason})" if error.rcvd is not None and error.rcvd.reason else ""
            reason = f"what listens there closed the connection before it said hello{said}; check that it is `pie serve`"
        case InvalidHandshake() | EOFError():
            reason = "what listens there does not speak WebSocket; check that it is `pie serve`"
        case TimeoutError():
            more = f"; where it speaks no TLS, {_WITHOUT_TLS}" if address.startswith("wss://") else ""
            reason = f"there was no answer within {timeout_s:g} s; check the address and that `pie serve` runs there{more}"
        case ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError() if address.startswith("wss://"):
            reason = _broken_tls(_described(error))
        case OSError():
            reason = f"{_described(error)}; check the address, and start the server with `pie serve`"
        case _:
            return None
    return PieError("connection-failed", f"cannot connect to {address!r}: {reason}", {"address": address})


def _described(error: OSError) -> str:
    """What went wrong, without the address that asyncio puts into it."""
    return (
        os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error) or "the connection broke"
    )


def _of_tls(error: ssl.SSLError) -> str:
    """What went wrong in a handshake of TLS, and the remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS failed ({error.verify_message}); check the certificate of the server, and the name by which you call it"
    if isinstance(error, ssl.SSLEOFError):
        return _broken_tls("the connection broke")
    reason = getattr(error, "reason", None) or str(error)
    if "ALERT" in reason:  # which is a record of TLS
        return f"TLS failed ({reason}); check what the server asks of its clients"
    return f"the server answered without TLS ({reason}); {_WITHOUT_TLS}"


def _broken_tls(what: str) -> str:
    return f"{what} before TLS was agreed on; where the server speaks no TLS, {_WITHOUT_TLS}"


def _refusal(body: bytes | bytearray | None, address: str) -> PieError | None:
    """The error in the body of an HTTP answer, if a server of ours wrote it."""
    try:
        refusal = _refusals.decode(body or b"")["error"].to_error()
    except (msgspec.MsgspecError, KeyError):
        return None
    if refusal.code != _NOT_THE_SERVER:
        return refusal
    parts = urlsplit(address)
    reason = f"its path leads to a program that answers HTTP, and not to the server itself; write {parts.scheme}://{parts.netloc}"
    return PieError("connection-failed", f"cannot connect to {address!r}: {reason}", {"address": address})


def _refuse_scheme(address: str) -> str:
    raise ValueError(f"{address!r} is not a WebSocket address")


def _client_name() -> str:
    return f"pie-python/{version('pie-engine')}"
