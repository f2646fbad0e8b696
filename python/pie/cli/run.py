"""`pie run`: one engine, one program, its output on the terminal."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pie.cli.arguments import Json, parse_arguments, parse_input
from pie.cli.progress import working
from pie.errors import PieError
from pie.programs import load_program

if TYPE_CHECKING:
    from pie._engine import Process
    from pie.engine import Engine

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130

_STDIN_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Launch:
    """What the command line asked for."""

    program: Path
    arguments: tuple[str, ...]
    input_text: str | None
    model: Path | None
    dummy: bool
    seed: int | None
    verbose: bool

    def input(self) -> Json:
        """The input of the program; PieError `invalid-argument` where both forms were given."""
        if self.input_text is None:
            return parse_arguments(self.arguments)
        if self.arguments:
            raise PieError("invalid-argument", f"both --input and arguments were given ({' '.join(self.arguments)!r}); use one of them")
        return parse_input(self.input_text)


def run_program(launch: Launch) -> int:
    """Runs the program to its end; answers the exit code."""
    try:
        return _run(launch)
    except PieError as error:
        _report(error.code, error.message)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run(launch: Launch) -> int:
    program = load_program(launch.program)
    program_input = launch.input()

    from pie.engine import Engine  # the engine is large: mistakes above are told without it

    with Engine() as engine:
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
        if printer.exit_code != 0 and launch.seed is None:
            print(f"launch seed {process.launch_seed}: --seed {process.launch_seed} repeats this run", file=sys.stderr)
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

    def run(self) -> None:
        try:
            while (event := self._process.next_event()) is not None:
                if event.kind == "stdout":
                    self._write(event.text)
                elif event.kind == "stderr":
                    sys.stderr.write(event.text)
                    sys.stderr.flush()
                elif event.kind == "return":
                    self._print_return(json.loads(event.text))
                    self.exit_code = 0
                else:
                    self._end_line()
                    _report(event.code or "program-error", event.text)
        except BrokenPipeError:
            # The reader of our output has gone: nobody wants the rest. The descriptor is replaced so that the flush at exit is quiet.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._process.cancel()
        finally:
            self._engine.stop()

    def _print_return(self, value: Json) -> None:
        if value is not None:
            self._end_line()
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            self._write(text + "\n")
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
    pending = b""
    try:
        while chunk := _read_stdin():
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                process.send(line.decode("utf-8", "replace").removesuffix("\r"))
        if pending:
            process.send(pending.decode("utf-8", "replace"))
        process.close_input()
    except PieError as error:
        if not process.ended:
            print(f"stdin: {error.message}", file=sys.stderr)


def _read_stdin() -> bytes:
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return b""  # in the background of a terminal, reading would stop the whole job
        return os.read(0, _STDIN_CHUNK_BYTES)
    except OSError:
        return b""


def _report(code: str, message: str) -> None:
    print(f"error[{code}]: {message}", file=sys.stderr)
