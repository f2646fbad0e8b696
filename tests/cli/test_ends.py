"""How a command ends: stdout that cannot be written, files that cannot be read, Ctrl-C at any time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import unprivileged
from support.command import PATIENCE_S, command, environment, start

COMMANDS = ["--help", "--version", "run --help", "config show", "config path", "model show --no-digest", "ps --help"]


def shell_line(line: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=cwd,
        env=environment() | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at its end", "at once"])
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_full_disk_is_one_line(tmp_path: Path, arguments: str, unbuffered: str) -> None:
    """Whether the write fails or the flush at the end."""
    done = shell_line(" ".join(command(arguments.split())) + " > /dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at its end", "at once"])
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_reader_that_has_gone_is_no_news(tmp_path: Path, arguments: str, unbuffered: str) -> None:
    """The reader has closed the pipe before the command begins."""
    line = f"mkfifo pipe; exec 3<>pipe; exec 4>pipe; exec 3<&-; {' '.join(command(arguments.split()))} >&4"
    done = shell_line(line, tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_closed_stdout_cannot_be_written_either(tmp_path: Path, arguments: str) -> None:
    done = shell_line(" ".join(command(arguments.split())) + " >&-", tmp_path)
    said = "the output cannot be written: stdout is closed; redirect it to /dev/null where nobody wants it\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_program_that_prints_nothing_needs_no_stdout(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main():\n    pass\n")
    done = shell_line(" ".join(command(["run", "p.py", "--dummy", "--seed", "1"])) + " >&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model", "show", "locked"], "error[invalid-model]: locked/config.json: cannot be read (Permission denied)"),
        (["run", "p.py", "--model", "locked"], "error[invalid-model]: "),
        (["config", "show", "--config", "locked/c.toml"], "error[invalid-config]: the configuration file 'locked/c.toml' cannot be read"),
        (["run", "locked/p.py", "--dummy"], "error[unknown-program]: 'locked/p.py' cannot be the path of a program: Permission denied"),
        (["run", "locked", "--dummy"], "error[unknown-program]: 'locked' cannot be read: Permission denied"),
        (["run", "mine.py", "--dummy"], "error[unknown-program]: 'mine.py' cannot be read: Permission denied"),
        (
            ["build", "p.py", "-o", "locked/x.wasm"],
            "error[invalid-argument]: 'locked/x.wasm' cannot be used (Permission denied); check the path and its permissions",
        ),
    ],
)
def test_what_may_not_be_read_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "p.py").write_text("def main():\n    return 1\n")
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "mine.py").chmod(0)
    (tmp_path / "locked").mkdir(mode=0)
    done = subprocess.run(
        [sys.executable, unprivileged.__file__, *arguments],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    [line] = done.stderr.removeprefix("Building p.py...\n").splitlines()
    assert line.startswith(said)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("typer", ["--help"]),
        ("msgspec", ["config", "show"]),
        ("cffi", ["run", "p.py"]),
        ("websockets", ["ps"]),
        ("asyncio", ["ps"]),
    ],
)
def test_ctrl_c_while_modules_are_imported(tmp_path: Path, module: str, arguments: list[str]) -> None:
    """The module, in place of the real one, waits for the end of a pipe; whoever opens that for writing waits until it
    has begun.
    """
    (tmp_path / "p.py").write_text("def main():\n    pass\n")
    modules = tmp_path / "modules"
    modules.mkdir()
    os.mkfifo(tmp_path / "pipe")
    (modules / f"{module}.py").write_text(f"open({str(tmp_path / 'pipe')!r}).read()\n")
    running = start(arguments, tmp_path, PYTHONPATH=str(modules))
    with (tmp_path / "pipe").open("wb"):
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=PATIENCE_S) == ("", "")
    assert running.returncode == 130


def test_ctrl_c_stays_ignored_where_it_was(tmp_path: Path) -> None:
    """As in the background of a script, whose Ctrl-C is not meant for it."""
    (tmp_path / "ask.py").write_text(
        "from inferlet import session\nasync def main(input):\n    session.send('ready\\n')\n    return await session.receive()\n"
    )
    line = f"trap '' INT; exec {' '.join(command(['run', 'ask.py', '--dummy', '--seed', '1']))}"
    running = subprocess.Popen(
        ["bash", "-c", line],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    assert running.communicate("go on\n", timeout=PATIENCE_S)[0] == "go on\n"
    assert running.returncode == 0
