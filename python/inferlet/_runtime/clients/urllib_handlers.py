"""`urllib.request`, over the engine. It follows redirects by itself; each place is checked by the engine."""

from __future__ import annotations

import io
import socket
from collections.abc import Mapping
from http import HTTPStatus
from types import ModuleType
from typing import Any

from inferlet._exchange import Exchange
from inferlet._runtime.clients.raw_body import RawBody, message_of, parts_of
from inferlet.errors import InferletError


def adapt(module: ModuleType) -> None:
    """Gives the handler of http the way of the engine, for https too."""
    handler = module.HTTPHandler
    default_timeout = socket._GLOBAL_DEFAULT_TIMEOUT  # type: ignore[attr-defined]

    def opened(self: Any, request: Any) -> Any:
        headers: Mapping[str, str] = dict(request.unredirected_hdrs) | dict(request.headers)
        timeout_s = None if request.timeout is default_timeout else request.timeout
        try:
            exchange = Exchange(
                request.get_method(),
                request.full_url,
                headers.items(),
                parts_of(request.data),
                connect_s=timeout_s,
                read_s=timeout_s,
                redirects="keep",
            )
            head = exchange.head_now()
        except InferletError as error:
            raise module.URLError(error) from error
        return _response(module, exchange, head)

    handler.http_open = opened
    handler.https_open = opened
    handler.https_request = handler.http_request


def _response(module: ModuleType, exchange: Exchange, head: Any) -> Any:
    message = message_of(head)
    response = module.addinfourl(io.BufferedReader(RawBody(exchange)), message, head.url, head.status)
    response.msg = response.reason = head.status_text or HTTPStatus(head.status).phrase
    response.version = 11
    return response
