"""`pie run --watch`: one engine, whose program runs again when a file of it changes."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pie.bakery.manifest import read_manifest
from pie.bakery.project import open_project
from pie.cli.arguments import STDIN, input_file
from pie.cli.changes import INTERVAL_S, State, differences, look, next_change
from pie.cli.files import FileSink
from pie.cli.interrupts import raised
from pie.cli.printer import Printer
from pie.cli.program import help_of, note_doubts, note_emptiness, note_words
from pie.cli.progress import loading, note_templates
from pie.cli.stdin import stdin_messages
from pie.cli.terminal import EXIT_ERROR, LINES, give_up_stdout, plain, report, tell_seed
from pie.errors import PieError
from pie.programs import Source, compiling

if TYPE_CHECKING:
    from pie._engine import Process
    from pie.bakery.project import Project
    from pie.cli.launch import Launch
    from pie.config import Flags
    from pie.engine import Engine
    from pie.programs import Component

_PATIENCE_S = 5.0


def watch_program(launch: Launch, flags: Flags) -> int:
    """Runs the program again and again until Ctrl-C; returns the exit code where something else ends it.

    Raises PieError `unknown-program` where nothing lies at its path; what is wrong with the program itself is told, and
    waits for a change.
    """
    if launch.detach:
        raise PieError("invalid-argument", "--detach leaves a program running in a server, and --watch ends what runs; give one of them")
    if launch.input_text == STDIN:
        raise PieError("invalid-argument", "--input - reads stdin once, and --watch runs the program again; give --input @FILE")
    try:
        project = open_project(launch.program, None if launch.manifest is None else read_manifest(launch.manifest))
    except PieError as error:
        if error.code == "unknown-program":
            raise
    else:
        if (told := help_of(launch.arguments, project)) is not None:
            print(plain(told, keep=LINES))
            return 0

    from pie.config import load

    config = load(flags)

    from pie.engine import Engine  # the engine is large: mistakes above are told without it

    with raised():
        with loading(config):
            engine = Engine.from_config(config)
        with engine:
            note_templates(config)
            runs = _Runs(engine, launch)
            runs.start()
            try:
                engine.drive()
            finally:
                runs.end()
                engine.stop()
                runs.join(_PATIENCE_S)
    return EXIT_ERROR


class _Runs(threading.Thread):
    """Launches the program, and again after each change, beside the thread that drives the engine."""

    def __init__(self, engine: Engine, launch: Launch) -> None:
        # A build that Ctrl-C has not ended is not waited for.
        super().__init__(name="pie-watch", daemon=True)
        self._engine = engine
        self._launch = launch
        self._stopping = threading.Event()
        self._input = _Input()
        # Files that a lone file imports are known once it could be opened, and stay so.
        self._imported: set[Path] = set()

    def end(self) -> None:
        """Nothing is launched any more."""
        self._stopping.set()

    def run(self) -> None:
        threading.Thread(target=self._input.forward, name="pie-stdin", daemon=True).start()
        try:
            self._run()
        finally:
            self._engine.stop()

    def _run(self) -> None:
        while True:
            # Before anything is read, so that no change is missed.
            before = self._look()
            running = self._launched()
            # What is imported is only known by now.
            before = {**self._look(), **before}
            after = next_change(self._look, before, lambda: self._stopping.wait(INTERVAL_S))
            if running is not None:
                running.end()
            if after is None:
                return
            _tell(f"changed: {differences(before, after, self._folder())}; running again")

    def _folder(self) -> Path:
        path = self._launch.program.absolute()
        return path if path.is_dir() else path.parent

    def _look(self) -> State:
        launch = self._launch
        path = launch.program.absolute()
        paths = [path, *(one.absolute() for one in launch.programs.values())]
        if not path.is_dir():
            # Of a lone file the folder may hold anything: those beside it that are programs too, and what it imports.
            paths += [*_beside(path), *self._imported]
        if launch.manifest is not None:
            paths.append(launch.manifest.absolute())
        if (given := input_file(launch.input_text)) is not None:
            paths.append(given.absolute())
        return look(dict.fromkeys(paths), without=None if launch.files is None else launch.files.absolute())

    def _launched(self) -> _Running | None:
        """The program that was launched; None where it could not be, which is told."""
        try:
            manifest = self._launch.manifest
            project = open_project(self._launch.program, None if manifest is None else read_manifest(manifest))
            if isinstance(project.source, Source) and not project.path.is_dir():
                self._imported |= {project.folder.absolute() / name for name, _ in project.source.files}
            program_input = self._launch.input(project.manifest)
            note_doubts(self._launch.arguments, project.manifest)
            note_words(program_input, project)
            program = _ready(project)
            programs = {name: _ready(open_project(path)) for name, path in self._launch.programs.items()}
            for one in (program, *(other for other in programs.values() if isinstance(other, Source))):
                if not self._engine.is_prepared(one):
                    _tell(f"{compiling(one)}...")  # the spinner of other commands belongs to the main thread
                    self._engine.prepare(one)
            process = self._engine.launch(
                program,
                input=program_input,
                args=self._launch.arguments,
                seed=self._launch.seed,
                token_budget=self._launch.token_budget,
                credits=self._launch.credits,
                username=self._launch.user,
                programs=programs,
                alone=True,
            )
        except PieError as error:
            if not self._stopping.is_set():
                report(error.code, error.message)
                _tell("waiting for a change")
            return None
        self._input.give(process)
        running = _Running(process, self._launch, self._engine, self._stopping)
        running.start()
        return running


class _Running(threading.Thread):
    """Prints what one launch of the program does."""

    def __init__(self, process: Process, launch: Launch, engine: Engine, stopping: threading.Event) -> None:
        super().__init__(name="pie-events", daemon=True)
        self._process = process
        self._launch = launch
        self._engine = engine
        self._stopping = stopping
        self._is_replaced = False

    def end(self) -> None:
        """Ends the program, where it still runs, and returns when all that it did was printed."""
        self._is_replaced = True
        self._process.cancel()
        self.join()

    def run(self) -> None:
        printer = Printer(FileSink(self._launch.files))
        try:
            while (event := self._process.next_event()) is not None:
                # Of a program that is replaced nobody wants to read that it was ended.
                if not (self._is_replaced and self._process.ended):
                    printer.show(event)
            if self._is_replaced or self._stopping.is_set():
                return
            if self._launch.verbose:
                print(json.dumps({"launch_seed": self._process.launch_seed, **self._engine.models[0].stats()}), file=sys.stderr)
            elif self._launch.seed is None:
                tell_seed(self._process.launch_seed)
            _tell("the program has ended; waiting for a change")
        except OSError as error:
            give_up_stdout(error)
            self._process.cancel()
            self._stopping.set()


class _Input:
    """The lines of stdin, for the program that runs when they come. Its end is a disconnect of each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Process | None = None
        self._is_over = False

    def give(self, process: Process) -> None:
        """Takes the program that lines are for from here on."""
        with self._lock:
            self._process = process
            is_over = self._is_over
        if is_over:
            process.close_input()

    def forward(self) -> None:
        """Sends each line; one that comes while no program runs is told of."""
        try:
            for message in stdin_messages():
                self._send(message)
        except PieError as error:
            print(f"stdin: {error.message}", file=sys.stderr)
        with self._lock:
            self._is_over = True
            process = self._process
        if process is not None:
            process.close_input()

    def _send(self, message: str) -> None:
        with self._lock:
            process = self._process
        try:
            if process is not None:
                process.send(message)
                return
        except PieError as error:
            if error.code != "session-closed":
                print(f"stdin: {error.message}", file=sys.stderr)
                return
        print("stdin: no program runs that could take the line", file=sys.stderr)


def _beside(path: Path) -> list[Path]:
    """The files beside a lone file that it could import, and those that name its packages."""
    try:
        suffixes = {path.suffix, ".json", ".toml", ".lock"}
        return [one for one in path.parent.iterdir() if (one.suffix in suffixes or one.name == "requirements.txt") and one.is_file()]
    except OSError:
        return []


def _ready(project: Project) -> Component | Source:
    """As `program.made_ready`, without its spinner, which is of the main thread."""
    from pie.bakery.build import needs_building, ready

    note_emptiness(project)
    if needs_building(project):
        _tell(f"Building {project.name}...")
    return ready(project)


def _tell(text: str) -> None:
    print(plain(text, keep=LINES), file=sys.stderr, flush=True)
