"""What every command does with the terminal: one form of error, streams that cannot end a program."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path

EXIT_ERROR = 1


def make_streams_sturdy() -> None:
    """Neither a terminal that cannot show a character nor a closed stdout or stderr ends a program."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # open as long as the process
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def report(code: str, message: str) -> None:
    """Tells the user of an error, on stderr."""
    print(f"error[{code}]: {message}", file=sys.stderr)


def give_up_stdout(error: OSError) -> None:
    """Takes note that stdout cannot be written: its reader has gone, which is no fault, or a disk is full.

    The descriptor is replaced, so that the flush at exit is quiet.
    """
    if not isinstance(error, BrokenPipeError):
        print(f"the output cannot be written: {error.strerror}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
