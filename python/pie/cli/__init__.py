"""The command line."""

from __future__ import annotations

import signal
import sys

_EXIT_INTERRUPTED = 130


def main() -> None:
    """The console script `pie`."""
    _run("pie")


def bakery() -> None:
    """The console script `bakery`: `pie build` and `pie new` by another name."""
    _run("bakery")


def _run(name: str) -> None:
    try:
        from pie.cli import app

        {"pie": app.app, "bakery": app.bakery_app}[name](prog_name=name)
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)
    finally:
        # What is left is the end of the interpreter: a second Ctrl-C must not turn it into a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
