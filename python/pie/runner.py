"""The driver loop: pulls batches from a model, runs them on its driver and hands the logits back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pie.backends.base import DriverError, FailedSequencesError, FollowingDriver
from pie.batch import Batch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pie import _engine
    from pie.backends.base import Driver

# Ctrl-C and the end of the loop are noticed after this long at most; a batch that is ready is never waited for.
_SLICE_S = 0.1


class _Launched(NamedTuple):
    raw: _engine.Batch
    batch: Batch
    answer: Callable[[], npt.NDArray[np.float32]]
    """Waits for the logits, or raises what the driver did."""


def drive(model: _engine.Model, driver: Driver, *, observe: Callable[[Batch, object], None] | None = None) -> None:
    """Runs the batches of `model` until the engine stops.

    Whatever a driver raises fails the requests of its batch, each with an error of its own, and the loop goes on: one bad batch never
    ends the service. A sequence that the driver names fails alone. `observe` gets each batch with its logits (float32 [R, V]) before
    they are handed back. A driver that follows is given the next batch before it has answered one.
    """
    follows = isinstance(driver, FollowingDriver) and driver.capabilities.follows
    launch = driver.launch if isinstance(driver, FollowingDriver) and follows else partial(_later, driver)
    depth = 1 + follows
    launched: deque[_Launched] = deque()
    try:
        while not model.stopped:
            raw = model.next_batch(0.0 if launched else _SLICE_S) if len(launched) < depth else None
            if raw is not None:
                with _failing(model, raw):
                    batch = Batch.from_buffer(raw)
                    launched.append(_Launched(raw, batch, launch(batch)))
                    if len(launched) < depth:
                        continue
            if launched:
                _finish(model, launched.popleft(), observe)
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
    with _failing(model, launched.raw):
        failures: list[tuple[int, str]] = []
        try:
            logits = launched.answer()
        except FailedSequencesError as failed:
            logits, failures = failed.logits, list(failed.reasons.items())
        if observe is not None:
            observe(launched.batch, logits)
        model.complete(launched.raw, logits.data, failures)


@contextmanager
def _failing(model: _engine.Model, raw: _engine.Batch) -> Iterator[None]:
    """Fails the batch with whatever is raised but Ctrl-C, and goes on."""
    try:
        yield
    except DriverError as error:
        model.fail(raw, str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a driver is third-party code: nothing that it does, sys.exit included, may end the loop
        model.fail(raw, f"{type(error).__name__}: {error}")
