"""An engine in this process: models with their drivers, and the programs that run beside them."""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, get_args

from msgspec.structs import replace

from pie import _engine
from pie.backends import check_own, open_driver
from pie.backends.base import Capabilities, DriverLostError, DriverOptions, FollowingDriver
from pie.backends.dummy import DummyDriver, read_script
from pie.compiler import COMMAND
from pie.config import DEFAULT, Config, EngineConfig, McpServerConfig, ModelConfig, RuntimeConfig, SnapshotConfig, folder_name
from pie.config.environment import own_variables, with_libraries
from pie.config.settings import of_engine, settings
from pie.errors import PieError
from pie.isolation.driver import IsolatedDriver
from pie.isolation.supervisor import supervise
from pie.launch import Content, Launch
from pie.memory import check_memory, users_bytes
from pie.models.loader import read_config
from pie.programs import RUNTIMES, Component, Language, Source
from pie.runner import drive
from pie.stats import MessageStats

if TYPE_CHECKING:
    from pie.backends.base import Driver
    from pie.batch import Batch
    from pie.models.spec import DecoderSpec

Program = Component | Source
Observer = Callable[["Batch", Any], None]

LOOPBACK = "127.0.0.1"
"""Where `Engine.serve_program` serves."""

_NOBODY = "anonymous"
"""Whose processes those are that answer anybody, where no user is named."""
_DUMMY_PAGES = 4096
_DUMMY_EMBEDDINGS = 8
_DUMMY_TOKEN_BYTES = 24
"""Bytes of memory that the dummy driver takes for a token."""
_DUMMY_SLOT_BYTES = 16
"""Bytes of a token in a page that the dummy driver gives away."""
_MAX_HOST_PAGES = 1 << 24
_SIGNAL_SLICE_S = 0.1


@dataclass(frozen=True)
class _Served:
    """A model and what drives it; the dummy drives itself."""

    model: _engine.Model
    driver: Driver | None
    observe: Observer | None
    restarts_per_minute: int = 0
    """Of a driver that has a process of its own."""

    def drive(self) -> None:
        """Runs its batches until the engine stops."""
        _engine.take_short_turns()
        if isinstance(self.driver, IsolatedDriver):
            supervise(self.model, self.driver, restarts_per_minute=self.restarts_per_minute, observe=self.observe)
        elif self.driver is not None:
            try:
                drive(self.model, self.driver, observe=self.observe)
            except DriverLostError as lost:
                # In this process nothing brings it back; whoever watches the process starts another one.
                self.model.set_state("failed", f"its driver was lost: {lost}", "")
                raise PieError("driver-lost", f"the driver of {self.model.name} was lost: {lost}; start the engine again") from lost

    def drive_beside(self) -> None:
        """The same on a thread of its own: what ends it is told on stderr, and the other models go on."""
        try:
            self.drive()
        except PieError as error:
            print(f"error[{error.code}]: {error.message}", file=sys.stderr, flush=True)


