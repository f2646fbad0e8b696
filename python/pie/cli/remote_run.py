"""`pie run --server`: a program in the engine of a server, its output on this terminal."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pie.bakery.project import open_project
from pie.cli.arguments import Json
from pie.cli.files import FileSink
from pie.cli.following import follow
from pie.cli.preparing import read
from pie.cli.printer import Printer
from pie.cli.program import check_version, note_doubts, packaged
from pie.cli.remote import Server, talk
from pie.cli.terminal import EXIT_ERROR, LINES, give_up_stdout, plain, tell_seed
from pie.client.client import file_name
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.cli.launch import Launch
    from pie.client import Client, Process
    from pie.config import Config

_INSTALLED = re.compile(r"sha256:[0-9a-f]{64}|[a-z0-9][a-z0-9._-]{0,63}(@[0-9A-Za-z][0-9A-Za-z.+-]{0,31})?")
_TERMINATE_S = 5.0


@dataclass(frozen=True)
class _Prepared:
    """What is launched."""

    program: str | bytes
    """What it is called at the server, or what is uploaded."""
    name: str | None
    """What lists show an upload with."""
    input: Json
    programs: Mapping[str, bytes]
    """What is uploaded for it to start, by the names that it calls them by."""


def run_in_server(server: Server, launch: Launch) -> int:
    """Runs the program to its end; returns the exit code.

    Ctrl-C ends it, and so does a stdout that cannot be written.
    """
    prepared = _prepare(server, launch)
    if prepared is not None and isinstance(prepared.program, str) and "--help" in launch.arguments:
        called = prepared.program
        return talk(server, lambda client, _: _tell_help(client, called))
    return 0 if prepared is None else talk(server, lambda client, config: _run(client, config, server, launch, prepared))


def run_installed(server: Server, launch: Launch, name: str, engine_options: Sequence[str]) -> int:
    """Runs a program that is installed in the server of the configuration: nothing lies at the path `name`.

    PieError `invalid-argument` for options of an engine of one's own; `connection-failed` says what the name was taken
    for.
    """
    if engine_options:
        message = (
            f"nothing lies at {name!r}, and a NAME@VERSION runs in a server, which has its own settings; "
            f"leave {', '.join(engine_options)} out, or check the path"
        )
        raise PieError("invalid-argument", message)
    try:
        return run_in_server(server, launch)
    except PieError as error:
        if error.code != "connection-failed":
            raise
        message = f"nothing lies at {name!r}, so that it is taken for a program of a server (client.url, or --server URL): {error.message}"
        raise PieError(error.code, message, error.details) from error


def _prepare(server: Server, launch: Launch) -> _Prepared | None:
    """What can be done without the server; None where `--help` asked for what the manifest says, which is printed."""
    _refuse_engine_flags(server)
    if _is_installed(launch.program):
        if launch.manifest is not None:
            message = (
                f"--manifest is for a program at a path; {str(launch.program)!r} is one of the server, which has its own: leave it out"
            )
            raise PieError("invalid-argument", message)
        program_input = launch.input(None)
        note_doubts(launch.arguments, None)
        return _Prepared(str(launch.program), None, program_input, _named(launch))
    try:
        check_version(launch.program)
    except PieError as error:
        raise PieError(error.code, server.advised(error.message)) from error
    if (found := read(launch)) is None:
        return None
    project, program_input = found
    return _Prepared(packaged(project).launchable(), file_name(launch.program), program_input, _named(launch))


async def _tell_help(client: Client, program: str) -> int:
    """Says where it stands what an installed program takes, which a server does not tell. Nothing is launched.

    PieError `unknown-program` for one that is not there.
    """
    lines = [
        program if program.startswith("sha256:") else await client.resolve_version(program),
        "A server does not tell what its programs take: `pie run PATH -- --help` does, where the files of the program lie,",
        "and so does the [parameters] table of the Pie.toml beside them.",
        'What follows `--` becomes the fields of its input: -- --name Ada gives {"name": "Ada"}; --input JSON gives all of it,',
        """as does --input '{"help": true}' for a program with a field of that name.""",
    ]
    print(plain("\n".join(lines), keep=LINES))
    return 0


def _named(launch: Launch) -> dict[str, bytes]:
    """The programs of `--program`, built where they have to be."""
    return {name: packaged(open_project(path)).launchable() for name, path in launch.programs.items()}


async def _run(client: Client, config: Config, server: Server, launch: Launch, prepared: _Prepared) -> int:
    printer = Printer(FileSink(launch.files))
    program = prepared.program
    programs = {name: await client.upload(content) for name, content in prepared.programs.items()}
    process = await client.launch(
        program if isinstance(program, str) else await client.upload(program, name=prepared.name),
        input=prepared.input,
        args=launch.arguments,
        seed=launch.seed,
        token_budget=launch.token_budget,
        credits=launch.credits,
        limits=_limits(config),
        programs=programs,
        detached=launch.detach,
    )
    if launch.detach:
        await process.detach()
        print(process.pid)
        return 0
    try:
        await follow(process, printer)
    except asyncio.CancelledError:
        await _terminate(process, server)
        raise
    except OSError as error:
        give_up_stdout(error)
        await _terminate(process, server)
        return EXIT_ERROR
    if launch.verbose:
        print(json.dumps({"launch_seed": process.launch_seed, "pid": process.pid}), file=sys.stderr)
    elif launch.seed is None and process.launch_seed is not None:
        tell_seed(process.launch_seed)
    return printer.exit_code


def _refuse_engine_flags(server: Server) -> None:
    """PieError `invalid-argument` where an option of an engine of one's own was given."""
    if server.flags is None or not (server.flags.models or server.flags.dummy):
        return
    given = f"--model {server.flags.models[0]}" if server.flags.models else "--dummy"
    raise PieError("invalid-argument", f"{given} says what an engine of its own serves, and the program runs in a server; leave it out")


def _limits(config: Config) -> dict[str, float | None]:
    """The limits of `--limit`; the others are the server's own."""
    return {name: value for name, value in config.limits.items() if config.origins[f"limits.{name}"].kind == "flag"}


def _is_installed(program: Path) -> bool:
    """Whether it is one of the server: nothing lies at the path, and it can be a name."""
    try:
        is_path = program.exists()
    except (OSError, ValueError):
        is_path = True  # opening it says what is wrong with the path
    return not is_path and _INSTALLED.fullmatch(str(program)) is not None


async def _terminate(process: Process, server: Server) -> None:
    """Ends the program as well as it goes: a server that has gone ends it by itself."""
    try:
        async with asyncio.timeout(_TERMINATE_S):
            await process.terminate()
    except (PieError, TimeoutError) as error:
        print(server.advised(f"the program could not be ended: {error}; see `pie ps`"), file=sys.stderr)
