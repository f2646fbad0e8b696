"""What changes in the files of a program.

They are looked at again and again: that needs no library, works on every file system (those of containers and networks
send no notices), and a program has few files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

State: TypeAlias = Mapping[Path, tuple[int, int, int]]
"""Time of the last change in nanoseconds, size and inode of each file."""

MAX_FILES = 8192
"""No more files and folders are looked at: a program has at most half as many files."""
INTERVAL_S = 0.25

# What builds write, and what belongs to tools.
_SKIPPED = frozenset({"__pycache__", "dist", "node_modules", "target", "Cargo.lock", "package-lock.json"})
_MAX_TOLD = 5


def look(paths: Iterable[Path], *, without: Path | None = None) -> State:
    """The files at these paths now.

    Of a folder they are those at any depth, but hidden ones, what builds write, and what lies at `without`.
    """
    found: dict[Path, tuple[int, int, int]] = {}
    roots = set(paths)
    waiting = sorted(roots)
    n_looks = 0
    while waiting and n_looks < MAX_FILES:
        n_looks += 1
        path = waiting.pop()
        if path == without:
            continue
        try:
            if path.is_dir():
                # What a link below leads to is found in its own place, and may be the folder itself.
                if path.is_symlink() and path not in roots:
                    continue
                waiting += sorted((path / name for name in os.listdir(path) if not _is_skipped(name)), reverse=True)  # noqa: PTH208
                continue
            status = path.stat()
        except OSError:
            continue  # removed meanwhile, or not for us: the launch says what it lacks
        found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name.endswith(("~", ".swp")) or name in _SKIPPED


def next_change(looks: Callable[[], State], before: State, is_over: Callable[[], bool]) -> State | None:
    """Waits until the files are others than `before`, and stay as they are from one look to the next.

    An editor writes a file in several steps, and several files at once. `is_over` waits from one look to the next; None
    when it says that nobody waits any more.
    """
    while not is_over():
        now = looks()
        if now == before:
            continue
        while not is_over():
            later = looks()
            if later == now:
                return now
            now = later
        return None
    return None


def differences(before: State, after: State, base: Path) -> str:
    """The files that are not as they were, for people: the first few by their paths from `base`."""
    told = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        shown = str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
        told.append(f"{shown} (new)" if path not in before else f"{shown} (removed)" if path not in after else shown)
    more = f", and {len(told) - _MAX_TOLD} more" if len(told) > _MAX_TOLD else ""
    return ", ".join(told[:_MAX_TOLD]) + more
