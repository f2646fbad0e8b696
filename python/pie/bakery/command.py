"""Runs the tools that build: quietly, and with one error that says what failed."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pie.bakery.toolchain.machine import environment_with
from pie.errors import PieError

# Of what a command said its beginning is shown, where most tools name the first fault, and its end, where others sum
# up.
_HEAD_LINES = 120
_TAIL_LINES = 40
_LINE_CHARS = 1000


class CommandError(PieError):
    """A command that failed, with all that it said."""

    def __init__(self, words: Sequence[str], exit_code: int, stdout: str, stderr: str) -> None:
        said = stderr if stderr.strip() else stdout
        super().__init__("build-failed", f"`{_named(words)}` ended with exit code {exit_code}:\n{shortened(said)}")
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


def run(command: Sequence[str | Path], *, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints to stdout; CommandError (`build-failed`) with what it said where it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=folder, env=environment_with(environment), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        raise PieError("build-failed", f"`{words[0]}` cannot be run: {error.strerror}") from error
    stdout = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise CommandError(words, done.returncode, stdout, done.stderr.decode("utf-8", "replace"))
    return stdout


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


def shortened(text: str) -> str:
    """What a command said: all of it, or its beginning and its end with what is left out counted."""
    lines = [line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}..." for line in text.strip().splitlines()]
    n_left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if n_left_out > 0:
        lines = [*lines[:_HEAD_LINES], f"[{n_left_out} lines are left out]", *lines[-_TAIL_LINES:]]
    return "\n".join(lines) or "it said nothing"


def _named(words: Sequence[str]) -> str:
    return " ".join(words[:6]) + (" ..." if len(words) > 6 else "")  # enough to know the command by
