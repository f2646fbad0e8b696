"""Runs the `pie` command as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PATIENCE_S = 120


def pie(
    *arguments: str, cwd: Path | None = None, stdin: str | None = None, patience_s: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Runs `pie` with these arguments; stdin is empty unless given."""
    return subprocess.run(
        command(arguments),
        cwd=cwd,
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=patience_s,
        check=False,
        env=environment(),
    )


def command(arguments: Sequence[str]) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "pie", *arguments]


def environment() -> dict[str, str]:
    """The environment of the tests, without what would change the output."""
    return {name: value for name, value in os.environ.items() if name not in {"FORCE_COLOR", "PYTHONPATH"}}
