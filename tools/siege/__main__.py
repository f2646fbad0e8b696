"""Runs the siege; see the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pie.client import connect
from pie.memory import users_bytes
from tools.siege import honest
from tools.siege.honest import Seen
from tools.siege.watch import Figures, figures, held, peak

_ALONE_S = 20.0
_SETTLE_S = 90.0
_LOOK_S = 15.0
"""Threads that wait for work end after ten seconds, if nobody asks for anything meanwhile."""
_MIB = 1 << 20
_SWAP_BYTES = 512 * _MIB
"""What the one model takes: its keys and values, its weights and the swap."""
_SLOWER = 3.0
"""So many times as long as alone an answer may take beside the attackers, at the 95th percentile."""
_KEPT_BYTES = 64 * _MIB
"""What allocators, caches and compiled programs may keep of the memory that the attackers had."""
_FIGURES = frozenset({"n_pages_used", "n_contexts", "n_generators", "n_requests", "n_waiting", "n_in_flight", "n_stuck"})
"""Figures of a model that are 0 when nobody does anything."""


@dataclass(frozen=True)
class Result:
    """What a siege came to."""

    alone: Seen
    besieged: Seen
    afterwards: Seen
    before: Figures
    after: Figures
    peak_bytes: int
    limit_bytes: int
    stats: dict[str, Any]
    met: dict[str, dict[str, int]]
    held: str
    """Who holds what the server takes afterwards."""
    is_alive: bool
    attackers_code: int
    """How the process of the attackers ended."""

    @property
    def slower(self) -> float:
        """How many times as long as alone an answer took beside the attackers, at the 95th percentile."""
        return self.besieged.at(0.95) / self.alone.at(0.95)

    def faults(self) -> list[str]:
        """What should have held and did not."""
        before, after = self.before, self.after
        models = self.stats.get("server", self.stats).get("models", {})
        held = {f"{model}.{name}": n for model, figures in models.items() for name, n in figures.items() if name in _FIGURES and n}
        wrong = sum(seen.wrong for seen in (self.alone, self.besieged, self.afterwards))
        refused = {code: n for seen in (self.besieged, self.afterwards) for code, n in seen.refused.items()}
        conditions = {
            "the server ended": not self.is_alive,
            f"the attackers ended with {self.attackers_code}, before their time": self.attackers_code != 0,
            f"{wrong} answers were wrong": bool(wrong),
            f"honest users met errors: {refused}": bool(refused),
            f"answers took {self.slower:.2f} times as long as alone, more than {_SLOWER}": not self.slower <= _SLOWER,
            f"{self.peak_bytes // _MIB} MiB were taken, more than {self.limit_bytes // _MIB}": self.peak_bytes > self.limit_bytes,
            f"{after.rss_bytes - before.rss_bytes} bytes are kept": after.rss_bytes > before.rss_bytes + _KEPT_BYTES,
            f"{after.n_threads} threads were {before.n_threads}": after.n_threads > before.n_threads,
            f"{after.n_children} children were {before.n_children}": after.n_children > before.n_children,
            f"models still hold {held}": bool(held),
        }
        return [fault for fault, is_met in conditions.items() if is_met]


@contextmanager
def group_of(folder: Path | None, limit_bytes: int) -> Iterator[Path | None]:
    """A control group with a limit of memory, below `folder`, which is a group of the first version.

    None without a folder.
    """
    if folder is None:
        yield None
        return
    group = folder / f"pie-siege-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes), encoding="ascii")
        yield group
    finally:
        group.rmdir()


def start(folder: Path, memory_bytes: int, group: Path | None) -> tuple[subprocess.Popen[str], str]:
    """A server on a port of its own, and where it listens.

    What users may hold follows from the group's limit where there is one.
    """
    environment = os.environ | {"PIE_ENGINE__DATA_DIR": str(folder / "data"), "PIE_SERVER__OPERATORS": "honest"}
    environment |= {"PIE_SERVER__GRACE_S": "2", "PIE_SERVER__RETENTION_S": "5"}
    if group is None:
        environment["PIE_ENGINE__MEMORY_BYTES"] = str(users_bytes([], machine=memory_bytes - _SWAP_BYTES))

    def enter() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    server = subprocess.Popen(
        [sys.executable, "-m", "pie", "serve", "--port", "0"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=(folder / "stderr").open("w", encoding="utf-8"),
        text=True,
        preexec_fn=enter,  # noqa: PLW1509  # this process has one thread
    )
    for line in server.stdout or ():
        if line.startswith("serving at "):
            return server, line.split()[-1]
    raise SystemExit(f"the server ended: {(folder / 'stderr').read_text(encoding='utf-8')}")


async def siege(server: subprocess.Popen[str], url: str, seconds: float, limit_bytes: int) -> Result:
    """The figures of one siege."""
    tokens = await honest.expected(url)
    await honest.fill(url)
    alone = await honest.live(url, tokens, time.monotonic() + _ALONE_S)
    before = figures(server.pid)
    host, port = url.removeprefix("ws://").split(":")
    attackers = await asyncio.create_subprocess_exec(
        "nice", "-n", "19", sys.executable, "-m", "tools.siege.attackers", host, port, str(seconds), stdout=asyncio.subprocess.PIPE
    )
    stop = asyncio.Event()
    watching = asyncio.create_task(peak(server.pid, stop))
    besieged = await honest.live(url, tokens, time.monotonic() + seconds)
    met = json.loads((await attackers.communicate())[0] or b"{}")
    code = attackers.returncode or 0
    stop.set()
    most = await watching
    if server.poll() is not None:
        return Result(alone, besieged, honest.Seen(), before, before, most, limit_bytes, {}, met, "", is_alive=False, attackers_code=code)
    after, stats = await settled(server, url, before)
    who = held(server.pid)
    afterwards = await honest.live(url, tokens, time.monotonic() + _ALONE_S)
    return Result(
        alone, besieged, afterwards, before, after, most, limit_bytes, stats, met, who, is_alive=server.poll() is None, attackers_code=code
    )


async def settled(server: subprocess.Popen[str], url: str, before: Figures) -> tuple[Figures, dict[str, Any]]:
    """What the server takes once an operator has ended what the attackers left detached.

    Something that stays is waited for, for a while.
    """
    deadline = time.monotonic() + _SETTLE_S
    async with connect(url, user="honest", timeout_s=60) as client:
        left = await client.list(all_users=True)
        await asyncio.gather(*(client.terminate(process.pid) for process in left), return_exceptions=True)
        while True:
            stats: dict[str, Any] = dict(await client.stats())
            now = figures(server.pid)
            is_settled = now.n_threads <= before.n_threads and now.n_children <= before.n_children
            if (is_settled and now.rss_bytes <= before.rss_bytes + _KEPT_BYTES) or time.monotonic() > deadline:
                return now, stats
            await asyncio.sleep(_LOOK_S)


def shown(result: Result) -> str:
    """The figures as a page."""
    before, after = result.before, result.after
    lines = [
        f"server alive: {result.is_alive}",
        f"honest alone:      {result.alone.shown()}",
        f"honest besieged:   {result.besieged.shown()}",
        f"honest afterwards: {result.afterwards.shown()}",
        f"p95 besieged / alone: {result.slower:.2f}",
        f"memory: {before.rss_bytes // _MIB} MiB before, {result.peak_bytes // _MIB} MiB at most, {after.rss_bytes // _MIB} MiB after",
        f"threads {before.n_threads} -> {after.n_threads}, descriptors {before.n_descriptors} -> {after.n_descriptors}, "
        f"children {before.n_children} -> {after.n_children}",
        f"stats: {json.dumps(result.stats)}",
        result.held,
        *(f"  {name}: {counts}" for name, counts in result.met.items()),
        *(f"FAULT: {fault}" for fault in result.faults()),
    ]
    return "\n".join(lines)


def main() -> int:
    """Runs a siege and prints it; 1 where something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.siege", description="Forty attackers beside ten honest users of one server.")
    parser.add_argument("--seconds", type=float, default=600, help="how long the attackers attack")
    parser.add_argument("--memory", type=float, default=2.0, help="GiB that the server has")
    parser.add_argument("--group", type=Path, help="a control group (version 1, of memory) below which the server gets one with that limit")
    options = parser.parse_args()
    memory_bytes = int(options.memory * (1 << 30))
    with tempfile.TemporaryDirectory() as folder, group_of(options.group, memory_bytes) as group:
        server, url = start(Path(folder), memory_bytes, group)
        try:
            result = asyncio.run(siege(server, url, options.seconds, memory_bytes))
            print(shown(result))
        finally:
            server.kill()
            server.wait()
            print((Path(folder) / "stderr").read_text(encoding="utf-8")[-2000:])
    return 1 if result.faults() else 0


if __name__ == "__main__":
    raise SystemExit(main())
