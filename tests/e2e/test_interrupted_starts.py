"""Ctrl-C while an engine starts: what loads or compiles is given up at once, with 130 and without a traceback."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
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


@pytest.mark.parametrize("driver", [[], ["--dummy"]], ids=["cpu", "dummy"])
def test_while_a_tokenizer_loads(tmp_path: Path, driver: list[str]) -> None:
    """A tokenizer whose end never comes: a pipe. Whoever opens it for writing waits until the engine has begun to read."""
    (tmp_path / "p.py").write_text("def main(input):\n    pass\n")
    model = tmp_path / "model"
    shutil.copytree(EMBEDDED_FOLDER, model)
    (model / "tokenizer.json").unlink()
    os.mkfifo(model / "tokenizer.json")
    running = start(["run", "p.py", "--model", str(model), *driver], tmp_path)
    with (model / "tokenizer.json").open("wb"):
        interrupt(running)


def test_while_the_language_runtime_compiles(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    pass\n")
    running = start(["run", "p.py", "--dummy"], tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert running.stderr is not None
    assert "Preparing" in running.stderr.readline()
    interrupt(running)
