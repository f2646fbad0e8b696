"""What is done with a batch before anything of it is computed: which kind it is, what it follows, whether it is right.

Every rank of a model looks at a batch by itself, and finds the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pie.backends.base import Capabilities
from pie.backends.checks import I64, check
from pie.backends.cuda.plain import Plain, PlainBatches
from pie.backends.cuda.rows import check_rows
from pie.backends.cuda.step import Asked, Came, Step
from pie.backends.unsupported import unsupported
from pie.batch import Batch
from pie.batch_layout import U32


class Last(NamedTuple):
    """The batch that was launched last."""

    batch_id: int
    n_rows: int
    """Rows whose first draw may be followed."""


class Looked(NamedTuple):
    """A batch that is right."""

    plain: Plain | None
    """A plain batch that has a graph."""
    size: int
    """That of its graph; 0: it has none."""
    asked: Asked | None
    """Any other."""
    reasons: dict[int, str]
    """Why sequences fail."""


class Launcher:
    """Looks at the batches of one model and launches them."""

    def __init__(self, step: Step, limits: Capabilities) -> None:
        self.step = step
        self._limits = limits
        self._plain = PlainBatches(limits)

    def look(self, batch: Batch, last: Last | None) -> Looked:
        """Looks at a batch behind the batch `last`, None: one that failed. Raises DriverError where it is not right."""
        plain = self._plain.find(batch)
        if plain is not None:
            is_followed = plain.most_followed == 0 or (
                last is not None and last.batch_id == batch.before and plain.most_followed <= last.n_rows
            )
            size = self.step.graph_for(plain) if is_followed else None
            if size is not None:
                return Looked(plain, size, None, {})
        spans = check(batch, self._limits)
        rows = check_rows(batch, self._limits.vocab_size)
        reasons = unsupported(batch, self._limits)
        follows = _followed(batch, last, reasons)
        return Looked(None, 0, Asked(batch, spans, rows, follows), reasons)

    def begin(self, looked: Looked) -> Came:
        """Launches a batch that was looked at."""
        if looked.plain is not None:
            return self.step.decode(looked.plain, looked.size)
        assert looked.asked is not None
        return self.step.begin(looked.asked)


def lost_followers(looked: Looked, came: Came) -> dict[int, str]:
    """Why sequences fail that follow a row that nothing could be drawn from; that is known when the batch is done."""
    if came.followed is None or came.followed.min(initial=0) >= 0:
        return {}
    if looked.plain is not None:
        follows: U32 | I64 = looked.plain.follows.astype(np.int64) - 1
        tokens = came.followed
    else:
        assert looked.asked is not None
        follows = looked.asked.follows
        tokens = came.followed[looked.asked.batch.qo_indptr[:-1].astype(np.int64)]
    lost = np.flatnonzero((follows >= 0) & (tokens < 0)).tolist()
    return {seq_idx: f"row {follows[seq_idx]} of the batch before, which it follows, has no token to draw" for seq_idx in lost}


def _followed(batch: Batch, last: Last | None, reasons: dict[int, str]) -> I64:
    """The row of the batch before whose draw is the token of each sequence, int64 [B], -1: none.

    `reasons` gets those that follow what is not there.
    """
    follows = batch.seq_follows.astype(np.int64) - 1
    if (follows < 0).all():
        return follows
    n_rows = last.n_rows if last is not None and last.batch_id == batch.before else 0
    for seq_idx in np.flatnonzero(follows >= n_rows).tolist():
        why = f"batch {batch.before} is not the one launched last, or failed" if n_rows == 0 else f"it has {n_rows} rows"
        reasons.setdefault(seq_idx, f"it follows row {follows[seq_idx]} of batch {batch.before}, which has no token for it: {why}")
        follows[seq_idx] = -1
    return follows
