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
from pathlib import Path
from typing import Any

from pie.client import connect
from tools.siege import honest
from tools.siege.watch import Figures, figures, peak

_ALONE_S = 20.0
_SETTLE_S = 90.0
_MIB = 1 << 20


def start(folder: Path, memory: str, group: Path | None) -> tuple[subprocess.Popen[str], str]:
    """A server on a port of its own, and where it listens; in a control group where one is given."""
    environment = os.environ | {"PIE_ENGINE__DATA_DIR": str(folder / "data"), "PIE_ENGINE__MEMORY_BYTES": memory}
    environment |= {"PIE_SERVER__GRACE_S": "2", "PIE_SERVER__RETENTION_S": "5"}

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


async def siege(server: subprocess.Popen[str], url: str, seconds: float) -> dict[str, Any]:
    """The figures of one siege."""
    tokens = await honest.expected(url)
    alone = await honest.live(url, tokens, time.monotonic() + _ALONE_S)
    before = figures(server.pid)
    host, port = url.removeprefix("ws://").split(":")
    attackers = await asyncio.create_subprocess_exec(
        "nice", sys.executable, "-m", "tools.siege.attackers", host, port, str(seconds), stdout=asyncio.subprocess.PIPE
    )
    stop = asyncio.Event()
    watching = asyncio.create_task(peak(server.pid, stop))
    besieged = await honest.live(url, tokens, time.monotonic() + seconds)
    met = json.loads((await attackers.communicate())[0] or b"{}")
    stop.set()
    most = await watching
    after, stats = await settled(server, url, before)
    again = await honest.live(url, tokens, time.monotonic() + _ALONE_S)
    return {
        "alone": alone,
        "besieged": besieged,
        "afterwards": again,
        "met": met,
        "peak": most,
        "before": before,
        "after": after,
        "stats": stats,
        "alive": server.poll() is None,
    }


async def settled(server: subprocess.Popen[str], url: str, before: Figures) -> tuple[Figures, dict[str, Any]]:
    """What the server takes once the attackers' processes have ended, or after a while if some do not."""
    deadline = time.monotonic() + _SETTLE_S
    async with connect(url, user="honest", timeout_s=60) as client:
        while True:
            stats: dict[str, Any] = dict(await client.stats())
            now = figures(server.pid)
            if (now.n_threads <= before.n_threads and now.n_children <= before.n_children) or time.monotonic() > deadline:
                return now, stats
            await asyncio.sleep(1)


def shown(result: dict[str, Any]) -> str:
    """The figures as a page."""
    before, after = result["before"], result["after"]
    lines = [
        f"server alive: {result['alive']}",
        f"honest alone:      {result['alone'].shown()}",
        f"honest besieged:   {result['besieged'].shown()}",
        f"honest afterwards: {result['afterwards'].shown()}",
        f"p95 besieged / alone: {result['besieged'].at(0.95) / result['alone'].at(0.95):.2f}",
        f"memory: {before.rss_bytes // _MIB} MiB before, {result['peak'] // _MIB} MiB at most, {after.rss_bytes // _MIB} MiB after",
        f"threads {before.n_threads} -> {after.n_threads}, descriptors {before.n_descriptors} -> {after.n_descriptors}, "
        f"children {before.n_children} -> {after.n_children}",
        f"stats: {json.dumps(result['stats'])[:2000]}",
        *(f"  {name}: {counts}" for name, counts in result["met"].items()),
    ]
    return "\n".join(lines)


def main() -> None:
    """Runs a siege and prints it."""
    parser = argparse.ArgumentParser(prog="python -m tools.siege", description="Forty attackers beside ten honest users of one server.")
    parser.add_argument("--seconds", type=float, default=600, help="how long the attackers attack")
    parser.add_argument("--memory", default="1GiB", help="engine.memory_bytes of the server")
    parser.add_argument("--group", type=Path, help="the folder of a control group that the server runs in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server, url = start(Path(folder), options.memory, options.group)
        try:
            print(shown(asyncio.run(siege(server, url, options.seconds))))
        finally:
            server.kill()
            server.wait()
            print((Path(folder) / "stderr").read_text(encoding="utf-8")[-2000:])


if __name__ == "__main__":
    main()
