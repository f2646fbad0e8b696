"""The command line."""

from __future__ import annotations

import signal
import sys

_EXIT_INTERRUPTED = 130


def main() -> None:
    """The console script `pie`."""
    try:
        from pie.cli.app import app

        app(prog_name="pie")
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)
    finally:
        # What is left is the end of the interpreter: a second Ctrl-C must not turn it into a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
