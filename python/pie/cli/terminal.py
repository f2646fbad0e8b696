"""What every command does with the terminal: one form of error, streams that cannot end a program."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO
from unicodedata import category

EXIT_ERROR = 1
LINES = "\n\t"
"""What stays of the white space in a text of several lines."""

# Controls, formats, surrogates, and the separators of lines and paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# They join letters and emoji, and turn nothing around.
_JOINERS = "\u200c\u200d"


def make_streams_sturdy() -> None:
    """Neither a terminal that cannot show a character nor a closed stderr ends a program.

    What is written to a closed stdout is an OSError, as with one that is full; a program that writes nothing is not
    ended by it.
    """
    # Both stay open as long as the process. A descriptor that is for reading refuses what is written.
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def plain(text: str, *, keep: str = "") -> str:
    """The text with everything escaped that would not be seen as it is, but the characters in `keep`.

    That is what moves the cursor or changes the colour of a terminal, what begins a line, and what turns the direction
    of the text around: whoever chose the text could have it say something else than it does.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one in keep or one in _JOINERS or category(one) not in _UNSEEN else one.encode("unicode_escape").decode() for one in text
    )


def styled(text: str, style: str, stream: TextIO) -> str:
    """The text in a style of rich, as in `bold red`, where the stream is a terminal that shows colours.

    `NO_COLOR` and `TERM=dumb` count, as the library reads them; the text has to be plain.
    """
    if not stream.isatty():
        return text
    from rich.console import Console  # costs more than most runs need
    from rich.text import Text

    console = Console(file=stream)
    if console.no_color or console.color_system is None:
        return text
    with console.capture() as capture:
        console.print(Text(text, style=style), end="", soft_wrap=True)
    return capture.get()


def report(code: str, message: str) -> None:
    """Tells the user of an error, on stderr."""
    print(f"{styled(f'error[{plain(code)}]:', 'bold red', sys.stderr)} {plain(message, keep=LINES)}", file=sys.stderr)


def warn(message: str) -> None:
    """Tells the user, on stderr, of what is probably a mistake and is done all the same."""
    print(f"{styled('warning:', 'bold yellow', sys.stderr)} {plain(message, keep=LINES)}", file=sys.stderr, flush=True)


def tell_seed(seed: int) -> None:
    """Tells the user, on stderr, by which launch seed a run is repeated."""
    print(f"launch seed {seed} (repeat this run with --seed {seed})", file=sys.stderr)


def give_up_stdout(error: OSError) -> None:
    """Takes note that stdout cannot be written: it is closed, a disk is full, or its reader has gone, which is right.

    The descriptor is replaced, so that the flush at exit is quiet.
    """
    if not isinstance(error, BrokenPipeError):
        reason = "stdout is closed; redirect it to /dev/null where nobody wants it" if error.errno == errno.EBADF else error.strerror
        print(f"the output cannot be written: {reason}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
