"""What a user sees of a program that ends badly: the message once."""

from __future__ import annotations

import io

import pytest

from pie.cli.files import FileSink
from pie.cli.printer import Printer
from pie.events import AnyEvent, Event

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


@pytest.mark.parametrize(
    ("events", "printed"),
    [
        ([Event.Stdout("a", "text"), Event.Stdout("b", "text")], "ab"),
        ([Event.Stdout('{"n":1}', "json"), Event.Stdout("2", "json")], '{"n":1}\n2\n'),
        ([Event.Stdout('{"ready":true}', "json")], '{"ready":true}\n'),
        ([Event.Stdout("a"), Event.Stdout("2", "json"), Event.Stdout("b\n")], "a\n2\nb\n"),
        ([Event.Stdout("2", "json"), Event.Return("3")], "2\n3\n"),
        ([Event.Stdout("a", "text"), Event.Message("beside"), Event.Stdout("b", "text")], "ab"),
    ],
)
def test_values_stand_on_lines_of_their_own_and_texts_as_they_come(
    capsys: pytest.CaptureFixture[str], events: list[AnyEvent], printed: str
) -> None:
    printer = Printer(FileSink(None))
    for event in events:
        printer.show(event)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([Event.Stdout("2", "json"), Event.Stderr("Traceback\n")], "2\nTraceback\nerror[limit-cpu]: more than 60 s\n"),
        ([Event.Stdout("a"), Event.Stderr("\nTraceback\n")], "a\nTraceback\nerror[limit-cpu]: more than 60 s\n"),
        ([Event.Stdout("a")], "a\nerror[limit-cpu]: more than 60 s\n"),
        ([Event.Stderr("a")], "a\nerror[limit-cpu]: more than 60 s\n"),
    ],
)
def test_an_error_begins_a_line_and_leaves_none_empty(monkeypatch: pytest.MonkeyPatch, events: list[AnyEvent], shown: str) -> None:
    pipe, error = io.StringIO(), io.StringIO()
    parts: list[str] = []
    for stream in (pipe, error):
        monkeypatch.setattr(stream, "write", parts.append)
    monkeypatch.setattr("sys.stdout", pipe)
    monkeypatch.setattr("sys.stderr", error)
    printer = Printer(FileSink(None))
    for event in [*events, Event.Error("limit-cpu", "more than 60 s", None, "")]:
        printer.show(event)
    assert "".join(parts) == shown
