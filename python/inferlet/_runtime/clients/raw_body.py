"""What clients read of an answer: its headers as a message, its body as a file."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from typing import Any

from inferlet._exchange import Exchange, Part

_PART_BYTES = 64 << 10


class RawBody(io.RawIOBase):
    """Reads an answer to its end. Closing it ends the request."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads what there is, at least a byte unless the answer has ended."""
        while not self._left:
            part = self._exchange.read_now()
            if part is None:
                return 0
            self._left = memoryview(part)
        n_bytes = min(len(buffer), len(self._left))
        buffer[:n_bytes] = self._left[:n_bytes]
        self._left = self._left[n_bytes:]
        return n_bytes

    def close(self) -> None:
        """Ends the request. Again it does nothing."""
        if not self.closed:
            self._exchange.close()
        super().close()


def message_of(head: Any) -> Any:
    """The headers of an answer, as `http.client` has them."""
    message = importlib.import_module("http.client").HTTPMessage()
    for header in head.headers:
        message[header.name] = header.value
    return message


def parts_of(body: Any) -> Any:
    """A body as the engine takes it: files are read piece by piece."""
    return _pieces(body) if hasattr(body, "read") else body


def _pieces(file: Any) -> Iterator[Part]:
    while part := file.read(_PART_BYTES):
        yield part
