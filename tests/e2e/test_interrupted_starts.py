"""Ctrl-C while an engine starts: what loads or compiles is given up at once, with 130 and without a traceback."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pie.config import EMBEDDED_FOLDER
from support.command import PATIENCE_S, start


def interrupt(running: subprocess.Popen[str]) -> str:
    """Ends it by Ctrl-C; returns what it has printed."""
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, stderr
    assert "Traceback" not in stderr
    return stdout


@contextmanager
def held_back(path: Path) -> Iterator[Callable[[], None]]:
    """A file whose opening takes as long as the body; what is given waits until somebody begins to open it.

    The kernel holds up whoever opens a file that another process has a lease of, and tells that process by a signal.
    """
    told, tells = os.pipe()
    before = signal.signal(signal.SIGIO, lambda _number, _frame: os.write(tells, b"."))
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield lambda: None if select.select([told], [], [], PATIENCE_S)[0] else pytest.fail("nobody opens the file")
    finally:
        os.close(file)
        signal.signal(signal.SIGIO, before)
        os.close(told)
        os.close(tells)


@pytest.mark.parametrize("driver", [[], ["--dummy"]], ids=["cpu", "dummy"])
def test_while_a_tokenizer_loads(tmp_path: Path, driver: list[str]) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    pass\n")
    model = tmp_path / "model"
    shutil.copytree(EMBEDDED_FOLDER, model)
    with held_back(model / "tokenizer.json") as wait_until_opened:
        running = start(["run", "p.py", "--model", str(model), *driver], tmp_path)
        wait_until_opened()
        assert interrupt(running) == ""


@pytest.mark.parametrize(
    ("line", "runtime", "last"),
    [
        ("run p.py --dummy", "Python", None),
        ("run p.ts --dummy", "JavaScript", None),
        ("run p.py --watch --dummy", "Python", None),
        ("chat --dummy", "Python", None),
        ("serve --dummy --port 0", "Python", None),
        ("doctor --dummy", "Python", "pie-tiny (dummy) loads"),
    ],
    ids=lambda value: str(value).removesuffix(" --dummy"),
)
def test_while_the_first_language_runtime_compiles(tmp_path: Path, line: str, runtime: str, last: str | None) -> None:
    """A command says at once what takes so long, and is given up by Ctrl-C."""
    (tmp_path / "p.py").write_text("def main(input):\n    pass\n")
    (tmp_path / "p.ts").write_text("export function main() {}\n")
    kept = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIE_ENGINE__DATA_DIR": str(tmp_path / "data"), "PIE_SERVER__PORT": "0"}
    running = start(line.split(), tmp_path, **kept)
    assert running.stderr is not None
    while (told := running.stderr.readline()) != f"Compiling the {runtime} runtime (once, about half a minute)...\n":
        assert told, "it has ended, and has told nothing"
    printed = interrupt(running).splitlines()
    assert printed == [] if last is None else printed[-1].endswith(last)
