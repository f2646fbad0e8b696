"""A process of a server on this terminal: its events as they come, the lines of stdin to it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pie.cli.stdin import stdin_messages
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.cli.printer import Printer
    from pie.client import Process

_MAX_WAITING_LINES = 64
_FIRST_RETRY_S = 0.01
_LAST_RETRY_S = 0.5


async def follow(process: Process, printer: Printer, *, with_stdin: bool = True) -> None:
    """Prints the events of a process to the last, and sends it the lines of stdin.

    Raises OSError where the events cannot be written.
    """
    with _forwarding_stdin(process) if with_stdin else nullcontext():
        async for event in process.events():
            await asyncio.to_thread(printer.show, event)


@contextmanager
def _forwarding_stdin(process: Process) -> Iterator[None]:
    """Sends each line of stdin to the program while the body runs; the end of stdin is a disconnect."""
    lines: asyncio.Queue[str | PieError | None] = asyncio.Queue()
    room = threading.Semaphore(_MAX_WAITING_LINES)
    loop = asyncio.get_running_loop()

    def read() -> None:
        end: PieError | None = None
        try:
            for line in stdin_messages():
                room.acquire()
                loop.call_soon_threadsafe(lines.put_nowait, line)
        except PieError as error:
            end = error
        except RuntimeError:
            return  # the program has ended, and the loop with it
        try:
            loop.call_soon_threadsafe(lines.put_nowait, end)
        except RuntimeError:
            return

    async def send() -> None:
        try:
            while isinstance(line := await lines.get(), str):
                await _send_line(process, line)
                room.release()
            if line is not None:
                print(f"stdin: {line.message}", file=sys.stderr)
            await process.close_input()
        except PieError as error:
            if error.code != "session-closed":
                print(f"stdin: {error.message}", file=sys.stderr)

    threading.Thread(target=read, name="pie-stdin", daemon=True).start()
    sending = asyncio.create_task(send(), name="pie-stdin")
    try:
        yield
    finally:
        sending.cancel()


async def _send_line(process: Process, line: str) -> None:
    """Sends one line; a full queue holds the lines up until the program reads."""
    retry_s = _FIRST_RETRY_S
    while True:
        try:
            return await process.send(line)
        except PieError as error:
            if error.code != "limit-queue":
                raise
        await asyncio.sleep(retry_s)
        retry_s = min(2 * retry_s, _LAST_RETRY_S)
