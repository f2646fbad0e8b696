"""What every part asks of the machine: where caches lie, what is on the path, and running a command.

Reads the environment itself: it runs before anything is installed, and what it runs gets the environment as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PACKAGE_SOURCES = (
    *("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT", "PIP_PRE"),
    *("UV_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_PRERELEASE"),
)


class ToolchainError(Exception):
    """What could not be done, in one line."""


def cache_folder() -> Path:
    """What builds share, whatever they build."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pie-build"


def target_folder() -> Path:
    """Where cargo builds programs: one folder for all, so that what they share is built once."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or cache_folder() / "target") / "guests"


def package_sources() -> list[str]:
    """The variables by which the user says where Python packages come from, each with its value."""
    return [f"{name}={os.environ[name]}" for name in _PACKAGE_SOURCES if name in os.environ]


def environment_with(additions: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of a command: that of this process, and more."""
    return {**os.environ, **(additions or {})}


def tools_folder() -> Path:
    """Where `cargo install` puts what building needs, out of the way of the user's own commands."""
    return cache_folder() / "tools"


def find(*names: str) -> str | None:
    """The path of the first of some commands that is there."""
    return next(filter(None, map(shutil.which, names)), None)


def run(
    command: Sequence[str | Path],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> str:
    """Runs a command without any question to the user and returns what it printed.

    The ToolchainError names the command and what it said last.
    """
    words = [str(word) for word in command]
    quiet = environment_with({"DEBIAN_FRONTEND": "noninteractive", **(environment or {})})
    try:
        done = subprocess.run(
            words, cwd=folder, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(str(error)) from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise ToolchainError(f"`{' '.join(words)}` ended with exit code {done.returncode}: {said[-1]}")
    return done.stdout


def answer(command: Sequence[str | Path]) -> str | None:
    """What a command printed; none where it failed or is not there."""
    try:
        return run(command).strip()
    except ToolchainError:
        return None
