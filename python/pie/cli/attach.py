"""`pie attach`: a process that runs in a server, on this terminal again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pie.cli.files import FileSink
from pie.cli.following import follow
from pie.cli.printer import Printer
from pie.cli.terminal import EXIT_ERROR, give_up_stdout
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.cli.remote import Server
    from pie.client import Client, Process

_DETACH_S = 5.0


async def attach(client: Client, pid: int, server: Server, *, files: Path | None, with_stdin: bool) -> int:
    """Prints the events that nobody has read, and what follows.

    Returns the exit code of the program, as `pie run` does.

    Ctrl-C, or a stdout that cannot be written, leaves the process running.
    """
    printer = Printer(FileSink(files))
    process = await client.attach(pid)
    try:
        await follow(process, printer, with_stdin=with_stdin)
    except asyncio.CancelledError:
        await _leave(client, process, server)
        raise
    except OSError as error:
        give_up_stdout(error)
        await _leave(client, process, server)
        return EXIT_ERROR
    return printer.exit_code


async def _leave(client: Client, process: Process, server: Server) -> None:
    """Detaches, and says what becomes of the process."""
    try:
        async with asyncio.timeout(_DETACH_S):
            await process.detach()
            found = [one for one in await client.list() if one.pid == process.pid]
    except (PieError, TimeoutError):
        return  # the connection broke: there is nothing to detach from
    for one in found:
        becomes = "goes on" if one.detached else "ends after server.grace_s unless somebody attaches"
        print(server.advised(f"detached from process {one.pid}, which {becomes}; `pie stop {one.pid}` ends it"), file=sys.stderr)
