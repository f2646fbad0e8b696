"""Ctrl-C as an exception, for what has something to put in order."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pie.cli import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from types import FrameType


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """In the body Ctrl-C calls the handler, unless whoever started the command has it ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def raised() -> Iterator[None]:
    """In the body Ctrl-C raises KeyboardInterrupt.

    When the body has put its things in order, the command ends with 130.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    try:
        with handled(signal.default_int_handler):
            yield
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None


def cancel_at_interrupt() -> None:
    """Has Ctrl-C cancel the task that calls, until its loop is closed.

    The loop itself does it, between two callbacks. The handler of `asyncio.run` cancels wherever the main thread is:
    within a callback that is about to complete the future that the task waits for, that leaves an error of the loop on
    stderr.
    """
    import asyncio

    task = asyncio.current_task()
    if task is not None and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
