"""The driver loop: pulls batches from a model, runs them on its driver and hands the logits back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pie.backends.base import DriverError, FailedSequencesError
from pie.batch import Batch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pie import _engine
    from pie.backends.base import Driver

# Ctrl-C and the end of the loop are noticed after this long at most; a batch that is ready is never waited for.
_SLICE_S = 0.1


def drive(model: _engine.Model, driver: Driver, *, observe: Callable[[Batch, object], None] | None = None) -> None:
    """Runs the batches of `model` until the engine stops.

    Whatever a driver raises fails the requests of its batch, each with an error of its own, and the loop goes on: one bad batch never
    ends the service. A sequence that the driver names fails alone. `observe` gets each batch with its logits (float32 [R, V]) before
    they are handed back.
    """
    while not model.stopped:
        raw = model.next_batch(_SLICE_S)
        if raw is None:
            continue
        try:
            batch = Batch.from_buffer(raw)
            logits, failures = _run(driver, batch)
            if observe is not None:
                observe(batch, logits)
            model.complete(raw, logits.data, failures)
        except DriverError as error:
            model.fail(raw, str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a driver is third-party code: nothing that it does, sys.exit included, may end the loop
            model.fail(raw, f"{type(error).__name__}: {error}")


def _run(driver: Driver, batch: Batch) -> tuple[npt.NDArray[np.float32], list[tuple[int, str]]]:
    """The logits of a batch, and the sequences that failed with their reasons."""
    try:
        return driver.run(batch), []
    except FailedSequencesError as failed:
        return failed.logits, list(failed.reasons.items())
