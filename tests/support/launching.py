"""Launches programs on an engine and gathers what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pie._engine import Process
from pie.engine import Engine
from pie.events import Event
from pie.programs import Component, Source, load_program

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("python", "typescript", "rust")

# An engine that lost an event would hang a test: no scenario here needs a tenth of it.
PATIENCE_S = 120.0


def example(name: str, language: str) -> Component | Source:
    """The example of that name in that language."""
    paths = {
        "python": ROOT / "examples/python" / f"{name}.py",
        "typescript": ROOT / "examples/typescript" / f"{name}.ts",
        "rust": ROOT / "build/programs" / f"{name}.wasm",
    }
    return load_program(paths[language])


INTERPRETERS = {
    "python": ROOT / "tests/vectors/interpreter.py",
    "typescript": ROOT / "tests/vectors/interpreter.ts",
    "rust": ROOT / "build/programs/interpreter.wasm",
}
"""The programs that run a list of operations (`tests/vectors`), and answer a request for one."""


def load_interpreter(language: str) -> Component | Source:
    """The program that runs a list of operations in that language."""
    return load_program(INTERPRETERS[language])


@dataclass
class Outcome:
    """Everything that a process sent, and how it ended. `sent` holds texts and files in their order, `forms` what each
    text on stdout is.
    """

    launch_seed: int
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    sent: list[str | bytes] = field(default_factory=list)
    forms: list[str | None] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    value: Any = None
    code: str | None = None
    kind: str | None = None
    message: str | None = None
    traceback: str = ""
    n_calls: int = 0

    @property
    def text(self) -> str:
        """What was streamed."""
        return "".join(self.stdout)


def finish(process: Process) -> Outcome:
    """Waits for the end of a process."""
    outcome = Outcome(process.launch_seed)
    while not process.ended:
        event = process.next_event(PATIENCE_S)
        assert event is not None or process.ended, f"nothing for {PATIENCE_S} s"
        if event is None:
            break
        match event:
            case Event.Stdout(text):
                outcome.stdout.append(text)
                outcome.sent.append(text)
                outcome.forms.append(event.form)
            case Event.Stderr(text):
                outcome.stderr.append(text)
            case Event.File(data):
                outcome.sent.append(data)
            case Event.Return():
                outcome.value = event.value
            case Event.Error(code, message, kind, traceback):
                outcome.code, outcome.kind, outcome.message, outcome.traceback = code, kind, message, traceback
            case Event.Message(text):
                outcome.messages.append(text)
            case Event.Notice(text):
                raise AssertionError(text)
    outcome.n_calls = process.n_calls
    return outcome


def run(
    engine: Engine, program: Component | Source, program_input: Any = None, *, seed: int | None = None, args: Sequence[str] = ()
) -> Outcome:
    """Launches a program and waits for its end."""
    return finish(engine.launch(program, input={} if program_input is None else program_input, args=args, seed=seed))


def python_source(text: str, name: str = "main.py") -> Source:
    """A Python program of one file."""
    return Source("python", ((name, text.encode()),), name)


def typescript_source(text: str, name: str = "main.ts") -> Source:
    """A TypeScript program of one file."""
    return Source("javascript", ((name, text.encode()),), name)
