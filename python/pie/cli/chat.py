"""`pie chat`: a conversation on the terminal. The program that has it is an example, `conversation.py`."""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pie.cli.files import FileSink
from pie.cli.interrupts import handled, raised
from pie.cli.preparing import opened
from pie.cli.printer import Printer
from pie.cli.stdin import stdin_messages
from pie.cli.terminal import LINES, plain
from pie.errors import PieError
from pie.events import Event
from pie.programs import Source

if TYPE_CHECKING:
    from types import FrameType

    from pie._engine import Process
    from pie.config import Flags
    from pie.events import AnyEvent

PROGRAM = Path(__file__).with_name("conversation.py")

_PROMPT = "> "
_LOOK_S = 0.1
# Events that wait to be shown; more of them hold the program up.
_MAX_EVENTS = 1024
_HINT = "/system TEXT, /reset, /save NAME, /quit; Ctrl-C stops an answer, Ctrl-D ends"


def converse(flags: Flags, options: Mapping[str, Any], *, seed: int | None) -> int:
    """Talks until the user goes; returns the exit code.

    `options` are the input of the program, without those that are None.
    """
    source = Source("python", ((PROGRAM.name, PROGRAM.read_bytes()),), PROGRAM.name)

    from pie.config import load

    config = load(flags)

    with raised(), opened(config, source) as engine:
        engine.start()
        given = {name: value for name, value in options.items() if value is not None}
        process = engine.launch(source, input={**given, "events": True}, seed=seed, alone=True)
        try:
            return Conversation(process, engine.models[0].name).talk()
        finally:
            process.cancel()


class Conversation:
    """The user's side: lines go to the program, and what it says of them to the terminal."""

    def __init__(self, process: Process, model: str) -> None:
        self._process = process
        self._model = model
        self._printer = Printer(FileSink(None))
        self._is_terminal = sys.stdin is not None and sys.stdin.isatty()
        # What the program said short of the end of a line.
        self._part = ""
        self._saves_as: Path | None = None
        self._is_at_line_start = True
        self._is_answering = False
        self._wants_stop = False
        self._is_at_prompt = False
        self._events: queue.Queue[AnyEvent | None] = queue.Queue(_MAX_EVENTS)

    def talk(self) -> int:
        """Until `/quit`, the end of stdin or that of the program."""
        threading.Thread(target=self._read_events, name="pie-events", daemon=True).start()
        with handled(self._interrupted):
            if self._is_terminal:
                _note(f"{self._model}: {_HINT}")
            if not self._until_ready():
                return self._printer.exit_code
            for line in self._lines():
                self._send(line)
                if not self._until_ready():
                    return self._printer.exit_code
            self._process.close_input()
            while self._until_ready():
                pass
        return self._printer.exit_code

    def _read_events(self) -> None:
        while (event := self._process.next_event()) is not None:
            self._events.put(event)
        self._events.put(None)

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-C stops an answer, and at the prompt gives up what is typed.

        A second one, while an answer does not end, ends the command.
        """
        if self._is_answering and not self._wants_stop:
            self._wants_stop = True
        elif self._is_answering or self._is_at_prompt or not self._is_terminal:
            raise KeyboardInterrupt

    def _lines(self) -> Iterator[str]:
        """What the user says, line by line. Empty lines are nothing, and no answer is given that could be stopped."""
        for line in self._typed() if self._is_terminal else stdin_messages():
            if line.strip() not in {"", "/stop"}:
                yield line

    def _typed(self) -> Iterator[str]:
        import readline  # noqa: F401  # it gives `input` its editing and its history

        while True:
            try:
                self._is_at_prompt = True
                line = input(_PROMPT)
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print()
                _note("Ctrl-D or /quit ends")
                continue
            finally:
                self._is_at_prompt = False
            yield line

    def _send(self, line: str) -> None:
        command, _, name = line.strip().partition(" ")
        self._saves_as = _path(name.strip()) if command == "/save" and name.strip() else None
        self._is_answering = True
        try:
            self._process.send(line)
        except PieError as error:
            # Why it has ended is its last event.
            if error.code != "session-closed":
                raise

    def _until_ready(self) -> bool:
        """Shows what the program says until it waits for a message; False when it has ended."""
        self._is_answering = True
        was_told = False
        try:
            while True:
                if self._wants_stop and not was_told:
                    was_told = self._told_to_stop()
                try:
                    event = self._events.get(timeout=_LOOK_S)
                except queue.Empty:
                    continue
                if event is None:
                    return False
                if self._show(event):
                    return True
        finally:
            self._is_answering = self._wants_stop = False
            self._end_line()

    def _told_to_stop(self) -> bool:
        """Asks the program to end its answer; False where its queue is full, and it has to be asked again."""
        try:
            self._process.send("/stop", _LOOK_S)
        except PieError as error:
            # Where it has ended, its last event says why.
            if error.code not in {"session-closed", "limit-queue"}:
                raise
            return error.code == "session-closed"
        return True

    def _show(self, event: AnyEvent) -> bool:
        """Shows one event; whether the program waits for the next message."""
        match event:
            case Event.Stdout(text):
                *lines, self._part = (self._part + text).split("\n")
                is_ready = False
                for line in lines:
                    is_ready = self._said(json.loads(line)) or is_ready
                return is_ready
            case Event.File(data):
                self._save(data)
            case Event.Return():
                self._printer.exit_code = 0
            case _:
                self._end_line()
                self._printer.show(event)
        return False

    def _said(self, told: Mapping[str, Any]) -> bool:
        match told["event"]:
            case "text":
                text = told["text"]
                sys.stdout.write(plain(text, keep=LINES) if sys.stdout.isatty() else text)
                sys.stdout.flush()
                self._is_at_line_start = text.endswith("\n") or (self._is_at_line_start and not text)
            case "note":
                self._end_line()
                _note(told["text"])
            case "done" if told["finish"] == "length":
                self._end_line()
                _note(f"cut off after {told['tokens']} tokens; --max-tokens N allows more")
            case "ready":
                return True
        return False

    def _save(self, data: bytes) -> None:
        path, self._saves_as = self._saves_as, None
        if path is None:
            return
        try:
            with path.open("xb") as file:
                file.write(data)
        except OSError as error:
            _note(f"{str(path)!r} cannot be written: {error.strerror}")
        else:
            _note(f"saved as {path}")

    def _end_line(self) -> None:
        if not self._is_at_line_start:
            print(flush=True)
            self._is_at_line_start = True


def _path(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # the home folder of nobody
        return Path(name)


def _note(text: str) -> None:
    print(plain(text, keep=LINES), file=sys.stderr, flush=True)
