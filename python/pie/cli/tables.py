"""Tables on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from pie.cli.terminal import plain

_DIGEST = "sha256:"
_DIGEST_CHARS = len(_DIGEST) + 12
_PIPED_WIDTH = 1 << 10
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


class Owned(Protocol):
    """What a server lists of a user."""

    @property
    def user(self) -> str | None:
        """Whose it is, in a list of everybody's."""


_T = TypeVar("_T", bound=Owned)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows under their columns; a pipe gets them unfolded, however wide they are."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))  # what a program is called is no markup
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    console.print(table)


def print_owned(columns: Sequence[str], listed: Sequence[_T], row: Callable[[_T], Sequence[str]], *, all_users: bool, as_json: bool) -> int:
    """Prints what a server lists, by `row` or as JSON; in a list of everybody's also whose each is.

    Returns the exit code.
    """
    if as_json:
        print_json(listed)
    elif all_users:
        print_table(("USER", *columns), [(one.user or "", *row(one)) for one in listed])
    else:
        print_table(columns, map(row, listed))
    return 0


def print_json(rows: Iterable[object]) -> None:
    """Prints what a server lists as a JSON array, with the names of the protocol."""
    import msgspec

    print(json.dumps([msgspec.to_builtins(row) for row in rows], ensure_ascii=False, indent=2))


def age(time_s: float) -> str:
    """A length of time in its largest unit, as in `3 min`: as many as are over."""
    for unit_s, name in _UNITS:
        if time_s >= unit_s:
            return f"{int(time_s // unit_s)} {name}"
    return f"{int(max(time_s, 0))} s"


def size(n_bytes: int) -> str:
    """A size in its largest unit, as in `1.5 MiB`."""
    for unit_bytes, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n_bytes >= unit_bytes:
            return f"{n_bytes / unit_bytes:.1f} {name}"
    return f"{n_bytes} B"


def short_digest(program: str) -> str:
    """As much of a digest as tells programs apart; a name as it is."""
    return program[:_DIGEST_CHARS] if program.startswith(_DIGEST) else program
