"""`pie doctor`: whether what `pie serve` needs is there and fits together, and who holds what in a server that runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pie.cli import machine
from pie.cli.findings import Finding
from pie.cli.progress import loading
from pie.cli.tables import print_table, size
from pie.cli.terminal import EXIT_ERROR
from pie.errors import PieError

if TYPE_CHECKING:
    from pathlib import Path

    from pie.client import Client, ServerStats
    from pie.config import Config, Flags

_USER_COLUMNS = ("USER", "HELD", "OF IT", "PROCESSES", "ENDED", "TOKENS")
_PROBE = b"export function main() { return 1 }\n"
_PROBE_S = 60.0
_LITTLE_BYTES = 256 << 20


def examine(flags: Flags) -> int:
    """Prints a line for each thing that was looked at; returns 1 where one of them fails."""
    from pie.cli.serve import isolated
    from pie.config import load

    try:
        config = isolated(load(flags))
    except PieError as error:
        Finding("fail", "configuration", error.message).tell()
        return EXIT_ERROR
    failed = False
    Finding("ok", "configuration", "no file, defaults" if config.file is None else str(config.file)).tell()
    for look in (
        machine.versions,
        machine.processor,
        machine.gpu,
        machine.replicas,
        machine.toolchains,
        _folders,
        _keys,
        _access,
        machine.port,
        _mcp,
        _memory,
        _engine,
    ):
        for finding in _findings(look, config):
            finding.tell()
            failed |= finding.verdict == "fail"
    return EXIT_ERROR if failed else 0


def _findings(look: Callable[[Config], Iterator[Finding]], config: Config) -> Iterator[Finding]:
    try:
        yield from look(config)
    except PieError as error:
        yield Finding("fail", look.__name__.strip("_"), f"[{error.code}] {error.message}")


def _folders(config: Config) -> Iterator[Finding]:
    for name, folder in (("engine.data_dir", config.engine.data_dir), ("engine.cache_dir", config.engine.cache_dir)):
        yield _folder(name, folder)
    if config.server.audit_log:
        log = config.server.audit_log
        there = os.path.dirname(log) or "."  # noqa: PTH120  # the text is what the engine takes
        is_writable = os.access(log, os.W_OK) if os.path.exists(log) else os.access(there, os.W_OK)  # noqa: PTH110
        yield Finding(
            "ok" if is_writable else "fail", "audit log", log if is_writable else f"{log} cannot be written; set server.audit_log"
        )


def _folder(name: str, folder: Path) -> Finding:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"pie")
        about = folder.stat()
        space = os.statvfs(folder)
    except OSError as error:
        return Finding("fail", "folder", f"{folder} cannot be written ({error.strerror}); set {name}")
    free_bytes = space.f_bavail * space.f_frsize
    free = f"{folder} ({size(free_bytes)} free)"
    if free_bytes < _LITTLE_BYTES:
        return Finding("warn", "folder", f"{free} has little room for programs and files: make room, or set {name} to another disk")
    if about.st_mode & 0o022:
        return Finding("warn", "folder", f"{free} may be written by other users of this machine: chmod go-w it")
    return Finding("ok", "folder", free)


def _keys(config: Config) -> Iterator[Finding]:
    import msgspec

    from pie._engine import list_keys

    keys: list[dict[str, object]] = msgspec.json.decode(list_keys(str(config.engine.data_dir)))
    scopes = ", ".join(f"{sum(key['scope'] == scope for key in keys)} {scope}" for scope in ("operator", "user", "read"))
    yield Finding("ok", "keys", f"{len(keys)} ({scopes})" if keys else "none; `pie key add` makes them")


def _access(config: Config) -> Iterator[Finding]:
    from pie._engine import check_access
    from pie.config.settings import of_engine

    server = config.server
    check_access(str(config.engine.data_dir), of_engine("server", config.server))
    told = f"{server.host}:{server.port}, server.auth = {server.auth}"
    if server.auth == "off" and server.allow_anonymous:
        yield Finding("warn", "access", f"{told}, allow_anonymous: whoever reaches the address may be anybody")
    elif server.trusted_proxies:
        yield Finding("ok", "access", f"{told}; {server.user_header} is believed of {', '.join(server.trusted_proxies)}")
    else:
        yield Finding("ok", "access", told)


def _mcp(config: Config) -> Iterator[Finding]:
    """The servers of MCP: whether the programs of those that are processes are there. None is started."""
    for name, server in config.mcp.items():
        if server.url:
            yield Finding("ok", "mcp", f"{name}: {server.url}")
        elif not server.command:
            yield Finding("fail", "mcp", f"{name} has neither a command nor a url; set one of them in [mcp.{name}]")
        elif shutil.which(server.command[0]):
            yield Finding("ok", "mcp", f"{name}: {' '.join(server.command)}")
        else:
            yield Finding("fail", "mcp", f"{name}: {server.command[0]!r} is not a program here; set mcp.{name}.command")


def _memory(config: Config) -> Iterator[Finding]:
    from pie.memory import check_memory, machine_bytes, users_bytes

    check_memory(config.models)
    users = users_bytes(config.models, config.engine.memory_bytes)
    yield Finding("ok", "memory", f"{size(users)} for users, of {size(machine_bytes())} of the machine")


def _engine(config: Config) -> Iterator[Finding]:
    """Loads the models, and has the compiler look at a program and run it."""
    from pie.cli.preparing import prepare_runtimes
    from pie.engine import Engine
    from pie.events import Event
    from pie.programs import Source

    with loading(config):
        engine = Engine.from_config(config)
    with engine:
        for model in config.models:
            yield Finding("ok", "model", f"{model.name} ({model.driver}) loads")
        prepare_runtimes(engine)
        engine.prepare_runtimes()  # those that were compiled before are loaded, too
        yield Finding("ok", "compiler", "the runtimes of all languages are compiled")
        engine.start()
        event = engine.launch(Source("javascript", (("main.js", _PROBE),), "main.js"), input=None).next_event(_PROBE_S)
        if isinstance(event, Event.Return):
            yield Finding("ok", "program", "one runs to its end")
        else:
            told = f"nothing in {_PROBE_S:g} s" if event is None else str(event)
            yield Finding("fail", "program", f"one that returns 1 answers something else: {told}")
        lacks = engine.lacks_of_workers()
        told = "; ".join(lacks) if lacks else "the processes that read programs can use their three streams and nothing else"
        yield Finding("warn" if lacks else "ok", "workers", told)
        engine.stop()


async def print_holders(client: Client) -> int:
    """Prints who holds what in a server, for an operator; for others, what they hold."""
    stats = await client.stats()
    told = f"{client.server}, up {stats['uptime_s']:.0f} s, you are {stats['user']!r}"
    Finding("warn" if stats["draining"] else "ok", "server", told + ", and it is about to end" * stats["draining"]).tell()
    if "server" not in stats:
        Finding("warn", "role", f"yours is {stats['role']!r}; the holdings of others are for operators").tell()
        print_table(_USER_COLUMNS, [_row(stats["user"], stats["held_bytes"], stats["n_live"], stats["n_ended"], stats["n_tokens"])])
        return 0
    return _print_everybody(stats)


def _print_everybody(stats: ServerStats) -> int:
    whole = stats["server"]
    Finding("ok", "budget", f"{size(whole['held_bytes'])} held of {size(whole['budget_bytes'])}").tell()
    failed = False
    for name, model in whole["models"].items():
        stuck = model["n_stuck"] > 0
        failed |= stuck
        pages = f"{name}: {model['n_pages_used']} of {model['n_pages']} pages used, {model['n_waiting']} waiting"
        Finding("fail" if stuck else "ok", "model", f"{pages}{', and its driver hangs' * stuck}").tell()
    rows = []
    for user, share in sorted(whole["users"].items(), key=lambda row: -sum(row[1].get("held_bytes", {}).values())):
        held = share.get("held_bytes", {})
        rows.append(_row(user or "(not in yet)", held, share.get("n_live", 0), share.get("n_ended", 0), share.get("n_tokens", 0)))
    print_table(_USER_COLUMNS, rows)
    return EXIT_ERROR if failed else 0


def _row(user: str, held: dict[str, int], n_live: int, n_ended: int, n_tokens: int) -> tuple[str, ...]:
    parts = ", ".join(f"{purpose} {size(n_bytes)}" for purpose, n_bytes in sorted(held.items(), key=lambda part: -part[1]))
    return (user, size(sum(held.values())), parts, str(n_live), str(n_ended), str(n_tokens))
