"""What a user sees of a program that ends badly: the message once."""

from __future__ import annotations

import pytest

from pie.cli.files import FileSink
from pie.cli.printer import Printer

TRACEBACK = 'Traceback (most recent call last):\n  File "p.py", line 2, in main\n    raise ValueError("boom")\nValueError: boom\n'


def failed(message: str, traceback: str, *, stderr: str = "", code: str = "program-error") -> None:
    printer = Printer(FileSink(None))
    if stderr:
        printer.stderr(stderr)
    printer.failed(code, message, kind="ValueError", traceback=traceback)


@pytest.mark.parametrize("stderr", [TRACEBACK, ""])
def test_a_message_that_a_traceback_says_is_not_said_again(capsys: pytest.CaptureFixture[str], stderr: str) -> None:
    failed("boom", TRACEBACK, stderr=stderr)
    assert capsys.readouterr().err == TRACEBACK + "error[program-error]: the program ended with the ValueError above\n"


def test_a_message_that_no_traceback_says_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    failed("boom", "")
    failed("more than 60 s", TRACEBACK, code="limit-cpu")
    failed("", TRACEBACK)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error[")]
    assert lines == ["error[program-error]: ValueError: boom", "error[limit-cpu]: more than 60 s", "error[program-error]: ValueError"]
