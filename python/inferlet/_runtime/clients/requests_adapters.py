"""`requests`, over the engine: its adapter sends a prepared request that way."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from inferlet._exchange import Exchange
from inferlet._runtime.clients.raw_body import RawBody, message_of, parts_of
from inferlet.errors import ErrorCode, InferletError


class _Original:
    """What `requests` reads cookies from."""

    def __init__(self, message: Any) -> None:
        self.msg = message

    def isclosed(self) -> bool:
        return False


def adapt(module: ModuleType) -> None:
    """Gives `HTTPAdapter` the way of the engine."""
    errors = importlib.import_module("requests.exceptions")
    urllib3 = importlib.import_module("urllib3")

    def send(  # noqa: PLR0913, PLR0917  # as `requests` calls it
        self: Any, request: Any, stream: bool = False, timeout: Any = None, verify: Any = True, cert: Any = None, proxies: Any = None
    ) -> Any:
        if cert is not None or module.select_proxy(request.url, proxies):
            raise errors.InvalidSchema("a program has neither certificates of its own nor proxies; the operator of the engine sets both")
        connect_s, read_s = timeout if isinstance(timeout, tuple) else (timeout, timeout)
        try:
            exchange = Exchange(
                request.method,
                request.url,
                [(_text(name), _text(value)) for name, value in request.headers.items()],
                parts_of(request.body),
                connect_s=connect_s,
                read_s=read_s,
                redirects="keep",
            )
            head = exchange.head_now()
        except InferletError as error:
            raise _error(errors, error)(error, request=request) from error
        raw = urllib3.HTTPResponse(
            body=RawBody(exchange),
            headers=urllib3.HTTPHeaderDict([(header.name, header.value) for header in head.headers]),
            status=head.status,
            reason=head.status_text,
            preload_content=False,
            decode_content=False,
            request_method=request.method,
        )
        raw._original_response = _Original(message_of(head))
        return self.build_response(request, raw)

    module.HTTPAdapter.send = send


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _error(errors: ModuleType, error: InferletError) -> Any:
    if error.code == ErrorCode.INVALID_ARGUMENT:
        return errors.InvalidURL
    return errors.ReadTimeout if error.code == ErrorCode.LIMIT_HTTP_TIME else errors.ConnectionError
