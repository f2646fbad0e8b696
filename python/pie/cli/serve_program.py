"""`pie run PROGRAM --port N`: one engine, and one program that answers requests by HTTP, until a signal ends it."""

from __future__ import annotations

import signal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from pie.cli.handlers import check_answers, may_read_arguments
from pie.cli.interrupts import raised
from pie.cli.preparing import opened, ready
from pie.cli.serve import Ending
from pie.cli.terminal import plain
from pie.errors import PieError
from pie.programs import Source

if TYPE_CHECKING:
    from pie.cli.launch import Launch
    from pie.config import Flags


def serve_program(launch: Launch, flags: Flags, port: int, *, shared: bool) -> int:
    """Serves on this machine until SIGTERM or Ctrl-C; returns the exit code, as `pie serve` does.

    What the program writes to standard error goes to the log, which is on stderr. With `shared`, or where the manifest
    says so, one instance answers all requests, and otherwise each has its own.
    """
    if launch.detach or launch.files is not None:
        raise PieError("invalid-argument", "--detach and --files are for a program that runs once; leave them out with --port")
    prepared = ready(launch)
    if prepared is None:
        return 0
    check_answers(prepared.project, prepared.program)
    if launch.arguments and not may_read_arguments(prepared.project, prepared.program):
        message = "`fetch` is not given them, and nothing in the program reads them (runtime.args() does); leave them out with --port"
        raise typer.BadParameter(message, param_hint=f"-- {launch.arguments[0][:40]}")
    manifest = prepared.project.manifest
    is_shared = shared or (manifest is not None and manifest.http_instance == "shared")

    from pie.config import load

    config = load(flags)

    # The engine is large: mistakes above are told without it.
    from pie._engine import check_address, init_logging
    from pie.engine import LOOPBACK

    init_logging("info")
    check_address(LOOPBACK, port)
    with (
        raised(),
        TemporaryDirectory(prefix="pie-serving-") as folder,
        opened(config, prepared.program, prepared.programs.values()) as engine,
    ):
        if isinstance(prepared.program, Source):
            engine.check(prepared.program)
        server = engine.serve_program(
            prepared.program,
            config,
            label=prepared.project.name,
            port=port,
            data_dir=Path(folder),
            shared=is_shared,
            input=prepared.input,
            args=launch.arguments,
            seed=launch.seed,
            token_budget=launch.token_budget,
            credits=launch.credits,
            username=launch.user,
            programs=prepared.programs,
        )
        try:
            ending = Ending(engine, server, config.server.drain_s)
            signal.signal(signal.SIGTERM, ending.on_signal)
            print(f"serving {plain(prepared.project.name)} at http://{server.address}/", flush=True)
            engine.drive()
            return ending.exit_code
        finally:
            server.stop()
