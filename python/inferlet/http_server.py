"""Requests by HTTP that this program answers (`pie run PROGRAM --port 8000`, `pie install --http PROGRAM`).

A program serves where its module has a function `fetch`, which gets each request and returns its answer:

    from inferlet.http_server import Request, Response

    async def fetch(request: Request) -> Response:
        name = request.query.get("name", "you")
        return Response.json({"hello": name})

Where one instance answers all requests, they are answered side by side. A request whose client goes is cancelled: the
task that works on it gets `asyncio.CancelledError` where it waits, and what it holds is freed. What `fetch` raises goes
to standard error, and its client gets the status 500.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json as _json_module
import sys
import traceback
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from wit_world.imports import http as _http
from wit_world.imports import http_server as _http_server

from inferlet import _arguments, _json
from inferlet._exchange import Body, Part
from inferlet._wait import flush_output, resolve
from inferlet.errors import ErrorCode, InferletError, host
from inferlet.http import HeaderPairs, Headers

__all__ = ["Handler", "Request", "Response", "ServerEvent", "is_serving", "serve"]

_JSON_TYPE = "application/json"
_TEXT_TYPE = "text/plain;charset=UTF-8"
_EVENTS_TYPE = "text/event-stream"
_FIRST_STATUS, _LAST_STATUS = 200, 599
_STATUSES_WITHOUT_BODY = frozenset({204, 205, 304})
# A part of a body that is known whole: what is larger is handed on in several, each when the client takes it.
_STRIDE_BYTES = 64 << 10


class Request:
    """A request of a client. Its body is read once, whole or part by part (`async for part in request`)."""

    def __init__(self, raw: _http_server.IncomingRequest) -> None:
        self._raw = raw
        head = self._raw.head()
        split = urlsplit(head.url)
        self.method: str = head.method
        """Such as `GET`."""
        self.url: str = head.url
        """As the client has asked for it, without what names the program at a server."""
        self.path: str = split.path
        """The path of the URL, without the query."""
        self.query: dict[str, str] = dict(parse_qsl(split.query, keep_blank_values=True))
        """Of a name that comes several times the last value; `query_pairs` has all of them."""
        self.query_pairs: list[tuple[str, str]] = parse_qsl(split.query, keep_blank_values=True)
        """The names of the query with their values, in the order in which they came."""
        self.headers: Headers = Headers((header.name, header.value) for header in head.headers)
        """What the client says of its request, by names in any case."""
        self.remote_address: str = head.remote_address
        """The address of the client."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (part := await resolve(self._raw.read(), self._raw)) is not None:
            yield part

    async def body(self) -> bytes:
        """What is left of the body.

        Raises `InferletError`: `limit-http-bytes`, `limit-http-time` or `client-gone`.
        """
        return b"".join([part async for part in self])

    async def text(self) -> str:
        """What is left of the body as text; bytes that are not UTF-8 become U+FFFD."""
        return (await self.body()).decode(errors="replace")

    async def json(self) -> Any:
        """What is left of the body as a JSON value; ValueError where it is not JSON."""
        return _json_module.loads(await self.body())

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url}>"


