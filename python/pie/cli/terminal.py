"""What every command does with the terminal: exit codes, one form of error, streams that cannot end a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

from pie.errors import PieError

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


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


def reporting(work: Callable[[], int]) -> int:
    """Does the work of a command; answers the exit code: that of the work, 1 after an error, which is told, 130 after Ctrl-C."""
    make_streams_sturdy()
    try:
        return work()
    except PieError as error:
        report(error.code, error.message)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def give_up_stdout(error: OSError) -> None:
    """Takes note that stdout cannot be written: its reader has gone, which is no fault, or a disk is full.

    The descriptor is replaced, so that the flush at exit is quiet.
    """
    if not isinstance(error, BrokenPipeError):
        print(f"the output cannot be written: {error.strerror}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
