"""Colours: where a terminal shows some, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import threading
from pathlib import Path

import pytest

from support.command import PATIENCE_S, command, environment

ESCAPE = b"\x1b["


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> bytes:
    """What a command writes to a terminal."""
    primary, secondary = pty.openpty()
    without = {name: value for name, value in environment().items() if name != "NO_COLOR"}
    running = subprocess.Popen(
        command(arguments),
        cwd=folder,
        env=without | {"TERM": "xterm-256color"} | variables,
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        start_new_session=True,
    )
    os.close(secondary)
    # Where nothing comes any more, the test must not hang.
    patience = threading.Timer(PATIENCE_S, running.kill)
    patience.start()
    written = b""
    try:
        while True:
            try:
                part = os.read(primary, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            written += part
        running.wait(PATIENCE_S)
    finally:
        patience.cancel()
        running.kill()
        running.wait()
        os.close(primary)
    return written


def test_an_error_is_red_on_a_terminal(tmp_path: Path) -> None:
    written = on_a_terminal(tmp_path, "run", "absent.py")
    assert ESCAPE in written
    assert b"error[unknown-program]:" in written
    assert b"there is no program at 'absent.py'" in written


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "TERM=dumb"])
def test_nothing_is_coloured_where_nobody_wants_it(tmp_path: Path, variables: dict[str, str]) -> None:
    written = on_a_terminal(tmp_path, "run", "absent.py", **variables)
    assert written.startswith(b"error[unknown-program]: there is no program at 'absent.py'")
    assert ESCAPE not in written
