"""A request and its answer as the engine has them: `inferlet.http` stands on it, and so do other clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TypeAlias

from wit_world.imports import http as _http

from inferlet import _arguments
from inferlet._wait import block_on, resolve
from inferlet.errors import ErrorCode, InferletError, host

Part: TypeAlias = bytes | bytearray | memoryview | str
Body: TypeAlias = Part | Iterable[Part] | AsyncIterable[Part] | None

_REDIRECTS = {"follow": _http.Redirects.FOLLOW, "fail": _http.Redirects.FAIL, "keep": _http.Redirects.KEEP}
_MS_PER_S = 1000


class Exchange:
    """A request that is under way, or was. Dropping or closing it ends it."""

    def __init__(  # noqa: PLR0913  # what there is to say of a request
        self,
        method: str,
        url: str,
        headers: Iterable[tuple[str, str]],
        body: Body,
        *,
        timeout_s: float | None = None,
        connect_s: float | None = None,
        read_s: float | None = None,
        redirects: str = "follow",
    ) -> None:
        if redirects not in _REDIRECTS:
            _arguments.refuse("redirects", redirects, "'follow', 'fail' or 'keep'")
        self._parts = None if body is None or isinstance(body, Part) else body
        request = _http.Request(
            method=_arguments.text("method", method),
            url=_arguments.text("url", url),
            headers=[_http.Header(_arguments.text("header", name), _arguments.text(f"header {name}", value)) for name, value in headers],
            body=_body(body),
            redirects=_REDIRECTS[redirects],
            timeouts=_http.Timeouts(
                connect_ms=_milliseconds("connect_s", connect_s),
                first_byte_ms=_milliseconds("read_s", read_s),
                idle_ms=_milliseconds("read_s", read_s),
                whole_ms=_milliseconds("timeout_s", timeout_s),
            ),
        )
        self._handle: _http.Exchange | None = host(_http.Exchange.start, request)

    async def head(self) -> _http.Head:
        """Sends the body where it comes in parts, and awaits the head of the answer."""
        if self._parts is None:
            return await resolve(self._raw.head(), self)
        writing = asyncio.ensure_future(self._write_all(self._parts))
        heading = asyncio.ensure_future(resolve(self._raw.head(), self))
        try:
            await asyncio.wait((writing, heading), return_when=asyncio.FIRST_COMPLETED)
            if writing.done() and (failure := writing.exception()) is not None and not _is_answered(failure):
                raise failure
            return await heading
        finally:
            # A server that has answered wants no more.
            writing.cancel()
            heading.cancel()

    def head_now(self) -> _http.Head:
        """The same, and blocks."""
        if self._parts is not None:
            self._write_all_now(self._parts)
        return block_on(self._raw.head())

    async def read(self) -> bytes | None:
        """Awaits the next part of the answer; None at its end."""
        return await resolve(self._raw.read(), self)

    def read_now(self) -> bytes | None:
        """The same, and blocks."""
        return block_on(self._raw.read())

    async def parts(self) -> AsyncIterator[bytes]:
        """The parts of the answer, as they come."""
        while (part := await self.read()) is not None:
            yield part

    def parts_now(self) -> Iterator[bytes]:
        """The same, and blocks."""
        while (part := self.read_now()) is not None:
            yield part

    def close(self) -> None:
        """Ends it, with its connection. Again it does nothing."""
        if self._handle is None:
            return
        self._raw.cancel()
        handle, self._handle = self._handle, None
        handle.__exit__(None, None, None)

    @property
    def _raw(self) -> _http.Exchange:
        if self._handle is None:
            raise ValueError("the response is closed; read it before it is closed")
        return self._handle

    async def _write_all(self, parts: Iterable[Part] | AsyncIterable[Part]) -> None:
        if isinstance(parts, AsyncIterable):
            async for part in parts:
                await resolve(self._raw.write_part(_bytes(part)), self)
        else:
            for part in parts:
                await resolve(self._raw.write_part(_bytes(part)), self)
        self._raw.finish()

    def _write_all_now(self, parts: Iterable[Part] | AsyncIterable[Part]) -> None:
        if isinstance(parts, AsyncIterable):
            _arguments.refuse("body", parts, "an iterable of parts, since nothing here awaits it")
        for part in parts:
            try:
                block_on(self._raw.write_part(_bytes(part)))
            except InferletError as failure:
                if not _is_answered(failure):
                    raise
                return
        self._raw.finish()


def _is_answered(failure: BaseException) -> bool:
    """Whether a part could not be sent because the server wants no more: the head says what became of the request."""
    return isinstance(failure, InferletError) and failure.code == ErrorCode.HTTP_PROTOCOL


def _body(body: Body) -> _http.Body:
    if body is None:
        return _http.Body_None_()
    if isinstance(body, Part):
        return _http.Body_Whole(_bytes(body))
    if not isinstance(body, Iterable | AsyncIterable):
        _arguments.refuse("body", body, "bytes, a str, or an iterable of those")
    return _http.Body_Streamed()


def _bytes(part: Part) -> bytes:
    return _arguments.text("body", part).encode() if isinstance(part, str) else _arguments.blob("body", part)


def _milliseconds(name: str, timeout_s: float | None) -> int | None:
    if timeout_s is None:
        return None
    seconds = _arguments.number(name, timeout_s)
    if not seconds > 0:
        _arguments.refuse(name, timeout_s, "a number of seconds above 0, or None")
    return min(max(1, int(min(seconds, 1e9) * _MS_PER_S)), _arguments.MAX_U64)
