"""Runs the tools that build: quietly, and with one error that says what failed."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pie.bakery.toolchain.machine import environment_with
from pie.errors import PieError

_SHOWN_LINES = 40
_SHOWN_CHARS = 4000


def run(command: Sequence[str | Path], *, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints to stdout; PieError `build-failed` with the last lines of what it said where it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=folder, env=environment_with(environment), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        raise PieError("build-failed", f"`{words[0]}` cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise PieError(
            "build-failed", f"`{_shown(words)}` ended with exit code {done.returncode}:\n{last_lines(done.stderr or done.stdout)}"
        )
    return done.stdout.decode("utf-8", "replace")


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for intermediate files.

    Raises PieError `build-failed` where none can be made or used, as on a full disk.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="pie-build-") as name:
            yield Path(name)
    except OSError as error:
        message = f"the folder for temporary files cannot be used ({error.strerror}); make room there, or name another one with TMPDIR"
        raise PieError("build-failed", message) from error


def last_lines(output: bytes) -> str:
    """The end of what a command said."""
    lines = output.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
    return "\n".join(lines[-_SHOWN_LINES:])[-_SHOWN_CHARS:]


def _shown(words: Sequence[str]) -> str:
    return " ".join(words[:6]) + (" ..." if len(words) > 6 else "")  # enough to know the command by
