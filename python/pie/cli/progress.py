"""Shows that long work goes on: a spinner on a terminal, one line elsewhere. Always on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def working(what: str) -> Iterator[None]:
    """Names the work while the body runs."""
    if not sys.stderr.isatty():
        print(f"{what}...", file=sys.stderr, flush=True)
        yield
        return
    from rich.console import Console  # costs more than most runs need

    with Console(stderr=True).status(f"{what}..."):
        yield
