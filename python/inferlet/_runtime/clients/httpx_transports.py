"""`httpx`, over the engine: its transports send a request that way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

from inferlet._exchange import Exchange
from inferlet.errors import ErrorCode, InferletError


def adapt(module: ModuleType) -> None:
    """Gives the transports of `httpx` the way of the engine."""

    class SyncBody(module.SyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, exchange: Exchange) -> None:
            self._exchange = exchange

        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from self._exchange.parts_now()
            except InferletError as error:
                raise _error(module, error)(str(error)) from error

        def close(self) -> None:
            self._exchange.close()

    class AsyncBody(module.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, exchange: Exchange) -> None:
            self._exchange = exchange

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for part in self._exchange.parts():
                    yield part
            except InferletError as error:
                raise _error(module, error)(str(error)) from error

        async def aclose(self) -> None:
            self._exchange.close()

    def opened(self: Any, *_: Any, proxy: Any = None, uds: Any = None, cert: Any = None, **__: Any) -> None:
        if (proxy, uds, cert) != (None, None, None):
            raise ValueError("a program has no proxies, sockets or certificates of its own; the operator of the engine sets them")

    def handle(self: Any, request: Any) -> Any:
        try:
            exchange = _begun(request, b"".join(request.stream) if _is_short(request) else request.stream)
            head = exchange.head_now()
        except InferletError as error:
            raise _error(module, error)(str(error), request=request) from error
        return _response(module, head, SyncBody(exchange))

    async def handle_async(self: Any, request: Any) -> Any:
        try:
            exchange = _begun(request, b"".join([part async for part in request.stream]) if _is_short(request) else request.stream)
            head = await exchange.head()
        except InferletError as error:
            raise _error(module, error)(str(error), request=request) from error
        return _response(module, head, AsyncBody(exchange))

    def close(self: Any) -> None:
        """Nothing is kept between requests."""

    async def aclose(self: Any) -> None:
        """Nothing is kept between requests."""

    sync = {"handle_request": handle, "close": close, "__enter__": _itself, "__exit__": _left}
    later = {"handle_async_request": handle_async, "aclose": aclose, "__aenter__": _itself_later, "__aexit__": _left_later}
    for transport, methods in ((module.HTTPTransport, sync), (module.AsyncHTTPTransport, later)):
        for name, method in {"__init__": opened, **methods}.items():
            setattr(transport, name, method)


def _itself(self: Any) -> Any:
    return self


def _left(self: Any, *_: Any) -> None:
    """Nothing is kept between requests."""


async def _itself_later(self: Any) -> Any:
    return self


async def _left_later(self: Any, *_: Any) -> None:
    """Nothing is kept between requests."""


def _is_short(request: Any) -> bool:
    """Whether the body has a length, and so is sent whole."""
    return "transfer-encoding" not in request.headers


def _begun(request: Any, body: Any) -> Exchange:
    timeouts = request.extensions.get("timeout") or {}
    return Exchange(
        request.method,
        str(request.url),
        [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw],
        body or None,
        connect_s=timeouts.get("connect"),
        read_s=timeouts.get("read"),
        redirects="keep",
    )


def _response(module: ModuleType, head: Any, stream: Any) -> Any:
    headers = [(header.name.encode(), header.value.encode("latin-1")) for header in head.headers]
    extensions = {"http_version": b"HTTP/1.1", "reason_phrase": head.status_text.encode("latin-1", "replace")}
    return module.Response(status_code=head.status, headers=headers, stream=stream, extensions=extensions)


def _error(module: ModuleType, error: InferletError) -> Any:
    if error.code == ErrorCode.INVALID_ARGUMENT:
        return module.UnsupportedProtocol
    if error.code == ErrorCode.LIMIT_HTTP_TIME:
        return module.ReadTimeout
    return module.RemoteProtocolError if error.code == ErrorCode.HTTP_PROTOCOL else module.ConnectError
