"""What sequences ask for and a driver does not have: they fail alone."""

from __future__ import annotations

import numpy as np

from pie.backends.base import Capabilities, Command, DriverError, UnsupportedError
from pie.batch import Batch


def no_adapters(backend: str, command: Command) -> UnsupportedError:
    """The answer of a driver that has no adapters to a command."""
    return UnsupportedError(f"there are no adapters on this driver, {backend}, which was asked for {command}")


def unsupported(batch: Batch, limits: Capabilities) -> dict[int, str]:
    """Why sequences of the batch cannot be computed, by their index.

    Raises DriverError where the arrays do not fit the batch.
    """
    reasons: dict[int, str] = {}
    for array, supported, things in (("seq_adapter", limits.adapters, "adapters"), ("seq_media", limits.media, "media")):
        words = batch.array(array)
        if len(words) != 2 * batch.n_seqs:
            raise DriverError(f"{array} has {len(words)} words, not {2 * batch.n_seqs}")
        if supported or not words.any():
            continue
        for seq_idx in np.flatnonzero(words.reshape(-1, 2).any(axis=1)).tolist():
            reasons.setdefault(seq_idx, f"the {limits.backend} back end runs no {things}, but this sequence has some; use another driver")
    if len(batch.seq_follows) != batch.n_seqs:
        raise DriverError(f"seq_follows has {len(batch.seq_follows)} words, not {batch.n_seqs}")
    if not limits.follows:
        for seq_idx in np.flatnonzero(batch.seq_follows).tolist():
            reasons.setdefault(seq_idx, f"the {limits.backend} back end does not draw the tokens of its next batch; use another driver")
    return reasons
