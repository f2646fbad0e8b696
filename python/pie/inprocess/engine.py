"""`pie.Engine` and `pie.run`: programs run in an engine of this process, without the command line or a server."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypedDict, Unpack, cast

from pie import checks
from pie.config import Flags, load
from pie.config.settings import settings as known_settings
from pie.config.suggest import nearest, shortened, unknown
from pie.engine import Engine as _Engine
from pie.errors import PieError
from pie.inprocess.following import Message, OnEvent, followed, followed_async
from pie.inprocess.process import Process
from pie.inprocess.programs import Program, opened

if TYPE_CHECKING:
    from pie.stats import ModelStats

Model: TypeAlias = str | PathLike[str]
"""The name of a configured model, or a folder in the Hugging Face format."""

_SECTIONS = ("engine", "limits", "runtime", "snapshots")
"""The sections of the configuration that concern an engine without a server."""


class LaunchOptions(TypedDict, total=False):
    """How a program is launched; each may be left out."""

    args: Sequence[str]
    """The arguments that it reads unparsed."""
    seed: int | None
    """The launch seed, 0 to 2^64 - 1: the same one repeats the run. Random if not given."""
    token_budget: int | None
    """The most tokens that may enter its contexts."""
    credits: float | None
    """What it begins with in each model, to bid for pages where those are short; as configured if not given."""
    limits: Mapping[str, float | None] | None
    """Lowers limits of the engine by their names, as in `{"cpu_s": 10}`."""
    programs: Mapping[str, Program] | None
    """Programs that it can start as children, by the names that it calls them by."""
    username: str | None
    """Whose process it is: its snapshots, files and topics are that user's. `anonymous` if not given."""


class EngineOptions(TypedDict, total=False):
    """How an engine of a run's own is opened, by the arguments of `Engine`; each may be left out."""

    model: Model | Sequence[Model] | None
    """The name of a configured model or a folder, or a list of those, of which the first is the default."""
    dummy: bool
    """Has the dummy driver answer in the place of models."""
    config: str | PathLike[str] | None
    """The file of the configuration; `~/.pie/config.toml` if not given."""
    settings: Mapping[str, object] | None
    """Values that go before it, by names as in `{"limits.cpu_s": 10}`."""


class RunOptions(EngineOptions, LaunchOptions, total=False):
    """How an engine is opened for one program, and how that is launched; each may be left out."""


