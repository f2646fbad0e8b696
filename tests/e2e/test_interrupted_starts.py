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


def interrupt(running: subprocess.Popen[str]) -> None:
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, stderr
    assert stdout == ""
    assert "Traceback" not in stderr


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
        interrupt(running)


def test_while_the_language_runtime_compiles(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    pass\n")
    running = start(["run", "p.py", "--dummy"], tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert running.stderr is not None
    assert "Preparing" in running.stderr.readline()
    interrupt(running)
