"""An engine in this process: models with their drivers, and the programs that run beside them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pie import _engine
from pie.backends.cpu import CpuOptions, open_driver
from pie.errors import PieError
from pie.models.loader import read_config
from pie.paths import cache_folder
from pie.programs import Component, Language, Source
from pie.runner import drive

if TYPE_CHECKING:
    from pie.backends.base import Driver
    from pie.batch import Batch

Program = Component | Source
Observer = Callable[["Batch", Any], None]

_PACKAGE = Path(__file__).resolve().parent
EMBEDDED_MODEL = _PACKAGE / "pie_tiny"
RUNTIMES = _PACKAGE / "runtimes"

_DUMMY_PAGES = 4096
_SIGNAL_SLICE_S = 0.1


@dataclass(frozen=True)
class ModelOptions:
    """How a model is served. Lengths are in tokens."""

    name: str | None = None
    """What programs load it as; the name of the folder if not given."""
    page_size: int = 16
    """Tokens of a page."""
    kv_bytes: int = 256 << 20
    """Memory for keys and values."""
    max_batch_tokens: int = 512
    """The token budget of a batch."""
    prefill_chunk: int = 512
    """The most tokens of one sequence in a batch."""
    dtype: str | None = None
    """`float32` or `bfloat16`; that of the checkpoint if not given."""
    n_threads: int | None = None
    """Threads of the driver; one a core if not given."""


@dataclass(frozen=True)
class _Served:
    """A model and what drives it; the dummy drives itself."""

    model: _engine.Model
    driver: Driver | None
    observe: Observer | None


class Engine:
    """One engine: a context manager that stops everything at its end. Several may live in one process."""

    def __init__(self, *, cache_dir: Path | None = None, worker_threads: int = 0, limits: Mapping[str, float] | None = None) -> None:
        """`cache_dir` keeps compiled programs (the user's cache folder if not given); `worker_threads` run guests (0: one a core).

        `limits` are the bounds of each process by their names, as in `cpu_s` or `memory_bytes`; the defaults hold for the rest. One
        that is unknown or out of its range is PieError `invalid-config`.
        """
        folder = cache_folder() if cache_dir is None else cache_dir
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            message = f"the cache folder {str(folder)!r} cannot be made ({error.strerror}); set XDG_CACHE_HOME to a folder of yours"
            raise PieError("invalid-config", message) from error
        self._engine = _engine.Engine(
            cache_dir=str(folder),
            runtimes_dir=str(RUNTIMES),
            worker_threads=worker_threads,
            limits=dict(limits or {}),
        )
        self._stopped = threading.Event()
        self._served: list[_Served] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def add_model(
        self,
        folder: Path | None = None,
        *,
        dummy: bool = False,
        driver: Driver | None = None,
        options: ModelOptions | None = None,
        observe: Observer | None = None,
    ) -> _engine.Model:
        """Loads a model from a folder in the Hugging Face format; the embedded one if none is given.

        With `dummy`, the dummy driver answers in the model's place, with its tokenizer; a `driver` of one's own runs in place of the
        `cpu` back end, and is closed with the engine. `observe` sees each batch with its logits.
        Raises PieError `invalid-model` where the folder cannot be served.
        """
        folder = EMBEDDED_MODEL if folder is None else folder
        options = options or ModelOptions()
        config = read_config(folder)
        if driver is None and not dummy:
            cpu = CpuOptions(
                kv_bytes=options.kv_bytes,
                page_size=options.page_size,
                max_batch_tokens=options.max_batch_tokens,
                dtype=options.dtype,
                n_threads=options.n_threads,
            )
            driver = open_driver(folder, cpu)
        try:
            model = self._engine.add_model(
                options.name or folder.resolve().name.replace("_", "-"),
                str(folder),
                vocab_size=config.vocab_size,
                page_size=options.page_size,
                n_pages=_DUMMY_PAGES if driver is None else driver.capabilities.n_pages,
                max_batch_tokens=options.max_batch_tokens,
                prefill_chunk=min(options.prefill_chunk, options.max_batch_tokens),
                max_context=config.max_positions,
            )
        except PieError:
            if driver is not None:
                driver.close()
            raise
        if driver is None:
            model.run_dummy()
        self._served.append(_Served(model, driver, observe))
        return model

    def is_prepared(self, program: Program) -> bool:
        """Whether the program can start without being compiled first."""
        return self._engine.is_prepared(_form(program))

    def prepare(self, program: Program) -> None:
        """Compiles the program, or the runtime of its language, into the cache; seconds the first time."""
        self._engine.prepare(_form(program))

    def launch(
        self,
        program: Program,
        *,
        input: Any = None,  # noqa: A002  # what the entry calls it
        args: Sequence[str] = (),
        seed: int | None = None,
        username: str | None = None,
    ) -> _engine.Process:
        """Launches a program with a JSON value as its input; everything that it does comes as events of the process."""
        text = json.dumps(input, ensure_ascii=False, separators=(",", ":"))
        if isinstance(program, Component):
            return self._engine.launch_component(_component(program), input=text, args=args, seed=seed, username=username)
        files = dict(program.files)
        return self._engine.launch_source(program.language, files, program.entry, input=text, args=args, seed=seed, username=username)

    def start(self) -> None:
        """Drives every model on a thread of its own, until `stop`."""
        for served in self._served:
            self._start(served)

    def drive(self) -> None:
        """Drives until another thread calls `stop`: the first model on this thread, where Ctrl-C arrives, the others beside it."""
        for served in self._served[1:]:
            self._start(served)
        here = self._served[0] if self._served else None
        if here is not None and here.driver is not None:
            drive(here.model, here.driver, observe=here.observe)
        else:
            while not self._stopped.wait(_SIGNAL_SLICE_S):
                pass

    def stop(self) -> None:
        """Ends every process and every driver loop, then waits for the loops that it started."""
        self._stopped.set()
        self._engine.stop()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def close(self) -> None:
        """Stops, and frees what the drivers hold. Called on the thread that drives, or when none does."""
        self.stop()
        for served in self._served:
            if served.driver is not None:
                served.driver.close()
        self._served.clear()

    def _start(self, served: _Served) -> None:
        if served.driver is None:
            return
        arguments = {"model": served.model, "driver": served.driver, "observe": served.observe}
        thread = threading.Thread(target=drive, kwargs=arguments, name=f"pie-driver-{served.model.name}")
        thread.start()
        self._threads.append(thread)


def _form(program: Program) -> bytes | Language:
    """What is compiled for a program: the bytes of a component, or the name of the language whose runtime runs it."""
    return _component(program) if isinstance(program, Component) else program.language


def _component(program: Component) -> bytes:
    try:
        return program.path.read_bytes()
    except OSError as error:
        raise PieError("unknown-program", f"{str(program.path)!r} cannot be read: {error.strerror}") from error
