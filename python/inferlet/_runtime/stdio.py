"""The standard streams of a program: whole lines as text, in the order in which they were written."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable

# One event to the client carries at most this much of a long print.
_MAX_CHUNK_CHARS = 1 << 16


class TextOut(io.TextIOBase):
    """A text stream that hands on whole lines at once, and the rest when it is flushed."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, emit: Callable[[str], object], name: str) -> None:
        super().__init__()
        self._emit = emit
        self._pending: list[str] = []
        self.name = name

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Takes text; goes out up to its last line's end."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        if "\n" in text:
            head, end, tail = text.rpartition("\n")
            self._pending.append(head + end)
            self.flush()
            text_left = tail
        else:
            text_left = text
        if text_left:
            self._pending.append(text_left)
        return len(text)

    def flush(self) -> None:
        """Hands on what is held back."""
        if self._pending:
            text = "".join(self._pending)
            self._pending.clear()
            if not text.isascii():
                # Lone surrogates have no UTF-8 form.
                text = text.encode(errors="replace").decode()
            for start in range(0, len(text), _MAX_CHUNK_CHARS):
                self._emit(text[start : start + _MAX_CHUNK_CHARS])


def install(emit: Callable[[str], object]) -> None:
    """Gives the program its streams: standard output through `emit`, standard error through the file descriptor."""
    sys.stdout = TextOut(emit, "<stdout>")
    sys.stderr = TextOut(_write_stderr, "<stderr>")


def flush() -> None:
    """Hands on what either stream holds back; streams that the program put in their place are flushed too."""
    for stream in (sys.stdout, sys.stderr):
        # A program may have closed or replaced them: its end is not the place to complain.
        with contextlib.suppress(Exception):
            stream.flush()


def report(text: str) -> None:
    """Writes to standard error, whatever the program made of `sys.stderr`."""
    _write_stderr(text.encode(errors="replace").decode())


def _write_stderr(text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(2, data) :]
