"""What every command does that runs a program in an engine of its own, until the program can be launched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from pie.bakery.manifest import read_manifest
from pie.bakery.project import Project, open_project
from pie.cli.program import help_of, made_ready, note_doubts, note_words
from pie.cli.progress import loading, note_templates, working
from pie.cli.terminal import LINES, plain
from pie.programs import Component, Language, Source, compiling

if TYPE_CHECKING:
    from pie.cli.launch import Launch
    from pie.config import Config
    from pie.engine import Engine


@dataclass(frozen=True)
class ReadyLaunch:
    """A program that is built, and what it is launched with."""

    project: Project
    program: Component | Source
    input: Any
    programs: Mapping[str, Component | Source]
    """Those that it can start, by name."""


def read(launch: Launch) -> tuple[Project, Any] | None:
    """The project that a launch names by its path, and its input; None where it asks for help, which is printed."""
    project = open_project(launch.program, None if launch.manifest is None else read_manifest(launch.manifest))
    if (told := help_of(launch.arguments, project)) is not None:
        print(plain(told, keep=LINES))
        return None
    program_input = launch.input(project.manifest)
    note_doubts(launch.arguments, project.manifest)
    note_words(program_input, project)
    return project, program_input


def ready(launch: Launch) -> ReadyLaunch | None:
    """Opens and builds what a launch names; None where it only asks for help, which is printed."""
    if (found := read(launch)) is None:
        return None
    project, program_input = found
    program = made_ready(project)
    programs = {name: made_ready(open_project(path)) for name, path in launch.programs.items()}
    return ReadyLaunch(project, program, program_input, programs)


def prepare(engine: Engine, program: Component | Source | Language) -> None:
    """Compiles a program, or the runtime of its language, where that was not done before, and says so first."""
    if not engine.is_prepared(program):
        with working(compiling(program)):
            engine.prepare(program)


def prepare_runtimes(engine: Engine) -> None:
    """Compiles the runtime of each language as `prepare` does."""
    for language in get_args(Language):
        prepare(engine, language)


@contextmanager
def opened(config: Config, program: Component | Source, programs: Iterable[Component | Source] = ()) -> Iterator[Engine]:
    """An engine with the models of a configuration, in which the program is prepared.

    So are the runtimes of the `programs` that it can start. A component among them is compiled when it is started, so
    that its mistakes are told to the program that starts it.
    """
    from pie.engine import Engine  # it is large: mistakes that are found before are told without it

    with loading(config):
        engine = Engine.from_config(config)
    with engine:
        note_templates(config)
        prepare(engine, program)
        for other in programs:
            if isinstance(other, Source):
                prepare(engine, other)
        yield engine