class Engine:
    """One engine: a context manager that stops everything at its end. Several may live in one process."""

    def __init__(  # noqa: PLR0913  # the sections of a configuration
        self,
        config: EngineConfig | None = None,
        *,
        limits: Mapping[str, float | None] | None = None,
        runtime: RuntimeConfig | None = None,
        snapshots: SnapshotConfig | None = None,
        models: Sequence[ModelConfig] = (),
        mcp: Mapping[str, McpServerConfig] | None = None,
    ) -> None:
        """Opens an engine, without models.

        `limits` are the bounds of each process by their names, as in `cpu_s` or `memory_bytes`; the defaults hold for
        the rest.

        `runtime` is what programs find around them, as their files; `snapshots` is how snapshots are kept.

        `mcp` are the servers of MCP that programs find, by name.

        `models` are those that will be added, as far as they are known: what they take of the machine's memory is not
        for programs. One that is unknown or out of its range is PieError `invalid-config`, and so is a cache folder
        that cannot be made.
        """
        config = config or EngineConfig()
        try:
            config.cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            message = f"the cache folder {str(config.cache_dir)!r} cannot be made ({reason}); set engine.cache_dir to a folder of yours"
            raise PieError("invalid-config", message) from error
        self._engine = _engine.Engine(
            cache_dir=str(config.cache_dir),
            data_dir=str(config.data_dir),
            runtimes_dir=str(RUNTIMES),
            compiler=with_libraries(COMMAND),
            settings=of_engine("engine", replace(config, memory_bytes=users_bytes(models, config.memory_bytes))),
            limits=limits,
            runtime=of_engine("runtime", runtime or RuntimeConfig()),
            snapshots=of_engine("snapshots", snapshots or SnapshotConfig()),
            mcp={name: of_engine("mcp", server) for name, server in (mcp or {}).items()},
            mcp_withheld=own_variables(),
        )
        self._driver_timeout_s = config.driver_timeout_s
        self._driver_open_timeout_s = config.driver_open_timeout_s
        self._stopped = threading.Event()
        self._served: list[_Served] = []
        self._threads: list[threading.Thread] = []

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """An engine with every model of the configuration, the first of them the default.

        Raises PieError `invalid-config` where the models do not fit into the memory of this machine or a driver refuses
        a setting, and that of `add_model` with the name of the model before the message.
        """
        check_memory(config.models)
        engine = cls(
            config.engine,
            limits=config.limits,
            runtime=config.runtime,
            snapshots=config.snapshots,
            models=config.models,
            mcp=config.mcp,
        )
        try:
            for model in config.models:
                try:
                    engine.add_model(options=model)
                except PieError as error:
                    raise _of_model(config, model, error) from error
        except BaseException:
            engine.close()
            raise
        return engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def add_model(  # noqa: PLR0913  # what a model is opened with
        self,
        folder: Path | None = None,
        *,
        dummy: bool = False,
        driver: Driver | None = None,
        options: ModelConfig | None = None,
        observe: Observer | None = None,
        replies: Mapping[str, str] | None = None,
    ) -> _engine.Model:
        """Loads a model from a folder in the Hugging Face format.

        Without a folder it loads that of `options`, which is the embedded model by default.

        With `dummy`, or that driver in `options`, the dummy driver answers in the model's place, with its tokenizer; a
        `driver` of one's own runs in place of the configured one, with the sizes that it declares, and is closed with
        the engine. `observe` sees each batch with its logits. Where the text that the model sees holds a key of
        `replies`, the dummy driver of this process says its value. Raises PieError `invalid-model` where the folder
        cannot be served, `invalid-config` where the driver is of another vocabulary or lacks what it declares, and
        `invalid-argument` for replies that cannot be given.
        """
        options = options or ModelConfig()
        folder = options.folder if folder is None else folder
        spec = read_config(folder)
        is_scripted = driver is None and (dummy or options.driver == "dummy") and not options.isolate
        script = _script(options, is_scripted=is_scripted)
        if driver is None:
            driver = self._open_driver(folder, "dummy" if dummy else options.driver, options, spec)
        if replies and driver is not None:
            driver.close()
            remedy = "leave them out, or choose driver dummy and isolate = false"
            raise PieError("invalid-argument", f"replies are given by the dummy driver of this process alone; {remedy}")
        serves = _dummy_capabilities(spec, options) if driver is None else driver.capabilities
        try:
            _check_vocabulary(serves, spec, folder)
            _check_launch(serves, driver)
            model = self._engine.add_model(
                options.name or folder_name(folder),
                str(folder),
                of_engine("model", options),
                vars(dataclasses.replace(serves, max_positions=min(spec.max_positions, serves.max_positions))),
                is_isolated=isinstance(driver, IsolatedDriver),
            )
        except PieError:
            if driver is not None:
                driver.close()
            raise
        if driver is None:
            model.run_dummy([*(replies or {}).items(), *script])
        self._served.append(_Served(model, driver, observe, options.restarts_per_minute))
        return model

    def memory(self) -> dict[str, dict[str, int]]:
        """The bytes that users make the engine hold, by user and by what they are held for; see `memory_bytes`."""
        return self._engine.memory()

    def messages(self) -> MessageStats:
        """What programs sent to each other so far, and what waits."""
        return self._engine.messages()

    def _open_driver(self, folder: Path, name: str, options: ModelConfig, spec: DecoderSpec) -> Driver | None:
        """The driver of that name; none for the dummy driver of the engine itself."""
        own = _own_options(options)
        if name == "dummy":
            if options.driver == "dummy":
                check_own(name, own)
            opening: Callable[[], Driver] = _dummy_opening(options.name or folder_name(folder), spec, options)
        else:
            opening = partial(open_driver, name, folder, _driver_options(options), own)
        if options.isolate:
            if sys.platform != "linux":
                raise PieError("invalid-config", f"isolate = true needs Linux, and this is {sys.platform}; set it to false")
            return IsolatedDriver(opening, spec.vocab_size, timeout_s=self._driver_timeout_s, opening_timeout_s=self._driver_open_timeout_s)
        return None if name == "dummy" else opening()

    @property
    def models(self) -> list[_engine.Model]:
        """The models in the order in which they were added; the first is the default."""
        return [served.model for served in self._served]

    def is_prepared(self, program: Program | Language) -> bool:
        """Whether the program, or the runtime of a language, can start without being compiled first."""
        return self._engine.is_prepared(_form(program))

    def prepare(self, program: Program | Language) -> None:
        """Compiles the program, or the runtime of its language, into the cache.

        The first time a runtime takes about half a minute, a program seconds.
        """
        self._engine.prepare(_form(program))

    def check(self, source: Source) -> None:
        """Looks at sources without running any of them, and waits for that.

        The entry and what it surely imports have to be there and to compile. Raises PieError `invalid-program`, with
        file, line and column, and what else `_engine.Engine.check` raises.
        """
        self._engine.check(_engine.pack_program(source.language, dict(source.files), source.entry, source.manifest))

    def prepare_runtimes(self) -> None:
        """Loads the runtimes of all languages; the first time each is compiled, which takes about half a minute."""
        for language in get_args(Language):
            self._engine.prepare(language)

    def lacks_of_workers(self) -> list[str]:
        """What the processes that read programs are able to do and should not be.

        They are able to where this system lacks the means to stop them. It is known once one of them has run.
        """
        return self._engine.lacks_of_workers()

    def serve(self, config: Config) -> _engine.Server:
        """Opens the address of the configuration to clients, until `Server.stop`.

        Clients are answered while the engine is driven.

        Raises PieError `port-in-use` where the port cannot be had, `invalid-config` where the address or the data
        folder cannot be used.
        """
        return self._engine.serve(str(config.engine.data_dir), of_engine("server", config.server))

    def serve_program(  # noqa: PLR0913  # keywords of one launch, and of where it is served
        self,
        program: Program,
        config: Config,
        *,
        label: str,
        port: int,
        data_dir: Path,
        shared: bool = False,
        input: Any = None,  # noqa: A002  # what the entry calls it
        args: Sequence[str] = (),
        seed: int | None = None,
        username: str | None = None,
        token_budget: int | None = None,
        credits: float | None = None,  # noqa: A002  # what all clients call it
        programs: Mapping[str, Program] | None = None,
    ) -> _engine.Server:
        """Answers requests by HTTP on this machine by one program, until `Server.stop`; port 0 picks a free one.

        Each request gets an instance of its own, or with `shared` one instance answers all of them. They are launched
        with the given keywords, as those of `launch`, and listed as `label`. The bounds are those of `config.server`;
        whoever reaches the port may ask. `data_dir` is a folder that no other server uses. Raises PieError as `serve`.
        """
        settings = replace(config.server, host=LOOPBACK, port=port, auth="off", trusted_proxies=(), operators=())
        text = _as_json(input)
        named = {name: (_content(named), named.manifest) for name, named in (programs or {}).items()}
        user = _NOBODY if username is None else username
        launch = Launch(text, args, seed, user, program.manifest, token_budget, None, named, credits=credits)
        return self._engine.serve_program(
            _content(program), launch, label=label, data_dir=str(data_dir), shared=shared, settings=of_engine("server", settings)
        )

    def launch(  # noqa: PLR0913  # keywords of one launch
        self,
        program: Program,
        *,
        input: Any = None,  # noqa: A002  # what the entry calls it
        args: Sequence[str] = (),
        seed: int | None = None,
        username: str | None = None,
        token_budget: int | None = None,
        credits: float | None = None,  # noqa: A002  # what all clients call it
        limits: Mapping[str, float | None] | None = None,
        programs: Mapping[str, Program] | None = None,
        alone: bool = False,
    ) -> _engine.Process:
        """Launches a program with a JSON value as its input; everything that it does comes as events of the process.

        At most `token_budget` tokens enter its contexts, it begins with `credits` in each model, and `limits` lowers
        those of the engine for it. It can start `programs` as children, by their names. `alone` says that nothing else
        will be launched while it lives, so that the engine can tell when nothing could wake it and its children: then
        one of them ends with the error `deadlock`.
        """
        text = _as_json(input)
        named = {name: (_content(named), named.manifest) for name, named in (programs or {}).items()}
        launch = Launch(text, args, seed, username, program.manifest, token_budget, limits, named, alone, credits)
        return self._engine.launch(_content(program), launch)

    def start(self, *, daemon: bool = False) -> None:
        """Drives every model on a thread of its own, until `stop`. The interpreter does not wait for `daemon` ones."""
        for served in self._served:
            self._start(served, daemon=daemon)

    def drive(self) -> None:
        """Drives until another thread calls `stop`.

        The first model is driven on this thread, where Ctrl-C arrives, and the others beside it.
        """
        for served in self._served[1:]:
            self._start(served)
        here = self._served[0] if self._served else None
        if here is not None and here.driver is not None:
            here.drive()
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

    @property
    def is_driven_here(self) -> bool:
        """Whether this thread is one that `start` has begun, so that `close` would wait for itself."""
        return threading.current_thread() in self._threads

    def _start(self, served: _Served, *, daemon: bool = False) -> None:
        if served.driver is None:
            return
        thread = threading.Thread(target=served.drive_beside, name=f"pie-driver-{served.model.name}", daemon=daemon)
        thread.start()
        self._threads.append(thread)


