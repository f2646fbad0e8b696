"""What shells offer where a name or a number is typed: processes and programs of a server, programs that lie here.

A server that does not answer within a moment offers nothing. Errors offer nothing either: in the middle of a command
line there is no place to tell of them, and the command itself will.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from pie.cli.tables import short_digest
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.client import Client, ProcessInfo

T = TypeVar("T")

_WAIT_S = 1.0
_MAX_OFFERED = 200
_MAX_TOLD_CHARS = 72
_NO_MARKUP = str.maketrans("[]", "()")

Offer = list[tuple[str, str]]
"""Words with what shells show beside them."""


def complete_running(ctx: typer.Context, incomplete: str) -> Offer:
    """Numbers of processes that run."""
    return _numbers(_asked(ctx, lambda client: client.list()), incomplete)


def complete_process(ctx: typer.Context, incomplete: str) -> Offer:
    """Numbers of processes, also of those that have ended."""
    return _numbers(_asked(ctx, lambda client: client.list(all=True)), incomplete)


def complete_installed(ctx: typer.Context, incomplete: str) -> Offer:
    """Programs that are installed, as NAME@VERSION."""
    found = _asked(ctx, lambda client: client.programs()) or []
    names = [f"{one.name}@{one.version}" for one in found]
    return [(name, "installed") for name in names if name.startswith(incomplete)][:_MAX_OFFERED]


def complete_program(ctx: typer.Context, incomplete: str) -> Offer:
    """What `pie run` takes: files and folders that lie here, then programs that are installed."""
    return [*_paths(incomplete), *complete_installed(ctx, incomplete)][:_MAX_OFFERED]


def complete_model(_ctx: typer.Context, incomplete: str) -> Offer:
    """Names of configured models, and model folders that were found."""
    from pie.cli.models import found_models

    try:
        return [(name, where) for name, where in found_models() if name.startswith(incomplete)][:_MAX_OFFERED]
    except (PieError, OSError):
        return []


def complete_setting(_ctx: typer.Context, incomplete: str) -> Offer:
    """Names of settings, as `server.port`."""
    from pie.config.settings import settings

    rows = (row for section, names in settings().items() if section not in {"model", "mcp"} for row in names.values())
    known = ((f"{row.section}.{row.name}", _told(row.description)) for row in rows)
    return [(name, told) for name, told in known if name.startswith(incomplete)][:_MAX_OFFERED]


def _numbers(processes: list[ProcessInfo] | None, incomplete: str) -> Offer:
    rows = ((str(one.pid), _told(f"{one.name or short_digest(one.program)}, {one.exit or one.state}")) for one in processes or ())
    return [(pid, told) for pid, told in rows if pid.startswith(incomplete)][:_MAX_OFFERED]


def _told(text: str) -> str:
    """What stands beside a word: its first sentence, in which nothing is taken for markup."""
    return text.partition(". ")[0][:_MAX_TOLD_CHARS].translate(_NO_MARKUP)


def _paths(incomplete: str) -> Offer:
    from pie.programs import ENDINGS

    folder, _, beginning = incomplete.rpartition("/")
    before = f"{folder}/" if "/" in incomplete else ""
    try:
        entries = sorted(os.scandir(Path(before).expanduser() if before else "."), key=lambda entry: entry.name)
    except (OSError, RuntimeError):
        return []
    shown = [entry for entry in entries if entry.name.startswith(beginning) and (beginning.startswith(".") or entry.name[0] != ".")]
    folders = [(f"{before}{entry.name}/", "folder") for entry in shown if entry.is_dir()]
    return [(before + entry.name, "program") for entry in shown if entry.name.endswith(ENDINGS) and entry.is_file()] + folders


def _asked(ctx: typer.Context, question: Callable[[Client], Awaitable[T]]) -> T | None:
    """What a server answers; None where it does not, in time."""
    import asyncio

    from pie.cli.remote import Server, credentials, websocket_address
    from pie.client import connect

    given: Mapping[str, Any] = ctx.params

    async def ask() -> T:
        async with asyncio.timeout(_WAIT_S), connect(url, user=user, timeout_s=_WAIT_S, **proof) as client:
            return await question(client)

    try:
        config = Server(given.get("server"), given.get("user"), given.get("key"), given.get("private_key")).config()
        url, user, proof = websocket_address(config.client.url), config.client.user or None, credentials(config)
        return asyncio.run(ask())
    except (PieError, OSError, TimeoutError):
        return None
