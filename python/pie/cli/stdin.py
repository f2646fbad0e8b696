"""The lines of stdin, which are the messages of the client to its program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from pie.cli.terminal import warn
from pie.errors import PieError

_CHUNK_BYTES = 1 << 16
_MAX_LINE_BYTES = 4 << 20


def stdin_messages() -> Iterator[str]:
    """The lines of stdin without their ends; PieError `limit-message` for one that is longer than a message should be.

    What is not UTF-8 in a line is replaced, and a warning names the first such line: a file in another encoding has as
    many as it has lines.

    Reads the descriptor itself: a thread that is inside `sys.stdin` when the interpreter ends would hold its lock.
    """
    is_told = False
    for number, line in enumerate(_lines(), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            text = line.decode("utf-8", "replace")
            if not is_told:
                is_told = True
                place = f"line {number} of stdin is not UTF-8 at byte {error.start}"
                warn(f"{place}; U+FFFD takes the place of what is not, there and in later lines: convert it to UTF-8, as by iconv")
        yield text.removesuffix("\r")


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