class Engine:
    """An engine in this process. Several programs run in it at once, and share its models and what was computed.

    It is a context manager that ends every program and frees the models at its end; `close` does the same. Several
    engines may live in one process. Everything may be called from any thread, also where a loop of asyncio runs, as in
    a notebook.
    """

    def __init__(
        self,
        model: Model | Sequence[Model] | None = None,
        *,
        dummy: bool = False,
        config: str | PathLike[str] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Opens an engine with its models, as `pie run` does.

        `model` is the name of a configured model or a folder, or a list of those, of which the first is the default;
        without it those of the configuration are served, which is `pie-tiny` where there is none. With `dummy` the
        dummy driver answers in their place. The configuration is that of the file `config` (the user's own one if not
        given) and of the environment. `settings` go before both: values by names as in `{"limits.cpu_s": 10}`.

        Raises PieError `invalid-config` and `invalid-model`.
        """
        flags = Flags(
            file=None if config is None else Path(config),
            models=_models(model),
            models_given_by="model",
            dummy=dummy,
            values=_checked(settings or {}),
            values_given_by="settings",
        )
        self._drive(_Engine.from_config(load(flags)))

    @classmethod
    def of(cls, engine: _Engine) -> Self:
        """Takes an engine that has its models and that nobody drives; it is closed with this one."""
        made = cls.__new__(cls)
        made._drive(engine)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends every program with the error `engine-stopped`, and frees the models. A second call does nothing."""
        self._close()

    @property
    def models(self) -> list[str]:
        """The names of its models; the first is the default."""
        return [model.name for model in self._engine.models]

    def stats(self) -> dict[str, ModelStats]:
        """What the engine counts of each model, by its name."""
        return {model.name: model.stats() for model in self._engine.models}

    def prepare(self, program: Program) -> None:
        """Builds and compiles a program, or the runtime of its language, ahead of its first launch."""
        self._engine.prepare(opened(program))

    def launch(self, program: Program, input: Any = None, **options: Unpack[LaunchOptions]) -> Process:  # noqa: A002
        """Launches a program and returns its process: events, messages to it, its value, and `cancel`.

        `program` is a path, the bytes of a built program, or `pie.source(text)`; `input` is any JSON value. Raises
        PieError: what is wrong with the program's files, `invalid-argument`, `limit-processes`, `engine-stopped`. What
        is wrong with the program itself is its last event.
        """
        _check_names("launch", options, LaunchOptions.__optional_keys__ | {"input"})
        return self._launch(opened(program), input, **options)

    def run(
        self,
        program: Program,
        input: Any = None,  # noqa: A002  # what the entry calls it
        *,
        messages: Iterable[Message] = (),
        on_event: OnEvent | None = None,
        **options: Unpack[LaunchOptions],
    ) -> Any:
        """Runs a program to its end and returns what it returned.

        What it writes meanwhile goes to `sys.stdout` and `sys.stderr`, or with `on_event` to that function, event by
        event. The program receives `messages`, then the end of the session. Ctrl-C, or an exception of `on_event`, ends
        the program.

        Raises PieError with the code of the program's error, whose `details` hold its `kind`, `message` and
        `traceback`; and as `launch`.
        """
        _check_run(options, LaunchOptions.__optional_keys__, on_event)
        return followed(self.launch(program, input, **options), messages, on_event)

    async def run_async(
        self,
        program: Program,
        input: Any = None,  # noqa: A002
        *,
        messages: Iterable[Message] = (),
        on_event: OnEvent | None = None,
        **options: Unpack[LaunchOptions],
    ) -> Any:
        """As `run`, and other tasks run meanwhile. To cancel the task ends the program."""
        _check_run(options, LaunchOptions.__optional_keys__, on_event)
        process = await asyncio.to_thread(lambda: self.launch(program, input, **options))
        return await followed_async(process, messages, on_event)

    def _drive(self, engine: _Engine) -> None:
        self._engine = engine
        # Who forgets to close it gets it closed with the last reference, or where the interpreter ends: threads that
        # it waits for would keep it from ending.
        self._close = weakref.finalize(self, _close, engine)
        engine.start(daemon=True)

    def _launch(  # noqa: PLR0913
        self,
        program: Any,
        input: Any,  # noqa: A002
        *,
        args: Sequence[str] = (),
        seed: int | None = None,
        token_budget: int | None = None,
        credits: float | None = None,  # noqa: A002
        limits: Mapping[str, float | None] | None = None,
        programs: Mapping[str, Program] | None = None,
        username: str | None = None,
        alone: bool = False,
    ) -> Process:
        if not self._close.alive:
            raise PieError("engine-stopped", "this engine is closed; open another one: with pie.Engine() as engine")
        if programs is not None and not isinstance(programs, Mapping):
            raise checks.refused("programs", programs, "a dict of programs by the names that it calls them by")
        raw = self._engine.launch(
            program,
            input=checks.json_value("input", input),
            args=checks.texts("args", args),
            seed=None if seed is None else checks.whole("seed", seed),
            username=None if username is None else checks.text("username", username),
            token_budget=None if token_budget is None else checks.whole("token_budget", token_budget),
            credits=None if credits is None else checks.amount("credits", credits),
            limits=None if limits is None else _known_limits(checks.limits("limits", limits)),
            programs={checks.text("a name in programs", name): opened(one) for name, one in (programs or {}).items()},
            alone=alone,
        )
        return Process(raw, self)


def run(
    program: Program,
    input: Any = None,  # noqa: A002
    *,
    messages: Iterable[Message] = (),
    on_event: OnEvent | None = None,
    **options: Unpack[RunOptions],
) -> Any:
    """Runs a program in an engine of its own, to its end, and returns what it returned, as `pie run` does.

    The model is loaded for it and freed after it: whoever runs several programs opens an `Engine`, whose arguments
    `model`, `dummy`, `config` and `settings` are. The rest is as in `Engine.run`.
    """
    made = opened(program)
    checks.json_value("input", input)
    opening, launch = _apart(options, on_event)
    with Engine(**opening) as engine:
        return followed(engine._launch(made, input, **launch, alone=True), messages, on_event)


async def run_async(
    program: Program,
    input: Any = None,  # noqa: A002
    *,
    messages: Iterable[Message] = (),
    on_event: OnEvent | None = None,
    **options: Unpack[RunOptions],
) -> Any:
    """As `run`, and other tasks run meanwhile, also while the model loads. To cancel the task ends the program."""
    made = await asyncio.to_thread(opened, program)
    checks.json_value("input", input)
    opening, launch = _apart(options, on_event)
    engine = await asyncio.to_thread(lambda: Engine(**opening))
    try:
        return await followed_async(engine._launch(made, input, **launch, alone=True), messages, on_event)
    finally:
        await asyncio.to_thread(engine.close)  # it waits for threads, and other tasks run meanwhile


def _apart(options: RunOptions, on_event: OnEvent | None) -> tuple[EngineOptions, LaunchOptions]:
    """What opens the engine, and what launches the program; TypeError for what does neither."""
    _check_run(options, EngineOptions.__optional_keys__ | LaunchOptions.__optional_keys__, on_event)
    opening = {name: value for name, value in options.items() if name in EngineOptions.__optional_keys__}
    launch = {name: value for name, value in options.items() if name not in opening}
    return cast(EngineOptions, opening), cast(LaunchOptions, launch)


def _check_run(options: Mapping[str, object], known: Collection[str], on_event: object) -> None:
    """TypeError for an option of a run that there is not, PieError for what is not a function in the place of one."""
    _check_names("run", options, {*known, "input", "messages", "on_event"})
    checks.function("on_event", on_event, "an event")


def _check_names(callee: str, options: Mapping[str, object], known: Collection[str]) -> None:
    """TypeError for an option that there is not, with the nearest one."""
    for name in options:
        if name not in known:
            near = nearest(name, known)
            others = f"its options are {', '.join(sorted(known))}; what a program gets is its input: {callee}(program, {{{name!r}: ...}})"
            raise TypeError(f"{callee}() has no option {name!r}; " + (others if near is None else f"did you mean {near!r}?"))


def _known_limits(limits: dict[str, float | None]) -> dict[str, float | None]:
    """Limits that there are; PieError `invalid-argument` for another name, with the nearest one."""
    known = known_settings()["limits"]
    for name in limits:
        if name not in known:
            near = nearest(name, known)
            remedy = f"there are {', '.join(known)}" if near is None else f"did you mean {near!r}?"
            raise PieError("invalid-argument", f"limits: there is no limit {shortened(name)!r}; {remedy}")
    return limits


def _close(engine: _Engine) -> None:
    """Closes an engine; elsewhere, where the collector of garbage runs this on a thread that the engine waits for."""
    if engine.is_driven_here:
        threading.Thread(target=engine.close, name="pie-close", daemon=True).start()
    else:
        engine.close()


def _models(model: Model | Sequence[Model] | None) -> tuple[str, ...]:
    """The models as the configuration takes them."""
    if model is None:
        return ()
    given: Sequence[Model] = [model] if isinstance(model, str | PathLike) else model
    expected = "the name of a configured model, a folder, or a list of those"
    if not isinstance(given, Sequence):
        raise checks.refused("model", given, expected)
    for one in given:
        if not isinstance(one, str | PathLike):
            raise checks.refused("model", one, expected)
    return tuple(os.fspath(one) for one in given)


def _checked(settings: Mapping[str, object]) -> Mapping[str, object]:
    """Settings whose names there are; PieError `invalid-config` for others."""
    known = [f"{section}.{name}" for section in _SECTIONS for name in known_settings()[section]]
    for name in settings:
        if name not in known:
            raise unknown(str(name), known, "settings", what="setting")
    return settings
