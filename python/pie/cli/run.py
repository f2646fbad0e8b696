"""`pie run`: one engine, one program, its output on the terminal."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING

from pie.cli.files import FileSink
from pie.cli.interrupts import raised
from pie.cli.preparing import opened, ready
from pie.cli.printer import Printer
from pie.cli.stdin import stdin_messages
from pie.cli.terminal import give_up_stdout, tell_seed
from pie.errors import PieError
from pie.events import Event

if TYPE_CHECKING:
    from pie._engine import Process
    from pie.cli.launch import Launch
    from pie.config import Flags
    from pie.engine import Engine


_READER_PATIENCE_S = 1.0
"""How long a run that was interrupted waits for the reader of its output, who may have stopped."""


def run_program(launch: Launch, flags: Flags) -> int:
    """Runs the program to its end; returns the exit code."""
    if launch.detach:
        raise PieError("invalid-argument", "--detach leaves a program running in a server; say which with --server URL")
    prepared = ready(launch)
    if prepared is None:
        return 0
    files = FileSink(launch.files)

    from pie.config import load

    config = load(flags)

    with raised(), opened(config, prepared.program, prepared.programs.values()) as engine:
        process = engine.launch(
            prepared.program,
            input=prepared.input,
            args=launch.arguments,
            seed=launch.seed,
            token_budget=launch.token_budget,
            credits=launch.credits,
            username=launch.user,
            programs=prepared.programs,
            alone=True,
        )
        events = _Events(engine, process, Printer(files))
        events.start()
        threading.Thread(target=_forward_stdin, args=(process,), name="pie-stdin", daemon=True).start()
        try:
            engine.drive()
            engine.stop()
            events.join()
        except KeyboardInterrupt:
            events.is_interrupted = True
            process.cancel()
            engine.stop()
            events.join(_READER_PATIENCE_S)
            raise
        except BaseException:
            engine.stop()
            events.join()
            raise
        if launch.verbose:
            print(json.dumps({"launch_seed": process.launch_seed, **engine.models[0].stats()}), file=sys.stderr)
        elif launch.seed is None:
            tell_seed(process.launch_seed)
        return events.printer.exit_code


class _Events(threading.Thread):
    """Prints the events of a process as they come, and stops the engine after the last one.

    A thread of its own, so that a slow terminal holds up the program and never the driver. One that waits for a reader
    who has stopped does not hold up the end of the process.
    """

    def __init__(self, engine: Engine, process: Process, printer: Printer) -> None:
        super().__init__(name="pie-events", daemon=True)
        self.printer = printer
        self.is_interrupted = False
        """Whether Ctrl-C ends the program, which then is not told to whoever has pressed it."""
        self._engine = engine
        self._process = process

    def run(self) -> None:
        try:
            while (event := self._process.next_event()) is not None:
                if not (self.is_interrupted and isinstance(event, Event.Error) and event.code == "cancelled"):
                    self.printer.show(event)
        except OSError as error:
            give_up_stdout(error)
            self._process.cancel()
        finally:
            self._engine.stop()


def _forward_stdin(process: Process) -> None:
    """Sends each line of stdin to the program; its end is a disconnect.

    A full queue holds the lines up until the program reads.
    """
    try:
        for message in stdin_messages():
            process.send(message)
    except PieError as error:
        if not process.ended:
            print(f"stdin: {error.message}", file=sys.stderr)
    finally:
        process.close_input()
