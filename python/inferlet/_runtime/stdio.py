"""The standard streams of a program: whole lines as text, in the order in which they were written."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import NoReturn

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
        self.has_written = False
        """Whether anything was written to it."""

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Takes text; goes out up to its last line's end."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        self.has_written = True
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


class NoInput(io.TextIOBase):
    """The standard input of a program: whoever reads it is told where the lines are."""

    encoding = "utf-8"
    errors = "strict"
    name = "<stdin>"

    def readable(self) -> bool:
        """As that of any program."""
        return True

    def read(self, size: int | None = -1, /) -> NoReturn:
        """Raises EOFError."""
        raise EOFError(_NO_INPUT)

    def readline(self, size: int | None = -1, /) -> NoReturn:
        """Raises EOFError."""
        raise EOFError(_NO_INPUT)

    @property
    def buffer(self) -> NoReturn:
        """There is none: what asks with `hasattr` finds that out."""
        raise AttributeError(f"the standard input of a program has no buffer: {_NO_INPUT}")


_NO_INPUT = (
    "a program reads no standard input; its messages come by `await inferlet.session.receive()`, which under `pie run` are the "
    "lines of stdin, and what it is launched with by the parameter of main"
)


def install(emit: Callable[[str], object]) -> None:
    """Gives the program its streams: standard output through `emit`, standard error through the file descriptor."""
    sys.stdout = TextOut(emit, "<stdout>")
    sys.stderr = TextOut(_write_stderr, "<stderr>")


def is_silent() -> bool:
    """Whether the program has written nothing; False where it replaced a stream, since nobody knows then."""
    return all(isinstance(stream, TextOut) and not stream.has_written for stream in (sys.stdout, sys.stderr))


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
