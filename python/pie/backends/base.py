"""The boundary that every driver keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pie.batch import Batch


class DriverError(Exception):
    """A driver could not run a batch; every request in it fails with this message, and nothing was committed."""


@dataclass(frozen=True)
class Capabilities:
    """What a driver serves, and its limits."""

    backend: str
    vocab_size: int
    max_positions: int
    """Positions are below this."""
    page_size: int
    """Tokens of a page."""
    n_pages: int
    """Pages of the pool of keys and values."""
    max_batch_tokens: int
    """Most tokens, and most rows of logits, of a batch."""


class Driver(Protocol):
    """Runs batches, one at a time."""

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves."""

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Computes a batch: stores its keys and values, answers the logits, float32 [R, V], C-contiguous.

        Raises DriverError where it cannot; the batch is then as if it had never been.
        """

    def close(self) -> None:
        """Gives threads and memory back; a second call does nothing, `run` afterwards is a DriverError."""
