"""Prints what a process tells its client: the same for a process of this engine and for one of a server."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, TextIO

from pie.cli.terminal import EXIT_ERROR, LINES, plain, report
from pie.errors import described
from pie.events import Event

if TYPE_CHECKING:
    from pie.cli.files import FileSink
    from pie.events import AnyEvent

_STDERR_TAIL_CHARS = 1 << 16


class Printer:
    """Writes events to stdout and stderr, and files to `files`, each at once. OSError where they cannot be written."""

    def __init__(self, files: FileSink) -> None:
        self._files = files
        self.exit_code = EXIT_ERROR
        self._at_line_start = True
        self._open: TextIO | None = None
        """The stream whose line what was shown last has left open."""
        self._last_stderr = ""

    def show(self, event: AnyEvent) -> None:
        """One event."""
        match event:
            case Event.Stdout(text):
                if event.form == "json":
                    self.sent(text)
                else:
                    self.stdout(text)
            case Event.Stderr(text):
                self.stderr(text)
            case Event.Message():
                pass  # for programs that are clients
            case Event.Notice(text):
                self.notice(text)
            case Event.File(data):
                self.file(data)
            case Event.Return():
                self.returned(event.text)
            case Event.Error(code, message, kind, traceback):
                self.failed(code, message, kind=kind, traceback=traceback)

    def sent(self, text: str) -> None:
        """A value that the program sent as JSON: a line of its own, which whoever reads lines gets at once."""
        self._end_stdout()
        self.stdout(text + "\n")

    def stdout(self, text: str) -> None:
        """What the program printed, or sent as a text, verbatim."""
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_line_start = text.endswith("\n")
            self._open = None if self._at_line_start else sys.stdout

    def stderr(self, text: str) -> None:
        """What the program wrote to stderr, verbatim."""
        if text:
            sys.stderr.write(text)
            sys.stderr.flush()
            self._open = None if text.endswith("\n") else sys.stderr
            self._remember(text)

    def log(self, text: str) -> None:
        """What the log of the program keeps of both, on stdout.

        It is printed verbatim, but with control characters escaped on a terminal.
        """
        self.stdout(plain(text, keep=LINES) if sys.stdout.isatty() else text)
        self._remember(text)

    def notice(self, text: str) -> None:
        """What the engine itself says about the program, as a line on stderr."""
        self._end_line()
        print(plain(text, keep=LINES), file=sys.stderr)

    def file(self, data: bytes) -> None:
        """A file that the program sent: saved, or told of, with a line on stderr."""
        told = self._files.take(data)
        self._end_line()
        print(told, file=sys.stderr)

    def returned(self, text: str) -> None:
        """The JSON text that the program returned: a string without quotes, nothing for null, all else as it came."""
        if text != "null":
            self._end_stdout()
            self.stdout((json.loads(text) if text.startswith('"') else text) + "\n")
        elif sys.stdout.isatty():
            self._end_stdout()
        self.exit_code = 0

    def failed(self, code: str, message: str, *, kind: str | None, traceback: str) -> None:
        """The error that ended the program; `kind` is its type in the program's language."""
        self._end_line()
        # Languages that have tracebacks write them to stderr themselves.
        if traceback.strip() not in self._last_stderr:
            sys.stderr.write(plain(traceback.rstrip("\n"), keep=LINES) + "\n")
        # A traceback says the message itself, and once is enough.
        told = message.strip() != "" and message in traceback
        report(code, f"the program ended with the {kind or 'error'} above" if told else described(code, message, kind))

    def _remember(self, text: str) -> None:
        self._last_stderr = (self._last_stderr + text)[-_STDERR_TAIL_CHARS:]

    def _end_line(self) -> None:
        """Ends the line that was shown last: both streams may be one terminal, or one pipe."""
        if self._open is sys.stdout:
            self.stdout("\n")
        elif self._open is not None:
            self.stderr("\n")

    def _end_stdout(self) -> None:
        if not self._at_line_start:
            self.stdout("\n")
