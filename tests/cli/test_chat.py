"""What `pie chat` makes of what its program says, and that its program is the example."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any, cast

import pytest

from pie._engine import Process
from pie.cli.chat import PROGRAM, Conversation
from pie.errors import PieError
from pie.events import AnyEvent, Event
from support.launching import ROOT

READY = '{"event": "ready"}\n'


class Program:
    """A process whose answer to each message is given; it ends when its input does."""

    def __init__(self, answers: dict[str, list[AnyEvent]]) -> None:
        self.sent: list[str] = []
        self._answers = answers
        self._events: queue.SimpleQueue[AnyEvent | None] = queue.SimpleQueue()
        self._events.put(Event.Stdout(READY))

    def next_event(self) -> AnyEvent | None:
        """The next event; None at the end."""
        return self._events.get()

    def send(self, text: str, timeout_s: float | None = None) -> None:
        """Takes a message."""
        self.sent.append(text)
        for event in self._answers[text]:
            self._events.put(event)
        if not any(isinstance(event, Event.Return | Event.Error) for event in self._answers[text]):
            return
        self._events.put(None)

    def close_input(self) -> None:
        """The end."""
        self._events.put(Event.Return("null"))
        self._events.put(None)


def told(*events: dict[str, Any]) -> list[AnyEvent]:
    """Lines of JSON, in events that do not begin and end where lines do."""
    text = "".join(json.dumps(event) + "\n" for event in events) + READY
    return [Event.Stdout(text[:5]), Event.Stdout(text[5:])]


def talk(monkeypatch: pytest.MonkeyPatch, program: Program) -> int:
    """Says each message that the program has an answer to."""
    monkeypatch.setattr("pie.cli.chat.stdin_messages", lambda: iter(["", "/stop", *program._answers]))
    return Conversation(cast(Process, program), "tiny").talk()


def test_the_program_is_the_example() -> None:
    assert PROGRAM.read_bytes() == (ROOT / "examples/python" / PROGRAM.name).read_bytes()


def test_answers_go_to_stdout_and_notes_to_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = [{"event": "text", "text": part} for part in ("He", "llo\nyou")]
    answers = {
        "hi": told(*text, {"event": "done", "finish": "stop", "tokens": 3}),
        "more": told(text[0], {"event": "done", "finish": "length", "tokens": 2}),
        "/reset": told({"event": "note", "text": "a new conversation"}),
    }
    program = Program(answers)
    assert talk(monkeypatch, program) == 0
    assert program.sent == list(answers)
    shown = capsys.readouterr()
    assert shown.out == "Hello\nyou\nHe\n"
    assert shown.err == "cut off after 2 tokens; --max-tokens N allows more\na new conversation\n"


def test_a_conversation_is_saved_where_the_user_says_and_over_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    # Whatever the program calls the file.
    saving = [Event.Stdout('{"event": "file", "name": "/etc/elsewhere"}\n'), Event.File(b"[]\n"), Event.Stdout(READY)]
    answers: dict[str, list[AnyEvent]] = {"/save a.json": saving, " /save  a.json ": saving, "/save": told()}
    assert talk(monkeypatch, Program(answers)) == 0
    assert (tmp_path / "a.json").read_bytes() == b"[]\n"
    assert capsys.readouterr().err == "saved as a.json\n'a.json' cannot be written: File exists\n"


def test_a_file_that_nobody_asked_for_is_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert talk(monkeypatch, Program({"hi": [Event.File(b"x"), Event.Stdout(READY)]})) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_fails_ends_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failed = [Event.Stdout('{"event": "text", "text": "He"}\n'), Event.Error("limit-cpu", "more than 60 s")]
    assert talk(monkeypatch, Program({"hi": failed, "never said": []})) == 1
    shown = capsys.readouterr()
    assert shown.out == "He\n"
    assert "error[limit-cpu]: more than 60 s" in shown.err


def test_a_program_that_fails_at_once_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    program = Program({})
    program._events = queue.SimpleQueue()
    for event in (Event.Error("invalid-input", "no"), None):
        program._events.put(event)
    assert Conversation(cast(Process, program), "tiny").talk() == 1
    assert "error[invalid-input]: no" in capsys.readouterr().err


def test_the_first_interrupt_stops_an_answer_and_the_second_ends_the_command() -> None:
    program = Program({"/stop": told({"event": "done", "finish": "stopped", "tokens": 1})})
    conversation = Conversation(cast(Process, program), "tiny")
    with pytest.raises(KeyboardInterrupt):
        conversation._interrupted(2, None)
    conversation._is_answering = True
    conversation._interrupted(2, None)
    with pytest.raises(KeyboardInterrupt):
        conversation._interrupted(2, None)
    conversation._events.put(Event.Stdout('{"event": "text", "text": "He"}\n'))
    for event in told({"event": "done", "finish": "stopped", "tokens": 1}):
        conversation._events.put(event)
    assert conversation._until_ready()
    assert program.sent == ["/stop"]
    assert not conversation._wants_stop


def test_a_program_that_has_ended_is_told_nothing() -> None:
    class Ended(Program):
        def send(self, text: str, timeout_s: float | None = None) -> None:
            raise PieError("session-closed", "it has ended")

    conversation = Conversation(cast(Process, Ended({})), "tiny")
    conversation._send("hi")
    assert conversation._told_to_stop()
