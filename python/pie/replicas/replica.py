"""One replica: an engine and its server on loopback."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pie.errors import PieError

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
        self._engine: Engine | None = None
        self._server: Server | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()

    def open(self) -> int:
        """Opens it; returns the port that it serves on. PieError where it cannot be opened."""
        # The engine is large, and not wanted where a replica is only described.
        from pie._engine import init_logging  # noqa: PLC0415
        from pie.engine import Engine  # noqa: PLC0415

        if self._server is None:
            init_logging(self._config.server.log_level)
            _share(self._config.engine.data_dir)
            engine = Engine.from_config(self._config)
            try:
                if not engine.runtimes_are_prepared():
                    engine.prepare_runtimes()
                self._server = engine.serve(self._config)
                engine.start()
            except BaseException:
                # It may be opened again, for which its memory and its devices have to be free.
                self._server = None
                engine.close()
                raise
            self._engine = engine
        return int(self._server.address.rpartition(":")[2])

    def wait(self) -> None:
        """Returns when it was ended."""
        self._ended.wait()

    def end(self, drain_s: float) -> None:
        """Refuses launches, gives what runs so long to end, and ends it. A second call ends it at once."""
        if self._stopping.is_set() or self._server is None or self._engine is None:
            self._ended.set()
            return
        self._stopping.set()
        self._server.begin_drain()
        waited_s = 0.0
        while self._server.n_live and waited_s < drain_s and not self._ended.wait(_DRAIN_SLICE_S):
            waited_s += _DRAIN_SLICE_S
        self._server.stop()
        self._engine.close()
        self._ended.set()


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
