"""What a server takes of its machine: memory with its children, threads, descriptors."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LOOK_S = 0.2
_MOST_AREAS = 8


@dataclass(frozen=True)
class Figures:
    """What a process and its children take at one moment."""

    rss_bytes: int
    n_threads: int
    n_descriptors: int
    n_children: int


def figures(pid: int) -> Figures:
    """Those of a process that runs; memory is summed over its children, without that of files, the rest is its own.

    What several of them share is counted once, as far as one of them has all of it.
    """
    status = _status(pid)
    children = list(_children(pid))
    all_of_them = [status]
    for child in children:
        with suppress(OSError):
            all_of_them.append(_status(child))
    rss_kib = sum(_kib(of, "RssAnon") for of in all_of_them) + max(_kib(of, "RssShmem") for of in all_of_them)
    n_descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Figures(rss_kib << 10, int(status["Threads"]), n_descriptors, len(children))


def held(pid: int) -> str:
    """Who holds what a process and its children take: memory by process and by its largest areas, threads by name."""
    lines = []
    for process in (pid, *_children(pid)):
        with suppress(OSError):
            names = Counter((task / "comm").read_text().strip() for task in Path(f"/proc/{process}/task").iterdir())
            lines.append(f"{process}: {_kib(_status(process), 'RssAnon') >> 10} MiB, threads {dict(names)}")
            areas = sorted(_areas(process), reverse=True)[:_MOST_AREAS]
            lines += [f"  {kib >> 10} MiB of {area}" for kib, area in areas if kib >= 1 << 10]
    return "\n".join(lines)


async def peak(pid: int, stop: asyncio.Event) -> int:
    """The most memory that was seen until `stop` was set, in bytes."""
    most = 0
    while not stop.is_set():
        with suppress(OSError, KeyError):
            most = max(most, figures(pid).rss_bytes)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _LOOK_S)
    return most


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _areas(pid: int) -> Iterator[tuple[int, str]]:
    """The areas of memory of a process: KiB that no file has, and what the system says of it."""
    area = ""
    for line in Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if "-" in name.split()[0]:
            area = line
        elif name == "Anonymous":
            yield int(value.split()[0]), area


def _kib(status: dict[str, str], name: str) -> int:
    return int(status.get(name, "0").split()[0])


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            yield from map(int, (task / "children").read_text().split())
