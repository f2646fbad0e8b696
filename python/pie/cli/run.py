"""`pie run`: one engine, one program, its output on the terminal."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from pie.cli.arguments import Json, parse_arguments, parse_input, parse_limits
from pie.cli.progress import working
from pie.errors import PieError
from pie.programs import load_program

if TYPE_CHECKING:
    from pie._engine import Event, Process
    from pie.engine import Engine

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130

_STDIN_CHUNK_BYTES = 1 << 16
_MAX_LINE_BYTES = 4 << 20
_STDERR_TAIL_CHARS = 1 << 16


@dataclass(frozen=True)
class Launch:
    """What the command line asked for."""

    program: Path
    arguments: tuple[str, ...]
    input_text: str | None
    model: Path | None
    dummy: bool
    seed: int | None
    limits: tuple[str, ...]
    verbose: bool

    def input(self) -> Json:
        """The input of the program; PieError `invalid-argument` where both forms were given."""
        for text in (*self.arguments, self.input_text or ""):
            if not _is_unicode(text):
                raise PieError("invalid-argument", f"the argument {text!r} is not UTF-8; give it in UTF-8, or in a file")
        if self.input_text is None:
            return parse_arguments(self.arguments)
        if self.arguments:
            raise PieError("invalid-argument", f"both --input and arguments were given ({' '.join(self.arguments)!r}); use one of them")
        return parse_input(self.input_text)


def _is_unicode(text: str) -> bool:
    """Whether the text can be encoded: bytes of the command line that are not UTF-8 arrive as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def run_program(launch: Launch) -> int:
    """Runs the program to its end; answers the exit code."""
    _make_streams_sturdy()
    try:
        return _run(launch)
    except PieError as error:
        _report(error.code, error.message)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _make_streams_sturdy() -> None:
    """Neither a terminal that cannot show a character nor a closed stdout or stderr ends a program."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # open as long as the process
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run(launch: Launch) -> int:
    program = load_program(launch.program)
    program_input = launch.input()

    from pie.engine import Engine  # the engine is large: mistakes above are told without it

    with Engine(limits=parse_limits(launch.limits)) as engine:
        model = engine.add_model(launch.model, dummy=launch.dummy)
        if not engine.is_prepared(program):
            with working("Preparing the language runtime or program (once)"):
                engine.prepare(program)
        process = engine.launch(program, input=program_input, args=launch.arguments, seed=launch.seed)
        printer = _Printer(engine, process)
        printer.start()
        threading.Thread(target=_forward_stdin, args=(process,), name="pie-stdin", daemon=True).start()
        try:
            engine.drive()
        except KeyboardInterrupt:
            process.cancel()
            return EXIT_INTERRUPTED
        finally:
            engine.stop()
            printer.join()
        if launch.verbose:
            print(json.dumps({"launch_seed": process.launch_seed, **model.stats()}), file=sys.stderr)
        elif launch.seed is None:
            print(f"launch seed {process.launch_seed}", file=sys.stderr)
        return printer.exit_code


class _Printer(threading.Thread):
    """Prints the events of a process as they come, and stops the engine after the last one.

    A thread of its own, so that a slow terminal holds up the program and never the driver.
    """

    def __init__(self, engine: Engine, process: Process) -> None:
        super().__init__(name="pie-events")
        self.exit_code = EXIT_ERROR
        self._engine = engine
        self._process = process
        self._at_line_start = True
        self._last_stderr = ""

    def run(self) -> None:
        try:
            while (event := self._process.next_event()) is not None:
                if event.kind == "stdout":
                    self._write(event.text)
                elif event.kind == "stderr":
                    sys.stderr.write(event.text)
                    sys.stderr.flush()
                    self._last_stderr = (self._last_stderr + event.text)[-_STDERR_TAIL_CHARS:]
                elif event.kind == "return":
                    self._print_return(event.text)
                    self.exit_code = 0
                else:
                    self._end_line()
                    # Languages that have tracebacks write them to stderr themselves.
                    if event.traceback.strip() not in self._last_stderr:
                        sys.stderr.write(event.traceback.rstrip("\n") + "\n")
                    _report(event.code or "program-error", _described(event))
        except OSError as error:
            # The reader of our output has gone, or a disk is full. The descriptor is replaced so that the flush at exit is quiet.
            if not isinstance(error, BrokenPipeError):
                print(f"the output cannot be written: {error.strerror}", file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._process.cancel()
        finally:
            self._engine.stop()

    def _print_return(self, text: str) -> None:
        """Prints the JSON text that a program returned: a string without quotes, nothing for null, all else as it came."""
        if text != "null":
            self._end_line()
            self._write((json.loads(text) if text.startswith('"') else text) + "\n")
        elif sys.stdout.isatty():
            self._end_line()

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_line_start = text.endswith("\n")


def _forward_stdin(process: Process) -> None:
    """Sends each line of stdin to the program; its end is a disconnect.

    A full queue holds the lines up until the program reads. Reads the descriptor itself: a thread that is inside `sys.stdin`
    when the interpreter ends would hold its lock.
    """
    try:
        for line in _lines():
            process.send(line.decode("utf-8", "replace").removesuffix("\r"))
    except PieError as error:
        if not process.ended:
            print(f"stdin: {error.message}", file=sys.stderr)
    finally:
        process.close_input()


def _lines() -> Iterator[bytes]:
    """The lines of stdin without their ends; PieError `limit-message` for one that is longer than a message should be."""
    parts: list[bytes] = []
    while chunk := _read_stdin():
        first, *others = chunk.split(b"\n")
        parts.append(first)
        for following in others:
            yield b"".join(parts)
            parts = [following]
        if sum(map(len, parts)) > _MAX_LINE_BYTES:
            raise PieError(
                "limit-message", f"a line is longer than {_MAX_LINE_BYTES} bytes; the rest of the input is not sent: send it in parts"
            )
    if last := b"".join(parts):
        yield last


def _read_stdin() -> bytes:
    if sys.stdin is None:
        return b""  # closed when we started: the descriptor is somebody else's
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return b""  # in the background of a terminal, reading would stop the whole job
        return os.read(0, _STDIN_CHUNK_BYTES)
    except OSError:
        return b""


def _described(event: Event) -> str:
    """The message, after the type of an exception of the program's own: `KeyError: 'x'` says more than `'x'`."""
    if event.code != "program-error" or not event.error_kind or event.error_kind == event.code:
        return event.text
    return f"{event.error_kind}: {event.text}" if event.text else event.error_kind


def _report(code: str, message: str) -> None:
    print(f"error[{code}]: {message}", file=sys.stderr)
