"""Shows what a program writes while it runs, where whoever runs it says nothing else."""

from __future__ import annotations

import sys

from pie.events import AnyEvent, Event


class Output:
    """Writes what a program prints and sends to `sys.stdout`, and its stderr and notices of the engine to `sys.stderr`.

    A value that was sent as JSON has a line of its own. What is returned or raised is for the caller.
    """

    def __init__(self) -> None:
        self._is_at_line_start = True

    def show(self, event: AnyEvent) -> None:
        """One event."""
        match event:
            case Event.Stdout(text) if event.form == "json":
                self._end_line()
                self._write(f"{text}\n")
            case Event.Stdout(text):
                self._write(text)
            case Event.Stderr(text):
                sys.stderr.write(text)
                sys.stderr.flush()
            case Event.Notice(text):
                self._tell(text)
            case Event.File(data):
                size = "1 byte" if len(data) == 1 else f"{len(data)} bytes"
                self._tell(f"the program sent a file of {size}; a function given as on_event gets such files")
            case _:
                pass  # messages are for programs that are clients, and the last event is for the caller

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._is_at_line_start = text.endswith("\n")

    def _tell(self, text: str) -> None:
        self._end_line()
        print(text, file=sys.stderr, flush=True)

    def _end_line(self) -> None:
        if not self._is_at_line_start:
            self._write("\n")
