"""What `make run` prints around the examples."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tools import run_examples


@pytest.mark.parametrize("is_terminal", [False, True])
def test_only_a_terminal_gets_escapes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool) -> None:
    def ran(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", ran)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert run_examples.main() == 0
    printed = capsys.readouterr().out
    assert "TypeScript" in printed
    assert ("\033" in printed) is is_terminal
