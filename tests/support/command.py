"""Runs the `pie` command as a user does."""

from __future__ import annotations

import os
import re
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


def start(arguments: Sequence[str], cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    """Starts `pie` with these arguments and an empty stdin, with `variables` added to the environment."""
    return subprocess.Popen(
        command(arguments),
        cwd=cwd,
        env=environment() | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def shell(line: str, cwd: Path, **variables: str) -> str:
    """What a line of a shell prints, which must succeed; `pie` is this one, and `variables` are added to the
    environment.
    """
    done = subprocess.run(
        ["bash", "-c", re.sub(r"\bpie (?=\w)", f"{sys.executable} -m pie ", line)],
        cwd=cwd,
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def command(arguments: Sequence[str]) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "pie", *arguments]


def environment() -> dict[str, str]:
    """The environment of the tests, without what would change the output."""
    return {name: value for name, value in os.environ.items() if name not in {"FORCE_COLOR", "PYTHONPATH"}}


def squeezed(text: str) -> str:
    """The text without the lines of boxes, and with one blank for all white space."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())
