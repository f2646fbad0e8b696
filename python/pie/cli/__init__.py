"""The command line.

What runs first imports nothing that is not loaded with the interpreter, so that Ctrl-C has its handler at once.
"""

# Not `signal`, which makes enumerations of it: that takes longer than all else here.
import _signal  # type: ignore[import-not-found]
import os
import sys

EXIT_INTERRUPTED = 130
_READER_PATIENCE_S = 1.0
"""How long the end of a command that was interrupted waits for the reader of its output, who may have stopped."""


def main() -> None:
    """The console script `pie`."""
    _run("pie")


def bakery() -> None:
    """The console script `bakery`: `pie build` and `pie new` by another name."""
    _run("bakery")


def _run(name: str) -> None:
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:  # as in the background of a script, where it stays so
        _signal.signal(_signal.SIGINT, _end)
    from pie.cli.entry import run

    exit_code = run(name)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # what is left is the end of the process
    _leave(exit_code)


def _leave(exit_code: int) -> None:
    """Ends the process, once what asked to be called at its end was called. The interpreter is not taken apart.

    Threads may still be in a call: one waits for a line of stdin, another for a reader of stdout who has stopped. The
    end of the interpreter would wait for them, or for a lock that one of them holds, as long as they do.
    """
    import atexit
    import threading

    atexit._run_exitfuncs()
    if exit_code == EXIT_INTERRUPTED:
        flushing = threading.Thread(target=_flush, name="pie-flush", daemon=True)
        flushing.start()
        flushing.join(_READER_PATIENCE_S)
    else:
        _flush()
    os._exit(exit_code)


def _flush() -> None:
    import contextlib

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # it was told, or nobody is there to be told
            stream.flush()


def _end(_number: int, _frame: object) -> None:
    """Ends the process where it is.

    While modules are imported, an exception would come out of any line of any of them, or be swallowed and printed.
    What has something to put in order takes Ctrl-C as an exception: `interrupts.raised`.
    """
    os._exit(EXIT_INTERRUPTED)
