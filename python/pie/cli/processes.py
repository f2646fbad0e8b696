"""`pie ps`, `pie logs` and `pie stop`: the processes of a server."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pie.cli.tables import age, print_table, short_digest
from pie.cli.terminal import EXIT_ERROR, report
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.client import Client, ProcessInfo

_COLUMNS = ("PID", "PROGRAM", "STATE", "CLIENT", "TIME", "CPU", "DROPPED")


async def print_processes(client: Client, *, with_ended: bool) -> int:
    """Prints a line for each process of the user."""
    now = time.time()
    print_table(_COLUMNS, [_row(process, now) for process in await client.list(all=with_ended)])
    return 0


def _row(process: ProcessInfo, now: float) -> tuple[str, ...]:
    until = now if process.ended is None else process.ended
    reader = "attached" if process.attached else "detached" if process.detached else "gone"
    return (
        str(process.pid),
        short_digest(process.program),
        process.state if process.exit is None else f"ended ({process.exit})",
        reader if process.state == "running" else "",
        age(until - process.started),
        f"{process.cpu_s:.1f} s",
        str(process.dropped or ""),
    )


async def print_logs(client: Client, pid: int, *, tail_bytes: int | None, follow: bool) -> int:
    """Prints what the server keeps of the output of a process; with `follow`, goes on until the process has ended."""
    part = await client.logs(pid, tail_bytes=tail_bytes)
    _write(part.text)
    while follow and not (part.ended and not part.text):
        part = await client.logs(pid, after=part.next, follow=True)
        if part.dropped_bytes:
            print(f"{part.dropped_bytes} bytes of output came faster than they were read", file=sys.stderr)
        _write(part.text)
    return 0


async def stop_processes(client: Client, pids: Sequence[int]) -> int:
    """Ends processes; one that cannot be ended does not keep the others."""
    exit_code = 0
    for pid in pids:
        try:
            await client.terminate(pid)
        except PieError as error:
            if error.code == "connection-failed":
                raise
            report(error.code, error.message)
            exit_code = EXIT_ERROR
    return exit_code


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
