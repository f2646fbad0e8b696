"""The driver loop: pulls batches and commands from a model, has its driver run them and hands the answers back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pie import _engine
from pie.backends.base import (
    AdapterName,
    Answer,
    ChangeAdapter,
    Command,
    CommandedDriver,
    CopyAdapter,
    CreateAdapter,
    Drawn,
    DriverError,
    DriverLostError,
    DropAdapter,
    ExportPages,
    FailedSequencesError,
    FollowingDriver,
    ImportPages,
    LoadAdapter,
    RefusedAdapterError,
    UnsupportedError,
)
from pie.batch import Batch

if TYPE_CHECKING:
    from pie.backends.base import Driver

# Ctrl-C and the end of the loop are noticed after this long at most; a batch that is ready is never waited for.
_SLICE_S = 0.1


_Launch: TypeAlias = "Callable[[Batch], Callable[[], Answer]]"
_Recipe: TypeAlias = tuple[int, float, float | None, list[tuple[int, float]]]


class _Launched(NamedTuple):
    raw: _engine.Batch
    batch: Batch
    answer: Callable[[], Answer]
    """Waits for what the driver answers, or raises what it did."""


def drive(
    model: _engine.Model,
    driver: Driver,
    *,
    observe: Callable[[Batch, object], None] | None = None,
    idle: Callable[[], None] | None = None,
) -> None:
    """Runs the batches of `model` until the engine stops.

    Whatever a driver raises fails the requests of its batch, each with an error of its own, and the loop goes on: one
    bad batch never ends the service. A sequence that the driver names fails alone. `observe` gets each batch with what
    was answered (the logits, float32 [R, V], or what was drawn) before it is handed back. Commands are carried out in
    order with batches. A driver that follows is given the next batch before it has answered one. `idle` is called now
    and then while there is nothing to run.

    Raises DriverLostError where the driver is lost, with which the requests of its batches have failed.
    """
    follows = driver.capabilities.follows
    launch: _Launch = driver.launch if isinstance(driver, FollowingDriver) and follows else partial(_later, driver)
    depth = 1 + follows
    launched: deque[_Launched] = deque()
    try:
        while not model.stopped:
            raw = model.next_work(0.0 if launched else _SLICE_S) if len(launched) < depth else None
            if isinstance(raw, _engine.Command):
                # Nothing runs beside it.
                _carry_out(model, driver, raw)
                continue
            if raw is not None:
                try:
                    batch = Batch.from_buffer(raw)
                    launched.append(_Launched(raw, batch, launch(batch)))
                except BaseException as error:  # whatever a driver raises
                    _fail(model, raw, error)
                else:
                    if len(launched) < depth:
                        continue
            if launched:
                _finish(model, launched.popleft(), observe)
            elif raw is None and idle is not None:
                idle()
    except DriverLostError as lost:
        # Before the batches are let go, which would fail them otherwise.
        model.lose_device(str(lost))
        launched.clear()
        raise
    finally:
        # What a device works on is not given back before it has done with it.
        for begun in launched if follows else ():
            with suppress(Exception):
                begun.answer()


def _carry_out(model: _engine.Model, driver: Driver, raw: _engine.Command) -> None:
    """Has the driver carry out a command, and hands back what came of it."""
    try:
        if not isinstance(driver, CommandedDriver):
            raise UnsupportedError(f"there are no adapters on this driver, {driver.capabilities.backend}")
        driver.command(as_command(*raw.what, raw.recipe, raw.pages))
    except UnsupportedError as error:
        model.fail_command(raw, str(error), code="unsupported")
    except RefusedAdapterError as error:
        model.fail_command(raw, str(error), code=error.code)
    except (KeyboardInterrupt, DriverLostError):
        raise
    except BaseException as error:  # whatever a driver raises
        model.fail_command(raw, str(error) if isinstance(error, DriverError) else f"{type(error).__name__}: {error}")
    else:
        model.complete_command(raw)


def as_command(
    kind: str,
    adapters: Sequence[tuple[int, int]],
    path: str,
    recipe: _Recipe | None = None,
    pages: Sequence[tuple[int, int]] = (),
) -> Command:
    """A command of the engine: its kind, the adapters that it names, its path, how an adapter is made, its pages."""
    rank, alpha, sigma, changes = recipe or (0, 0.0, None, [])
    names = [AdapterName(*name) for name in adapters]
    match kind:
        case "load-adapter":
            return LoadAdapter(names[0], path)
        case "create-adapter" if sigma is not None:
            return CreateAdapter(names[0], path, rank, alpha, sigma)
        case "change-adapter":
            return ChangeAdapter(names[0], names[1], path, sigma, tuple(changes))
        case "copy-adapter":
            return CopyAdapter(names[0], names[1])
        case "drop-adapter":
            return DropAdapter(names[0])
        case "export-pages":
            return ExportPages(tuple(pages), path)
        case "import-pages":
            return ImportPages(tuple(pages), path)
    raise DriverError(f"{kind!r} is a command that this driver loop does not know")


def _later(driver: Driver, batch: Batch) -> Callable[[], Answer]:
    """Runs the batch when its answer is wanted."""
    return partial(driver.run, batch)


def _finish(model: _engine.Model, launched: _Launched, observe: Callable[[Batch, object], None] | None) -> None:
    """Waits for a batch and hands back what was answered."""
    raw, batch, answer = launched
    failures: list[tuple[int, str]] = []
    try:
        try:
            answered = answer()
        except FailedSequencesError as failed:
            answered, failures = failed.answer, list(failed.reasons.items())
        if observe is not None:
            observe(batch, answered)
        if isinstance(answered, Drawn):
            model.complete_drawn(raw, answered.tokens.data, answered.logits.data, failures)
        else:
            model.complete(raw, answered.data, failures)
    except BaseException as error:  # whatever a driver raises
        _fail(model, raw, error)


def _fail(model: _engine.Model, raw: _engine.Batch, error: BaseException) -> None:
    """Fails a batch with what was raised.

    A driver is code of others: nothing that it does ends the loop, even sys.exit; Ctrl-C does, and the loss of the
    driver.
    """
    if isinstance(error, KeyboardInterrupt | DriverLostError):
        raise error
    model.fail(raw, str(error) if isinstance(error, DriverError) else f"{type(error).__name__}: {error}")
