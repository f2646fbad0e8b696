"""`pie run PROGRAM --port N`: one engine, and one program that answers requests by HTTP, until a signal ends it."""

from __future__ import annotations

import signal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pie.bakery.manifest import read_manifest, usage
from pie.bakery.project import open_project
from pie.cli.interrupts import raised
from pie.cli.program import made_ready, wants_help
from pie.cli.progress import loading, note_templates, working
from pie.cli.serve import Ending
from pie.cli.terminal import LINES, plain
from pie.errors import PieError

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
    project = open_project(launch.program, None if launch.manifest is None else read_manifest(launch.manifest))
    if project.manifest is not None and wants_help(launch.arguments, project.manifest):
        print(plain(usage(project.manifest), keep=LINES))
        return 0
    program_input = launch.input(project.manifest)
    program = made_ready(project)
    programs = {name: made_ready(open_project(path)) for name, path in launch.programs.items()}
    is_shared = shared or (project.manifest is not None and project.manifest.http_instance == "shared")

    from pie.config import load

    config = load(flags)

    # The engine is large: mistakes above are told without it.
    from pie._engine import check_address, init_logging
    from pie.engine import LOOPBACK, Engine

    init_logging("info")
    check_address(LOOPBACK, port)
    with raised(), TemporaryDirectory(prefix="pie-serving-") as folder:
        with loading(config):
            engine = Engine.from_config(config)
        with engine:
            note_templates(config)
            if not engine.is_prepared(program):
                with working("Preparing the language runtime or program (once)"):
                    engine.prepare(program)
            server = engine.serve_program(
                program,
                config,
                label=project.name,
                port=port,
                data_dir=Path(folder),
                shared=is_shared,
                input=program_input,
                args=launch.arguments,
                seed=launch.seed,
                token_budget=launch.token_budget,
                programs=programs,
            )
            try:
                ending = Ending(engine, server, config.server.drain_s)
                signal.signal(signal.SIGTERM, ending.on_signal)
                print(f"serving {plain(project.name)} at http://{server.address}/", flush=True)
                engine.drive()
                return ending.exit_code
            finally:
                server.stop()
