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
class DriverOptions:
    """How a model is run; every driver takes these."""

    page_size: int = 16
    """Tokens of a page."""
    n_pages: int | None = None
    """Pages of the pool; as many as `kv_bytes` hold if not given."""
    kv_bytes: int = 256 << 20
    """Memory for keys and values."""
    max_batch_tokens: int = 512
    """Most tokens of a batch."""
    dtype: str | None = None
    """`bfloat16` or `float32`: of weights, inputs of linears, keys and values. That of the checkpoint if not given."""
    n_threads: int | None = None
    """Threads, the caller's included; one a core if not given. Results of the `cpu` back end do not depend on it."""
    isa: str = "auto"
    """Instruction set of the `cpu` back end: `auto` (the best of this CPU), `avx512`, `avx2` or `portable`. Results do not depend on it."""


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