def _as_json(value: Any) -> str:
    """The input of a program; PieError `invalid-argument` for what JSON does not hold."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise PieError("invalid-argument", f"the input cannot be written as JSON: {error}; give a JSON value") from error


def _of_model(config: Config, model: ModelConfig, error: PieError) -> PieError:
    """The error of a model, with the setting to change and where that was set.

    An error that is about no setting names the path of the model.
    """
    if option := error.details.get("option"):
        key = f"model.{model.name}.{option}"
        origin = config.origins.get(key, DEFAULT)
        details = {"key": key, "origin": str(origin)}
        return PieError("invalid-config", f"{origin.where or origin}: {key} is not possible: {error.message}", details)
    path = config.origins.get(f"model.{model.name}.path", model.path)
    return PieError(error.code, f"model {model.name!r} ({path}): {error.message}", error.details)


def _dummy_capabilities(spec: DecoderSpec, options: ModelConfig) -> Capabilities:
    """What the dummy driver that an engine runs by itself serves."""
    n_pages = options.n_pages or _DUMMY_PAGES
    host_pages = options.swap_bytes // (options.page_size * _DUMMY_TOKEN_BYTES) if options.swap_bytes else n_pages
    return Capabilities(
        backend="dummy",
        vocab_size=spec.vocab_size,
        max_positions=spec.max_positions,
        page_size=options.page_size,
        n_pages=n_pages,
        max_batch_tokens=options.max_batch_tokens,
        host_pages=min(host_pages, _MAX_HOST_PAGES),
        masks=True,
        positions=True,
        adapters=True,
        media=True,
        embeddings=min(_DUMMY_EMBEDDINGS, spec.vocab_size),
        page_bytes=options.page_size * _DUMMY_SLOT_BYTES,
        pages_made_by="dummy-1",
    )


def _dummy_opening(name: str, spec: DecoderSpec, options: ModelConfig) -> Callable[[], Driver]:
    """Opens the dummy driver with the rows and the sizes that the one of the engine itself has."""
    limits = _dummy_capabilities(spec, options)
    return partial(
        DummyDriver,
        name,
        vocab_size=limits.vocab_size,
        n_pages=limits.n_pages,
        page_size=limits.page_size,
        host_pages=limits.host_pages,
    )


def _check_vocabulary(limits: Capabilities, spec: DecoderSpec, folder: Path) -> None:
    if limits.vocab_size != spec.vocab_size:
        message = (
            f"the driver {limits.backend} answers rows of {limits.vocab_size} logits, and the vocabulary of {folder} has "
            f"{spec.vocab_size}; open the driver for that model"
        )
        raise PieError("invalid-config", message, {"driver": limits.vocab_size, "model": spec.vocab_size})


def _check_launch(limits: Capabilities, driver: Driver | None) -> None:
    if limits.follows and not isinstance(driver, FollowingDriver):
        message = f"the driver {limits.backend} declares that it follows and has no method launch; give it one, or declare follows=False"
        raise PieError("invalid-config", message)


def _driver_options(options: ModelConfig) -> DriverOptions:
    return DriverOptions(
        page_size=options.page_size,
        n_pages=options.n_pages or None,
        kv_bytes=options.kv_bytes,
        swap_bytes=options.swap_bytes or None,
        max_batch_tokens=options.max_batch_tokens,
        adapter_bytes=options.adapter_bytes,
        dtype=None if options.dtype == "auto" else options.dtype,
    )


def _own_options(options: ModelConfig) -> dict[str, Any]:
    """What is set of the options that belong to a back end."""
    rows = settings()["model"].values()
    return {row.name: getattr(options, row.name) for row in rows if row.driver and getattr(options, row.name) != row.default}


def _script(options: ModelConfig, *, is_scripted: bool) -> list[tuple[str, str]]:
    """What the dummy driver of the engine itself says: pairs of a text that it sees and a reply."""
    if not options.script:
        return []
    if not is_scripted:
        message = f"script = {options.script!r} is what the driver dummy says, in the process of the engine"
        raise PieError("invalid-config", f'{message}; set driver = "dummy" and isolate = false, or leave script out')
    return read_script(Path(options.script))


def _content(program: Program) -> Content:
    """What is launched."""
    return program.read() if isinstance(program, Component) else (program.language, dict(program.files), program.entry)


def _form(program: Program | Language) -> bytes | Language:
    """What is compiled for a program: the bytes of a component, or the name of the language whose runtime runs it."""
    if isinstance(program, Component):
        return program.read()
    return program.language if isinstance(program, Source) else program
