"""The exit codes of the command line are those of the table in its reference."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from support.command import PATIENCE_S, pie, start
from support.launching import ROOT
from support.serving import SPIN

TABLE = (ROOT / "docs/reference/command-line.md").read_text()


def ended_by(number: signal.Signals, folder: Path) -> int:
    """The exit code, as a shell says it, of `pie run` that gets a signal while its program spins."""
    running = start(["run", "spin.py", "--dummy"], folder)
    assert running.stdout is not None
    assert running.stdout.readline() == "spinning\n"
    running.send_signal(number)
    running.communicate(timeout=PATIENCE_S)
    return running.returncode if running.returncode >= 0 else 128 - running.returncode


def test_every_exit_code_of_the_table_is_given_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(SPIN)
    (tmp_path / "ok.py").write_text("def main(input):\n    return input\n")
    (tmp_path / "fails.py").write_text("def main(input):\n    return {}['x']\n")
    given = {
        "returns": pie("run", "ok.py", "--dummy", "--", "--name", "Ada", cwd=tmp_path).returncode,
        "fails": pie("run", "fails.py", "--dummy", cwd=tmp_path).returncode,
        "no program": pie("build", "missing.py", cwd=tmp_path).returncode,
        "no server": pie("ps", "--server", "ws://127.0.0.1:1").returncode,
        "no such command": pie("fly").returncode,
        "Ctrl-C": ended_by(signal.SIGINT, tmp_path),
        "SIGTERM": ended_by(signal.SIGTERM, tmp_path),
    }
    assert given == {
        "returns": 0,
        "fails": 1,
        "no program": 1,
        "no server": 1,
        "no such command": 2,
        "Ctrl-C": 130,
        "SIGTERM": 143,
    }
    assert set(given.values()) == {int(code) for code in re.findall(r"^\| (\d+) \|", TABLE, re.MULTILINE)}


def test_ctrl_c_is_not_told_of_to_whoever_pressed_it(tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(SPIN)
    running = start(["run", "spin.py", "--dummy"], tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "spinning\n"
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert "error[" not in errors


def test_an_option_of_the_program_before_the_dashes_is_told_where_it_goes() -> None:
    done = pie("run", "chat.py", "--name", "Ada")
    assert done.returncode == 2
    told = " ".join(done.stderr.replace("│", " ").split())
    assert "No such option: --name. What is for the program comes after `--`: pie run PROGRAM -- --name" in told