@dataclass(frozen=True)
class ServerEvent:
    """One event of a stream of server-sent events."""

    data: object = ""
    """A str as it is, anything else as JSON."""
    event: str | None = None
    """The name by which pages listen to it; None: `message`."""
    id: str | None = None
    """What a page sends as `Last-Event-ID` when it connects again."""
    retry_ms: int | None = None
    """How long a page waits before it does, in milliseconds."""

    def text(self) -> str:
        """The event as it is sent."""
        data = self.data if isinstance(self.data, str) else _json.dumps(self.data, "the event", ErrorCode.INVALID_ARGUMENT)
        lines = [f"{name}: {_line(name, value)}\n" for name, value in (("event", self.event), ("id", self.id)) if value is not None]
        if self.retry_ms is not None:
            lines.append(f"retry: {_arguments.count('retry_ms', self.retry_ms)}\n")
        lines += [f"data: {line}\n" for line in data.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
        return "".join(lines) + "\n"


class Response:
    """The answer to a request.

    `body` is bytes, a str, or an iterable or async iterable of those, which is sent part by part: the next part is
    asked for when the client has taken the one before.
    """

    def __init__(self, body: Body = None, *, status: int = 200, headers: HeaderPairs = ()) -> None:
        if isinstance(status, bool) or not isinstance(status, int) or not _FIRST_STATUS <= status <= _LAST_STATUS:
            _arguments.refuse("status", status, f"a whole number from {_FIRST_STATUS} to {_LAST_STATUS}")
        if body is not None and not isinstance(body, Part | Iterable | AsyncIterable):
            _arguments.refuse("body", body, "bytes, a str, or an iterable of those")
        self.status: int = int(status)
        """The number of the status, from 200 to 599."""
        self.headers: list[tuple[str, str]] = list(headers.items() if isinstance(headers, Mapping) else headers)
        """Names with their values, in the order in which they are sent."""
        self.body: Body = body
        """What is sent; None: nothing."""
        if isinstance(body, str):
            self._default_header("content-type", _TEXT_TYPE)

    @classmethod
    def json(cls, value: object, *, status: int = 200, headers: HeaderPairs = ()) -> Response:
        """An answer whose body is a JSON value."""
        response = cls(_json.dumps(value, "the body", ErrorCode.INVALID_ARGUMENT).encode(), status=status, headers=headers)
        response._default_header("content-type", _JSON_TYPE)
        return response

    @classmethod
    def events(cls, source: AsyncIterable[object] | Iterable[object], *, headers: HeaderPairs = ()) -> Response:
        """An answer that is a stream of server-sent events.

        `source` gives them: `ServerEvent`, or the data of one, a str as it is and anything else as JSON.
        """
        response = cls(_events(source), headers=headers)
        response._default_header("content-type", _EVENTS_TYPE)
        response._default_header("cache-control", "no-store")
        return response

    def _default_header(self, name: str, value: str) -> None:
        if not _has(self.headers, name):
            self.headers.append((name, value))


Handler: TypeAlias = Callable[[Request], Awaitable[Response] | Response]
"""What answers requests: a function of one, which may be `async`."""


def is_serving() -> bool:
    """Whether this program was launched to answer requests."""
    return _http_server.is_serving()


async def serve(fetch: Handler) -> None:
    """Answers requests by `fetch` until no more come, side by side. A module with that function needs no call of it.

    Raises `InferletError` `not-serving` where the program was not launched to answer requests.
    """
    await _serve(fetch, traceback.print_exception)


async def _serve(fetch: Handler, tell: Callable[[BaseException], None]) -> None:
    """The same; `tell` tells, on standard error, what went wrong with an answer."""
    tasks: set[asyncio.Task[None]] = set()
    try:
        while (raw := await resolve(_http_server.next_request())) is not None:
            task = asyncio.ensure_future(_answer(fetch, raw, tell))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _answer(fetch: Handler, raw: _http_server.IncomingRequest, tell: Callable[[BaseException], None]) -> None:
    """Answers one request, unless its client goes before."""
    exchange = _Exchange(raw)
    answering = asyncio.ensure_future(exchange.answer(fetch))
    leaving = asyncio.ensure_future(exchange.gone())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Both hold the request until they have ended.
        for one in (answering, leaving):
            one.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving
        await _ended(answering, tell)
        exchange.close()


async def _ended(answering: asyncio.Future[None], tell: Callable[[BaseException], None]) -> None:
    """Waits for the end of an answer, and tells what went wrong with it."""
    try:
        await answering
    except asyncio.CancelledError:
        pass
    except Exception as error:
        if isinstance(error, InferletError) and error.code == ErrorCode.CLIENT_GONE:
            return
        flush_output()
        sys.stderr.flush()
        tell(error)


class _Exchange:
    """A request that is being answered."""

    def __init__(self, raw: _http_server.IncomingRequest) -> None:
        self._raw = raw

    async def gone(self) -> None:
        """Waits until nobody wants the answer."""
        await resolve(self._raw.gone(), self)

    def close(self) -> None:
        """Gives the request up; where it was not answered its client gets an error."""
        self._raw.abandon()
        self._raw.__exit__(None, None, None)

    async def answer(self, fetch: Handler) -> None:
        """Answers it with what `fetch` gives."""
        given: object = fetch(Request(self._raw))
        response = await given if inspect.isawaitable(given) else given
        if not isinstance(response, Response):
            _arguments.refuse("what fetch returned", response, f"an inferlet.http_server.Response: {_made_by(response)}")
        whole = b"" if response.body is None else _bytes(response.body) if isinstance(response.body, Part) else None
        pairs = response.headers
        if whole is not None and response.status not in _STATUSES_WITHOUT_BODY and not _has(pairs, "content-length"):
            pairs = [*pairs, ("content-length", str(len(whole)))]
        headers = [_http.Header(_arguments.text("header", name), _arguments.text(f"header {name}", value)) for name, value in pairs]
        host(self._raw.respond, response.status, headers)
        if whole is None:
            await self._write_parts(response.body)
        else:
            for start in range(0, len(whole), _STRIDE_BYTES):
                await self._write(whole[start : start + _STRIDE_BYTES])
        host(self._raw.finish)

    async def _write_parts(self, parts: Any) -> None:
        try:
            if isinstance(parts, AsyncIterable):
                async for part in parts:
                    await self._write(_bytes(part))
            else:
                for part in parts:
                    await self._write(_bytes(part))
        finally:
            await _close(parts)

    async def _write(self, part: bytes) -> None:
        await resolve(self._raw.write_part(part), self)


async def _close(source: object) -> None:
    """Closes a generator: what it holds, as a context, is freed at once where the client has gone."""
    if inspect.isasyncgen(source):
        await source.aclose()
    elif inspect.isgenerator(source):
        source.close()


async def _events(source: AsyncIterable[object] | Iterable[object]) -> AsyncIterator[str]:
    def text(item: object) -> str:
        return (item if isinstance(item, ServerEvent) else ServerEvent(item)).text()

    try:
        if isinstance(source, AsyncIterable):
            async for item in source:
                yield text(item)
        else:
            for item in source:
                yield text(item)
    finally:
        await _close(source)


def _has(headers: Iterable[tuple[str, str]], name: str) -> bool:
    return any(str(other).lower() == name for other, _ in headers)


def _bytes(part: object) -> bytes:
    return _arguments.text("body", part).encode() if isinstance(part, str) else _arguments.blob("body", part)


def _made_by(value: object) -> str:
    """How a value that is not a Response becomes one."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        return "write Response(...) around it"
    if value is None:
        return "return one on every path, such as Response(status=204)"
    return "write Response.json(...) around a value of JSON"


def _line(name: str, value: str) -> str:
    if any(end in _arguments.text(name, value) for end in "\r\n\0"):
        _arguments.refuse(name, value, "a text of one line")
    return value
