"""`pie serve`: an engine that clients launch programs in, until a signal ends it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from pie.cli.interrupts import raised
from pie.cli.preparing import prepare_runtimes
from pie.cli.progress import note_templates

if TYPE_CHECKING:
    from pie._engine import Server
    from pie.config import Config, Flags, ModelConfig
    from pie.engine import Engine

EXIT_TERMINATED = 143

_DRAIN_SLICE_S = 0.05


def serve(flags: Flags, *, isolate: bool | None = None) -> int:
    """Serves until SIGTERM or Ctrl-C; returns the exit code.

    The exit code is 0 once drained, 143 after a second SIGTERM, 130 after Ctrl-C.

    `isolate` says of every model whether its driver has a process of its own; None: the configuration does, which by
    default means yes.
    """
    from pie.config import load

    config = isolated(load(flags), isolate)

    # The engine is large: mistakes above are told without it.
    from pie._engine import check_access, check_address, init_logging, keep_little_free, keep_small_pages
    from pie.config.settings import of_engine
    from pie.engine import Engine

    init_logging(config.server.log_level, programs=config.server.log_programs)
    check_address(config.server.host, config.server.port)  # before the models are loaded, which may take minutes
    check_access(str(config.engine.data_dir), of_engine("server", config.server))
    if config.server.replicas > 1:
        from pie.replicas.serving import serve_replicas

        with raised():
            return serve_replicas(config)
    if all(model.isolate or model.driver == "dummy" for model in config.models):
        keep_little_free()
        # What users make the engine hold is counted by page faults; weights have processes of their own.
        keep_small_pages(alone=True)
    with raised(), Engine.from_config(config) as engine:
        note_templates(config)
        prepare_runtimes(engine)
        server = engine.serve(config)
        try:
            ending = Ending(engine, server, config.server.drain_s)
            signal.signal(signal.SIGTERM, ending.on_signal)
            _say_ready(config, server)
            engine.drive()
            return ending.exit_code
        finally:
            server.stop()


def isolated(config: Config, isolate: bool | None = None) -> Config:
    """The configuration, with what a server does where nothing is said."""
    from dataclasses import replace

    from msgspec.structs import replace as changed

    def chosen(model: ModelConfig) -> bool:
        if isolate is not None:
            return isolate
        is_said = config.origins[f"model.{model.name}.isolate"].kind != "default"
        return model.isolate if is_said else sys.platform == "linux" and model.driver != "dummy"

    return replace(config, models=tuple(changed(model, isolate=chosen(model)) for model in config.models))


def _say_ready(config: Config, server: Server) -> None:
    for model in config.models:
        print(f"model {model.name} ({model.driver}, {model.path})")
    print(f"serving at ws://{server.address}", flush=True)


class Ending:
    """What SIGTERM does: the first drains, the second does not wait for what runs.

    The handler runs on the thread that drives, and the batches that end the processes need it: all that waits has a
    thread of its own.
    """

    def __init__(self, engine: Engine, server: Server, drain_s: float) -> None:
        self.exit_code = 0
        self._engine = engine
        self._server = server
        self._drain_s = drain_s
        self._at_once = threading.Event()
        self._drain = threading.Thread(target=self._end, name="pie-drain", daemon=True)
        self._is_draining = False

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Handles SIGTERM."""
        if self._is_draining:
            self.exit_code = EXIT_TERMINATED
            self._at_once.set()
        else:
            self._is_draining = True
            self._drain.start()

    def _end(self) -> None:
        self._server.begin_drain()
        with suppress(OSError, ValueError):  # whoever read stderr may have gone
            print(f"draining: {self._server.n_live} processes have {self._drain_s:g} s to end", file=sys.stderr, flush=True)
        deadline_s = time.monotonic() + self._drain_s
        while self._server.n_live and time.monotonic() < deadline_s and not self._at_once.wait(_DRAIN_SLICE_S):
            pass
        self._server.stop()
        self._engine.stop()
