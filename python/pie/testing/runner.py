"""Runs programs for tests, and keeps what they did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack, cast

from pie.errors import PieError
from pie.events import AnyEvent, Event
from pie.inprocess import Engine, LaunchOptions, Program, followed

WALL_S = 60.0
"""How long a program may run unless a test says otherwise: one that waits for what never comes fails its test."""


@dataclass(frozen=True)
class Run:
    """What a program did, from its launch to its end."""

    value: Any
    """What it returned."""
    stdout: str
    """What it printed and sent, as one text."""
    stderr: str
    sent: tuple[Any, ...]
    """Each value of `session.send`."""
    messages: tuple[str, ...]
    """Each text of `session.message`."""
    files: tuple[bytes, ...]
    """Each file of `session.send_file`."""
    launch_seed: int


class Runner:
    """Runs programs in an engine, as one user: what they keep is seen by those that this runner runs later.

    Another runner of the engine, with another `username`, sees nothing of it.
    """

    def __init__(self, engine: Engine, *, username: str = "test") -> None:
        self._engine = engine
        self._username = username

    def __call__(
        self,
        program: Program,
        input: Any = None,  # noqa: A002  # what the entry of a program calls it
        *,
        messages: Iterable[str | bytes] = (),
        **options: Unpack[LaunchOptions],
    ) -> Run:
        """Runs a program to its end; its seed is 0, and it may take a minute, unless the options say otherwise.

        `program` is a path, or `pie.source(text)`. It receives `messages` (texts, and files as bytes), then the end of
        the session. The options are those of a launch: `args`, `seed`, `token_budget`, `credits`, `limits`, `programs`,
        `username`. Raises PieError with the code of the program's error, whose `details` hold its `kind`, `message` and
        `traceback`, and what it wrote until then as `stdout` and `stderr`; the warnings are among its notes.
        """
        limits: dict[str, float | None] = {"wall_s": WALL_S, **(options.get("limits") or {})}
        given = cast("LaunchOptions", {"seed": 0, "username": self._username, **options, "limits": limits})
        process = self._engine.launch(program, input, **given)
        taken = _Taken()
        try:
            value = followed(process, messages, taken.take)
        except PieError as error:
            error.details = {**error.details, "stdout": "".join(taken.stdout), "stderr": "".join(taken.stderr)}
            for line in taken.warnings():
                error.add_note(line)
            raise
        return taken.run(value, process.launch_seed)


class _Taken:
    """What a program did so far."""

    def __init__(self) -> None:
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self._sent: list[Any] = []
        self._messages: list[str] = []
        self._files: list[bytes] = []

    def take(self, event: AnyEvent) -> None:
        """One event."""
        match event:
            case Event.Stdout(text):
                self.stdout.append(text)
                if event.form is not None:
                    self._sent.append(event.value)
            case Event.Stderr(text):
                self.stderr.append(text)
            case Event.Notice(text):
                self.stderr.append(f"{text}\n")
            case Event.Message(text):
                self._messages.append(text)
            case Event.File(data):
                self._files.append(data)
            case _:
                pass  # the last one is for whoever waits for the value

    def warnings(self) -> list[str]:
        """The warnings on standard error: they often tell why a program failed."""
        return [line for line in "".join(self.stderr).splitlines() if line.startswith("warning: ")]

    def run(self, value: Any, launch_seed: int) -> Run:
        """The whole, with what the program returned."""
        sent, messages, files = tuple(self._sent), tuple(self._messages), tuple(self._files)
        return Run(value, "".join(self.stdout), "".join(self.stderr), sent, messages, files, launch_seed)
