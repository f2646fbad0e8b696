"""Shows that long work goes on: a spinner on a terminal, one line elsewhere. Always on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from pie.cli.interrupts import raised

if TYPE_CHECKING:
    from pie.config import Config


@contextmanager
def working(what: str) -> Iterator[None]:
    """Names the work while the body runs; Ctrl-C is an exception in it, as by `raised`."""
    if not sys.stderr.isatty():
        print(f"{what}...", file=sys.stderr, flush=True)
        with raised():
            yield
        return
    from rich.console import Console  # costs more than most runs need

    with raised(), Console(stderr=True).status(f"{what}..."):
        yield


def loading(config: Config) -> AbstractContextManager[None]:
    """Names the models while the body loads them, on a terminal.

    The embedded model is not named: it is loaded before anybody could read its name.
    """
    names = [model.name for model in config.models if not model.is_embedded]
    return working(f"Loading {', '.join(names)}") if names and sys.stderr.isatty() else nullcontext()
