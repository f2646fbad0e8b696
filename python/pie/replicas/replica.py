"""One replica: an engine and its server on loopback."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pie.errors import PieError
from pie.programs import Language, compiling

if TYPE_CHECKING:
    from pie._engine import Server
    from pie.config import Config
    from pie.engine import Engine

_KEYS = "keys.json"
_SCRATCH = "scratch"
_DRAIN_SLICE_S = 0.05


class Replica:
    """An engine that serves until it is told to end; every method may be called from a thread of its own."""

    def __init__(self, config: Config) -> None:
        """`config` is that of the replica; nothing is opened yet."""
        self._config = config
        self._opened: tuple[Engine, Server] | None = None
        self._opening = threading.Lock()
        """Held while it opens."""
        self._state = threading.Lock()
        """Held for a moment, to look at what is below and change it."""
        self._is_ending = False
        self._hurries = threading.Event()
        self._ended = threading.Event()

    def open(self) -> int:
        """Opens it, where it is not; returns the port that it serves on.

        Raises PieError where it cannot be opened, `engine-stopped` where it was told to end, also meanwhile.
        """
        with self._opening:
            if self._opened is None:
                self._keep(*self._open())
            assert self._opened is not None
            return int(self._opened[1].address.rpartition(":")[2])

    def wait(self) -> None:
        """Returns when it has ended."""
        self._ended.wait()

    def end(self, drain_s: float) -> None:
        """Refuses launches, gives what runs so long to end, ends it, and returns when it has ended.

        A call beside another one does not wait for what runs. One that opens ends as soon as it is open, which is not
        waited for: it may take minutes.
        """
        with self._state:
            is_first, self._is_ending = not self._is_ending, True
            opened = self._opened
        if not is_first:
            self._hurries.set()
            self._ended.wait()
            return
        try:
            if opened is not None:
                self._drain(*opened, drain_s)
        finally:
            self._ended.set()

    def _drain(self, engine: Engine, server: Server, drain_s: float) -> None:
        server.begin_drain()
        waited_s = 0.0
        while server.n_live and waited_s < drain_s and not self._hurries.wait(_DRAIN_SLICE_S):
            waited_s += _DRAIN_SLICE_S
        server.stop()
        engine.close()

    def _open(self) -> tuple[Engine, Server]:
        # The engine is large, and not wanted where a replica is only described.
        from pie._engine import init_logging  # noqa: PLC0415
        from pie.engine import Engine  # noqa: PLC0415

        if self._is_ending:
            raise _ending()
        init_logging(self._config.server.log_level, programs=self._config.server.log_programs)
        _share(self._config.engine.data_dir)
        engine = Engine.from_config(self._config)
        try:
            for language in get_args(Language):
                if not engine.is_prepared(language):
                    print(f"{compiling(language)}...", file=sys.stderr, flush=True)
                    engine.prepare(language)
            server = engine.serve(self._config)
            engine.start()
        except BaseException:
            # It may be opened again, for which its memory and its devices have to be free.
            engine.close()
            raise
        return engine, server

    def _keep(self, engine: Engine, server: Server) -> None:
        """Takes what was opened for this replica's, or ends it where nobody would any more."""
        with self._state:
            if not self._is_ending:
                self._opened = engine, server
                return
        server.stop()
        engine.close()
        raise _ending()


def _ending() -> PieError:
    return PieError("engine-stopped", "the replica was told to end")


def _share(folder: Path) -> None:
    """Lets a replica, whose folder is DATA/replicas/N, see the keys and the files of DATA as they change."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder.parent.parent / _SCRATCH).mkdir(mode=0o700, exist_ok=True)
        for name in (_KEYS, _SCRATCH):
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(Path("..") / ".." / name)
    except OSError as error:
        message = (
            f"the folder {str(folder)!r} of a replica cannot be made ({error.strerror or error}); set engine.data_dir to a folder of yours"
        )
        raise PieError("invalid-config", message) from error
