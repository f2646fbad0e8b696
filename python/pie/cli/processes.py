"""`pie ps`, `pie logs`, `pie stop` and `pie stats`: the processes of a server, and what it counts."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pie.cli.files import FileSink
from pie.cli.printer import Printer
from pie.cli.tables import age, print_json, print_table, short_digest
from pie.cli.terminal import EXIT_ERROR, report
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.cli.remote import Server
    from pie.client import Client, ProcessInfo

_COLUMNS = ("PID", "PROGRAM", "STATE", "CLIENT", "STARTED", "TIME", "CPU", "CREDITS", "BID", "DROPPED")
_STOP_S = 10.0
# A position that no log reaches: whoever follows from there learns of the end alone.
_BEHIND_ALL = 2**63


@dataclass(frozen=True)
class Asked:
    """What `pie ps` was asked for."""

    with_ended: bool
    all_users: bool
    as_json: bool


async def print_processes(client: Client, asked: Asked) -> int:
    """Prints a line for each process of the user, or of everybody."""
    processes = await client.list(all=asked.with_ended, all_users=asked.all_users)
    if asked.as_json:
        print_json(processes)
        return 0
    now = time.time()
    if asked.all_users:
        print_table(("USER", *_COLUMNS), [(process.user or "", *_row(process, now)) for process in processes])
    else:
        print_table(_COLUMNS, [_row(process, now) for process in processes])
    return 0


def _row(process: ProcessInfo, now: float) -> tuple[str, ...]:
    until = now if process.ended is None else process.ended
    reader = "attached" if process.attached else "detached" if process.detached else "gone"
    return (
        str(process.pid),
        process.name or short_digest(process.program),
        process.state if process.exit is None else f"ended ({process.exit})",
        reader if process.state == "running" else "",
        f"{age(now - process.started)} ago",
        age(until - process.started),
        f"{process.cpu_s:.1f} s",
        f"{sum(process.credits.values()):.6g}" if process.credits else "",
        f"{max(process.bids.values()):.3g}" if process.bids else "",
        str(process.dropped or ""),
    )


async def print_logs(client: Client, pid: int, *, tail_bytes: int | None, follow: bool) -> int:
    """Prints what the server keeps of the output of a process, then its value or its error, if it has ended.

    With `follow`, goes on until it has. How the program ended is no matter of the exit code.
    """
    printer = Printer(FileSink(None))
    part = await client.logs(pid, tail_bytes=tail_bytes)
    if part.dropped_bytes and tail_bytes is None:
        print(f"the first {part.dropped_bytes} bytes are no longer kept", file=sys.stderr)
    printer.log(part.text)
    while follow and not (part.ended and not part.text):
        part = await client.logs(pid, after=part.next, follow=True)
        if part.dropped_bytes:
            print(f"{part.dropped_bytes} bytes of output came faster than they were read", file=sys.stderr)
        printer.log(part.text)
    if part.ended and (last := await client.outcome(pid)) is not None:
        printer.show(last)
    return 0


async def stop_processes(client: Client, pids: Sequence[int], server: Server) -> int:
    """Ends processes and waits until they have; one that cannot be ended does not keep the others."""
    exit_code = 0
    told = []
    for pid in pids:
        try:
            await client.terminate(pid)
            told.append(pid)
        except PieError as error:
            if error.code == "connection-failed":
                raise
            report(error.code, server.advised(error.message))
            exit_code = EXIT_ERROR
    for pid in told:
        try:
            async with asyncio.timeout(_STOP_S):
                await client.logs(pid, after=_BEHIND_ALL, follow=True)
        except TimeoutError:
            print(server.advised(f"process {pid} has not ended after {_STOP_S:g} s; see `pie ps`"), file=sys.stderr)
            exit_code = EXIT_ERROR
        except PieError as error:
            if error.code != "unknown-process":  # it has ended, and others have taken its place
                raise
    return exit_code


async def print_stats(client: Client) -> int:
    """Prints what the server counts, with the names of the protocol."""
    print(json.dumps(await client.stats(), indent=2))
    return 0
