"""`pie run`: one engine, one program, its output on the terminal."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING

from pie.bakery.manifest import read_manifest, usage
from pie.bakery.project import open_project
from pie.cli.files import FileSink
from pie.cli.interrupts import raised
from pie.cli.printer import Printer
from pie.cli.program import made_ready, wants_help
from pie.cli.progress import loading, note_templates, working
from pie.cli.stdin import stdin_messages
from pie.cli.terminal import LINES, give_up_stdout, plain
from pie.errors import PieError

if TYPE_CHECKING:
    from pie._engine import Process
    from pie.cli.launch import Launch
    from pie.config import Config, Flags
    from pie.engine import Engine


def run_program(launch: Launch, flags: Flags) -> int:
    """Runs the program to its end; returns the exit code."""
    if launch.detach:
        raise PieError("invalid-argument", "--detach leaves a program running in a server; say which with --server URL")
    project = open_project(launch.program, None if launch.manifest is None else read_manifest(launch.manifest))
    if project.manifest is not None and wants_help(launch.arguments, project.manifest):
        print(plain(usage(project.manifest), keep=LINES))
        return 0
    program_input = launch.input(project.manifest)
    program = made_ready(project)
    programs = {name: made_ready(open_project(path)) for name, path in launch.programs.items()}
    files = FileSink(launch.files)

    from pie.config import load

    config = load(flags)

    from pie.engine import Engine  # the engine is large: mistakes above are told without it

    with raised(), _loaded(Engine, config) as engine:
        note_templates(config)
        if not engine.is_prepared(program):
            with working("Preparing the language runtime or program (once)"):
                engine.prepare(program)
        process = engine.launch(
            program,
            input=program_input,
            args=launch.arguments,
            seed=launch.seed,
            token_budget=launch.token_budget,
            programs=programs,
            alone=True,
        )
        events = _Events(engine, process, Printer(files))
        events.start()
        threading.Thread(target=_forward_stdin, args=(process,), name="pie-stdin", daemon=True).start()
        try:
            engine.drive()
        except KeyboardInterrupt:
            process.cancel()
            raise
        finally:
            engine.stop()
            events.join()
        if launch.verbose:
            print(json.dumps({"launch_seed": process.launch_seed, **engine.models[0].stats()}), file=sys.stderr)
        elif launch.seed is None:
            print(f"launch seed {process.launch_seed}", file=sys.stderr)
        return events.printer.exit_code


def _loaded(engine: type[Engine], config: Config) -> Engine:
    with loading(config):
        return engine.from_config(config)


class _Events(threading.Thread):
    """Prints the events of a process as they come, and stops the engine after the last one.

    A thread of its own, so that a slow terminal holds up the program and never the driver.
    """

    def __init__(self, engine: Engine, process: Process, printer: Printer) -> None:
        super().__init__(name="pie-events")
        self.printer = printer
        self._engine = engine
        self._process = process

    def run(self) -> None:
        try:
            while (event := self._process.next_event()) is not None:
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
