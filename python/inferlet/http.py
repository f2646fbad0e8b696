"""Requests by HTTP to servers that the operator of the engine allows (`pie run --allow-net HOST`).

Inside a running event loop the functions are awaited, and outside of one they block and return the value itself:

    response = await http.get("https://api.example.com/v1/items", params={"page": 2})
    items = response.json()

    async with http.stream("POST", url, json={"prompt": "..."}) as response:
        async for line in response.lines():
            ...

`urllib.request` goes the same way, and so do `requests` and `httpx` where a program brings them along.

What fails raises `InferletError`, whose code says what it was: `net-denied`, `net-unreachable`, `http-protocol`,
`http-redirects`, `limit-http-requests`, `limit-http-bytes`, `limit-http-headers` or `limit-http-time`. An answer with a
status of 400 or more is an answer; `raise_for_status` makes it an error.
"""

from __future__ import annotations

import codecs
import json as _json_module
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from email.message import Message
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, TypeAlias, cast
from urllib.parse import urlencode, urlsplit, urlunsplit

from wit_world.imports import http as _http

from inferlet import _arguments, _json
from inferlet._exchange import Body, Exchange
from inferlet._wait import in_loop
from inferlet.errors import ErrorCode, InferletError, host

__all__ = [
    "Headers",
    "Response",
    "StatusError",
    "StreamedResponse",
    "delete",
    "get",
    "head",
    "patch",
    "post",
    "put",
    "refusal",
    "request",
    "stream",
]

HeaderPairs: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
Params: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]] | None
_ERRORS_BEGIN = 400
_JSON_TYPE = "application/json"
_TEXT_TYPE = "text/plain;charset=UTF-8"


class StatusError(Exception):
    """An answer says that the request failed; `response` is that answer."""

    def __init__(self, message: str, response: _Answer) -> None:
        super().__init__(message)
        self.response: _Answer = response
        """The answer, a `Response` or a `StreamedResponse`."""


class Headers(Mapping[str, str]):
    """Headers of an answer, by names in any case.

    It is a mapping of texts. A header that came several times has its values joined by commas.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs = [(name.lower(), value) for name, value in pairs]

    def get_all(self, name: str) -> list[str]:
        """The values of a header, each by itself."""
        return [value for other, value in self._pairs if other == name.lower()]

    def pairs(self) -> list[tuple[str, str]]:
        """Every header with its value, in the order in which they came."""
        return list(self._pairs)

    def __getitem__(self, name: str) -> str:
        values = self.get_all(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._pairs))

    def __len__(self) -> int:
        return len(dict(self._pairs))

    def __repr__(self) -> str:
        return f"Headers({self._pairs!r})"


class _Answer:
    """What every answer says before its body."""

    def __init__(self, head: _http.Head) -> None:
        self.status: int = head.status
        """The number of the status, such as 200."""
        self.reason: str = head.status_text
        """What the server says of the status; it may be empty."""
        self.url: str = head.url
        """Where it comes from, behind all redirects."""
        self.is_redirected: bool = head.is_redirected
        """Whether there was a redirect."""
        self.headers: Headers = Headers((header.name, header.value) for header in head.headers)
        """What the server says of its answer."""

    @property
    def ok(self) -> bool:
        """Whether the status says that it succeeded: 200 to 299."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def raise_for_status(self) -> None:
        """Raises `StatusError` where the status says that the request failed: 400 and above."""
        if self.status >= _ERRORS_BEGIN:
            raise StatusError(f"{self.url} answered with the status {self.status} {self.reason}", self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.status} {self.reason} {self.url}>"

    def _charset(self) -> str:
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        charset = message.get_content_charset("utf-8")
        try:
            return codecs.lookup(charset).name
        except LookupError:
            return "utf-8"


class Response(_Answer):
    """An answer that was read whole."""

    def __init__(self, head: _http.Head, content: bytes) -> None:
        super().__init__(head)
        self.content: bytes = content
        """The body."""

    @property
    def text(self) -> str:
        """The body as text, in the character set that the answer names, else UTF-8."""
        return self.content.decode(self._charset(), errors="replace")

    def json(self) -> Any:
        """The body as a JSON value; ValueError where it is none."""
        return _json_module.loads(self.content)


class StreamedResponse(_Answer):
    """An answer whose body is read as it comes. Iterating blocks the whole program; `async for` lets other tasks run.

    Leaving its `with` ends the request.
    """

    def __init__(self, head: _http.Head, exchange: Exchange) -> None:
        super().__init__(head)
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        return self._exchange.parts_now()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._exchange.parts()

    async def lines(self) -> AsyncIterator[str]:
        """The lines of the body as they come, without their ends; so server-sent events are read."""
        lines = _Lines(self._charset())
        async for part in self:
            for line in lines.feed(part):
                yield line
        for line in lines.feed(b"", is_end=True):
            yield line

    def lines_now(self) -> Iterator[str]:
        """As `lines`, and blocks the whole program while it waits."""
        lines = _Lines(self._charset())
        for part in self:
            yield from lines.feed(part)
        yield from lines.feed(b"", is_end=True)

    def read(self) -> Coroutine[Any, Any, bytes]:
        """Awaits what is left of the body. Outside of a running event loop it blocks and returns the bytes."""
        return _await_or_block(self._read, lambda: b"".join(self))

    def close(self) -> None:
        """Ends the request. Again it does nothing."""
        self._exchange.close()

    async def _read(self) -> bytes:
        return b"".join([part async for part in self])


