"""The dummy driver as a driver of Python: for tests, which hand it batches of their own.

An engine runs the same one without Python between (`Model.run_dummy`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import msgspec
import numpy as np

from pie import _engine
from pie.backends.base import (
    AdapterName,
    Answer,
    Capabilities,
    ChangeAdapter,
    Command,
    CopyAdapter,
    CreateAdapter,
    Drawn,
    DriverError,
    DropAdapter,
    ExportPages,
    FailedSequencesError,
    ImportPages,
    LoadAdapter,
)
from pie.backends.moving import Bytes, export_pages, import_pages
from pie.batch import Batch
from pie.errors import PieError

# A script is for tests, and read whole.
_MAX_SCRIPT_BYTES = 1 << 20


def read_script(path: Path) -> list[tuple[str, str]]:
    """The script in a file: pairs of a text that the driver sees and what it says then, as a JSON list of lists.

    Raises PieError `invalid-config` where there is none.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_SCRIPT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PieError("invalid-config", f"the script {str(path)!r} cannot be read: {reason}; check the setting script") from error
    if len(data) > _MAX_SCRIPT_BYTES:
        message = f"the script {str(path)!r} has more than {_MAX_SCRIPT_BYTES} bytes; shorten it"
        raise PieError("invalid-config", message)
    try:
        return msgspec.json.decode(data, type=list[tuple[str, str]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f'the script {str(path)!r} is not a JSON list of pairs, as in [["colour", "It is red."]]: {error}'
        raise PieError("invalid-config", message) from error


def _write_files(adapter: AdapterName, folder: Path) -> None:
    """Writes the files of an adapter that is made: its name alone, as the engine's own does (`model/dummy.rs`)."""
    config = f'{{"peft_type":"LORA","dummy":"{adapter.id:016x}-{adapter.version:08x}"}}'
    try:
        folder.mkdir()
        (folder / "adapter_config.json").write_text(config, encoding="utf-8")
        (folder / "adapter_model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    except OSError as error:
        raise DriverError(f"its files cannot be written ({error})") from None


class DummyDriver:
    """Answers hashes in place of logits; see `pie.backends.base.FollowingDriver`."""

    def __init__(  # noqa: PLR0913 - sizes, and how it works
        self, model: str, *, vocab_size: int, n_pages: int, page_size: int = 16, host_pages: int = 0, follows: bool = False
    ) -> None:
        """Memory for `n_pages` pages of `page_size` tokens, and for `host_pages` on the host.

        With `follows` it feeds what it draws into its next batch. Raises PieError `invalid-argument` where a size is 0.
        """
        sizes = {"vocab_size": vocab_size, "n_pages": n_pages, "page_size": page_size, "host_pages": host_pages}
        self._driver = _engine.DummyDriver(model, {**sizes, "follows": follows})
        self._capabilities = Capabilities(**self._driver.capabilities())
        self._lock = threading.Lock()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves: everything that a batch can ask for."""
        return self._capabilities

    def run(self, batch: Batch) -> Answer:
        """Answers the rows of a batch, float32 [R, V], or where it follows, what it drew from them.

        Raises DriverError where it does not fit, and then nothing has changed; FailedSequencesError where a sequence
        looks at a slot that nobody wrote.
        """
        limit = self._capabilities.max_batch_tokens
        if max(batch.n_tokens, batch.n_rows) > limit:
            raise DriverError(f"{batch.n_tokens} tokens and {batch.n_rows} rows in a batch; the driver takes {limit}")
        with self._lock:
            if self._closed:
                raise DriverError("the driver is closed")
            try:
                row_bytes, token_bytes, failures = self._driver.run(batch.words.data)
            except PieError as error:
                raise DriverError(error.message) from None
        logits = np.frombuffer(row_bytes, np.float32).reshape(-1, self._capabilities.vocab_size)
        answer = logits if token_bytes is None else Drawn(np.frombuffer(token_bytes, np.uint32), logits)
        if failures:
            raise FailedSequencesError(answer, dict(failures))
        return answer

    def command(self, command: Command) -> None:
        """Keeps the names of adapters that are loaded; its batches need none. Moves pages.

        Raises DriverError where one is not loaded, or files cannot be written or read.
        """
        with self._lock:
            if self._closed:
                raise DriverError("the driver is closed")
            try:
                match command:
                    case LoadAdapter(adapter, path):
                        self._driver.load_adapter((adapter.id, adapter.version), path)
                    case CreateAdapter(adapter, path, rank, alpha, sigma):
                        self._driver.create_adapter((adapter.id, adapter.version), path, (rank, alpha, sigma))
                        _write_files(adapter, Path(path))
                    case ChangeAdapter(source, adapter, path):
                        self._driver.change_adapter((source.id, source.version), (adapter.id, adapter.version), path)
                        _write_files(adapter, Path(path))
                    case CopyAdapter(source, copy):
                        self._driver.copy_adapter((source.id, source.version), (copy.id, copy.version))
                    case DropAdapter(adapter):
                        self._driver.drop_adapter((adapter.id, adapter.version))
                    case ExportPages():
                        export_pages(command, self._capabilities, self._export)
                    case ImportPages():
                        import_pages(command, self._capabilities, self._room, self._import)
            except PieError as error:
                raise DriverError(error.message) from None

    def _export(self, page: int) -> Bytes:
        return np.frombuffer(self._driver.export_page(page), np.uint8)

    def _room(self, _page: int) -> Bytes:
        return np.empty(self._capabilities.page_bytes, np.uint8)

    def _import(self, page: int, content: Bytes) -> None:
        self._driver.import_page(page, content.tobytes())

    def launch(self, batch: Batch) -> Callable[[], Answer]:
        """Runs a batch at once, as no device could be busy with it.

        The function that it returns does what `run` would.
        """
        ran: Future[Answer] = Future()
        try:
            ran.set_result(self.run(batch))
        except (DriverError, FailedSequencesError) as error:
            ran.set_exception(error)
        return ran.result

    def close(self) -> None:
        """The driver runs no more; a second call does nothing."""
        with self._lock:
            self._closed = True
