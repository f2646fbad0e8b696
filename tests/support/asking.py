"""Requests by HTTP that tests make: one over a connection of its own, and its answer read whole."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from support.command import PATIENCE_S


@dataclass
class Answer:
    """An answer that was read whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """Its JSON value."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error of the server."""
        assert self.headers["content-type"] == "application/json"
        code: str = self.value["error"]["code"]
        return code


def connect(port: int) -> HTTPConnection:
    """A connection to what listens on this machine."""
    return HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)


def ask(port: int, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answer:
    """One request; in the names of headers `_` stands for `-`."""
    with closing(connect(port)) as connection:
        connection.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, dict(response.headers), response.read())


def said_to(port: int, text: str) -> bytes:
    """What comes back for bytes, until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.sendall(text.encode())
        parts = []
        try:
            while part := client.recv(1 << 16):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)
