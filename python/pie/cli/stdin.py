"""The lines of stdin, which are the messages of the client to its program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from pie.errors import PieError

_CHUNK_BYTES = 1 << 16
_MAX_LINE_BYTES = 4 << 20


def stdin_messages() -> Iterator[str]:
    """The lines of stdin without their ends; PieError `limit-message` for one that is longer than a message should be.

    Reads the descriptor itself: a thread that is inside `sys.stdin` when the interpreter ends would hold its lock.
    """
    for line in _lines():
        yield line.decode("utf-8", "replace").removesuffix("\r")


def _lines() -> Iterator[bytes]:
    parts: list[bytes] = []
    while chunk := _read():
        first, *others = chunk.split(b"\n")
        parts.append(first)
        for following in others:
            yield b"".join(parts)
            parts = [following]
        if sum(map(len, parts)) > _MAX_LINE_BYTES:
            raise PieError(
                "limit-message",
                f"a line is longer than {_MAX_LINE_BYTES} bytes, the most of one; the rest of stdin is not sent: send it in parts",
            )
    if last := b"".join(parts):
        yield last


def _read() -> bytes:
    if sys.stdin is None:
        return b""  # closed when we started: the descriptor is somebody else's
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return b""  # in the background of a terminal, reading would stop the whole job
        return os.read(0, _CHUNK_BYTES)
    except OSError:
        return b""
