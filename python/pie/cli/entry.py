"""The one place in which a command ends: its exit code, one form of error, a stdout that cannot be written."""

from __future__ import annotations

import sys

from pie.cli import EXIT_INTERRUPTED
from pie.cli.terminal import EXIT_ERROR, give_up_stdout, make_streams_sturdy, report
from pie.errors import PieError

_SHOWN_CHARS = 100
_LOG_PATIENCE_S = 2.0
"""How long the end of a command waits for a reader of its log."""


def run(name: str) -> int:
    """Runs the command line as the script `name`; returns the exit code.

    The exit code is that of the command, or 1 after an error, which is printed.
    """
    make_streams_sturdy()
    try:
        exit_code = _run(name)
        if exit_code != EXIT_INTERRUPTED:
            sys.stdout.flush()
        return exit_code
    except PieError as error:
        report(error.code, error.message)
    except UnicodeEncodeError as error:  # of the command line or the environment, on the way to the engine
        shown = repr(error.object[max(0, error.start - _SHOWN_CHARS) : error.end + _SHOWN_CHARS])
        report("invalid-argument", f"{shown} is not UTF-8; give it in UTF-8, or rename the file")
    except OSError as error:
        if error.filename is None:
            give_up_stdout(error)
        else:
            report("invalid-argument", f"{str(error.filename)!r} cannot be used ({error.strerror}); check the path and its permissions")
    return EXIT_ERROR


def _run(name: str) -> int:
    from pie.cli import app

    try:
        {"pie": app.app, "bakery": app.bakery_app}[name](prog_name=name)
    except SystemExit as end:  # commands end so, after an error of their usage too
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        _drain_log()
    return 0


def _drain_log() -> None:
    """Has the log written, where the command has one, before an error or the end of the process."""
    if "pie._engine" in sys.modules:
        from pie._engine import drain_log

        drain_log(_LOG_PATIENCE_S)
