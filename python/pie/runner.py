"""The driver loop: pulls batches from a model, runs them on its driver and hands the logits back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pie.backends.base import DriverError, DriverLostError, FailedSequencesError, FollowingDriver
from pie.batch import Batch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pie import _engine
    from pie.backends.base import Driver

# Ctrl-C and the end of the loop are noticed after this long at most; a batch that is ready is never waited for.
_SLICE_S = 0.1


_Launch: TypeAlias = "Callable[[Batch], Callable[[], npt.NDArray[np.float32]]]"


class _Launched(NamedTuple):
    raw: _engine.Batch
    batch: Batch
    answer: Callable[[], npt.NDArray[np.float32]]
    """Waits for the logits, or raises what the driver did."""


def drive(
    model: _engine.Model,
    driver: Driver,
    *,
    observe: Callable[[Batch, object], None] | None = None,
    idle: Callable[[], None] | None = None,
) -> None:
    """Runs the batches of `model` until the engine stops.

    Whatever a driver raises fails the requests of its batch, each with an error of its own, and the loop goes on: one
    bad batch never ends the service. A sequence that the driver names fails alone. `observe` gets each batch with its
    logits (float32 [R, V]) before they are handed back. A driver that follows is given the next batch before it has
    answered one. `idle` is called now and then while there is nothing to run.

    Raises DriverLostError where the driver is lost, with which the requests of its batches have failed.
    """
    follows = driver.capabilities.follows
    launch: _Launch = driver.launch if isinstance(driver, FollowingDriver) and follows else partial(_later, driver)
    depth = 1 + follows
    launched: deque[_Launched] = deque()
    try:
        while not model.stopped:
            raw = model.next_batch(0.0 if launched else _SLICE_S) if len(launched) < depth else None
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


def _later(driver: Driver, batch: Batch) -> Callable[[], npt.NDArray[np.float32]]:
    """Runs the batch when its answer is wanted."""
    return partial(driver.run, batch)


def _finish(model: _engine.Model, launched: _Launched, observe: Callable[[Batch, object], None] | None) -> None:
    """Waits for a batch and hands its logits back."""
    raw, batch, answer = launched
    failures: list[tuple[int, str]] = []
    try:
        try:
            logits = answer()
        except FailedSequencesError as failed:
            logits, failures = failed.logits, list(failed.reasons.items())
        if observe is not None:
            observe(batch, logits)
        model.complete(raw, logits.data, failures)
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