class _Stream:
    """The answer to come, which a `with` or an `async with` begins to ask for."""

    def __init__(self, begin: Callable[[], Exchange]) -> None:
        self._begin = begin
        self._exchange: Exchange | None = None

    async def __aenter__(self) -> StreamedResponse:
        exchange = self._exchange = self._begin()
        try:
            return StreamedResponse(await exchange.head(), exchange)
        except BaseException:
            exchange.close()
            raise

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._end()

    def __enter__(self) -> StreamedResponse:
        exchange = self._exchange = self._begin()
        try:
            return StreamedResponse(exchange.head_now(), exchange)
        except BaseException:
            exchange.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        if self._exchange is not None:
            self._exchange.close()


class _Lines:
    """Cuts parts of a text into lines, which end with a line feed, a carriage return or both."""

    def __init__(self, charset: str) -> None:
        self._decoder = codecs.getincrementaldecoder(charset)(errors="replace")
        self._held = ""

    def feed(self, part: bytes, *, is_end: bool = False) -> Iterator[str]:
        """The lines that are complete with this part."""
        text = self._held + self._decoder.decode(part, is_end)
        # A carriage return at the end may be half of a line's end.
        held = "\r" if text.endswith("\r") and not is_end else ""
        *lines, self._held = text.removesuffix(held).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._held += held
        yield from lines
        if is_end and self._held:
            yield self._held


def request(  # noqa: PLR0913  # what there is to say of a request
    method: str,
    url: str,
    *,
    params: Params = None,
    headers: HeaderPairs = (),
    body: Body = None,
    json: object = None,
    timeout_s: float | None = None,
    redirects: str = "follow",
) -> Coroutine[Any, Any, Response]:
    """Sends a request and awaits its answer, with all of its body.

    `params` are added to the URL as its query. `body` is bytes, a str, or an iterable or async iterable of those, which
    is sent in parts; `json` is any JSON value in its place. `timeout_s` bounds all of it, within `limits.http_s`.
    `redirects` are followed (`"follow"`, 20 at most), an error (`"fail"`) or the answer (`"keep"`).

    Raises `InferletError` where there is no answer; its code says why.
    """
    begin = partial(_begin, method, url, params, headers, body, json, timeout_s, redirects)
    return _await_or_block(lambda: _whole(begin), lambda: _whole_now(begin))


def get(url: str, **options: Any) -> Coroutine[Any, Any, Response]:
    """Asks for something, as `request` does."""
    return request("GET", url, **options)


def head(url: str, **options: Any) -> Coroutine[Any, Any, Response]:
    """Asks for the head of an answer alone, as `request` does."""
    return request("HEAD", url, **options)


def post(url: str, **options: Any) -> Coroutine[Any, Any, Response]:
    """Hands something in, as `request` does."""
    return request("POST", url, **options)


def put(url: str, **options: Any) -> Coroutine[Any, Any, Response]:
    """Puts something in a place, as `request` does."""
    return request("PUT", url, **options)


def patch(url: str, **options: Any) -> Coroutine[Any, Any, Response]:
    """Changes something, as `request` does."""
    return request("PATCH", url, **options)


def delete(url: str, **options: Any) -> Coroutine[Any, Any, Response]:
    """Removes something, as `request` does."""
    return request("DELETE", url, **options)


def stream(  # noqa: PLR0913  # as those of `request`
    method: str,
    url: str,
    *,
    params: Params = None,
    headers: HeaderPairs = (),
    body: Body = None,
    json: object = None,
    timeout_s: float | None = None,
    redirects: str = "follow",
) -> _Stream:
    """Sends a request whose answer is read as it comes: `async with http.stream("GET", url) as response`.

    A plain `with` blocks the whole program while it waits. The arguments are those of `request`.
    """
    return _Stream(partial(_begin, method, url, params, headers, body, json, timeout_s, redirects))


def refusal() -> InferletError | None:
    """Why the last request of this program that failed did so, whichever client sent it; None where none has failed.

    Clients like `requests` have errors of their own, which may lack the code.
    """
    try:
        host(_http.refusal)
    except InferletError as refused:
        return refused
    return None


def _begin(  # noqa: PLR0913, PLR0917  # as those of `request`
    method: str,
    url: str,
    params: Params,
    headers: HeaderPairs,
    body: Body,
    json: object,
    timeout_s: float | None,
    redirects: str,
) -> Exchange:
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    kind = _TEXT_TYPE if isinstance(body, str) else None
    if json is not None:
        if body is not None:
            _arguments.refuse("body", body, "None where json is given")
        body, kind = _json.dumps(json, "json", ErrorCode.INVALID_ARGUMENT), _JSON_TYPE
    if kind is not None and not any(str(name).lower() == "content-type" for name, _ in pairs):
        pairs.append(("content-type", kind))
    return Exchange(method, _with_params(url, params), pairs, body, timeout_s=timeout_s, redirects=redirects)


def _with_params(url: str, params: Params) -> str:
    if params is None:
        return url
    pairs = list(params.items()) if isinstance(params, Mapping) else list(params)
    query = urlencode([pair for pair in pairs if pair[1] is not None], doseq=True)
    split = urlsplit(_arguments.text("url", url))
    return urlunsplit(split._replace(query="&".join(part for part in (split.query, query) if part)))


async def _whole(begin: Callable[[], Exchange]) -> Response:
    exchange = begin()
    try:
        head = await exchange.head()
        return Response(head, b"".join([part async for part in exchange.parts()]))
    finally:
        exchange.close()


def _whole_now(begin: Callable[[], Exchange]) -> Response:
    exchange = begin()
    try:
        head = exchange.head_now()
        return Response(head, b"".join(exchange.parts_now()))
    finally:
        exchange.close()


def _await_or_block(awaited: Callable[[], Coroutine[Any, Any, Any]], blocking: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
    return awaited() if in_loop() else cast("Coroutine[Any, Any, Any]", blocking())
