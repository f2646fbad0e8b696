"""What is wanted of the rows of a batch: which are answered, what is drawn from which, and how.

Symbols: R rows, D draws, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.backends.base import DriverError
from pie.backends.checks import I64, indptr, lengths
from pie.backends.cuda.sampler_words import SAMPLER_WORDS, random_rows
from pie.batch import Batch
from pie.batch_layout import KEEP_DRAWS, KEEP_EMBEDDING

I32: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a batch, on the host."""

    n_rows: int
    n_draws: I64
    """[R]."""
    random: I64
    """The rows from which tokens are drawn at random, in order."""
    kept: I64
    """The rows that are answered."""
    states: I64
    """Which of `kept` are hidden states."""
    masked: I64
    """The rows that have token masks."""

    @cached_property
    def row_of_draw(self) -> I64:
        """[D]."""
        return np.repeat(np.arange(self.n_rows), self.n_draws)

    @cached_property
    def is_one_each(self) -> bool:
        """Whether each row has one draw, so that draws are counted as rows."""
        return bool((self.n_draws == 1).all())

    @cached_property
    def first_draws(self) -> I64:
        """The first draw of each row that has one."""
        return (np.cumsum(self.n_draws) - self.n_draws)[self.n_draws > 0]


def check_rows(batch: Batch, vocab_size: int) -> Rows:
    """What is wanted of the rows; DriverError where the arrays contradict themselves."""
    n_rows = batch.n_rows
    lengths(
        ("row_sampler", batch.array("row_sampler"), SAMPLER_WORDS * n_rows),
        ("row_slot", batch.row_slot, n_rows),
        ("row_draws", batch.row_draws, n_rows),
        ("row_mask_indptr", batch.row_mask_indptr, n_rows + 1),
    )
    indptr("row_mask_indptr", batch.row_mask_indptr, len(batch.row_mask_runs), strict=False)
    sampler = batch.array("row_sampler").reshape(n_rows, SAMPLER_WORDS)
    keep = batch.row_keep
    n_draws = np.where(keep == KEEP_EMBEDDING, 0, batch.row_draws).astype(np.int64)
    random = np.flatnonzero(random_rows(sampler) & (n_draws > 0))
    kept = np.flatnonzero(keep != KEEP_DRAWS)
    masked = np.flatnonzero(batch.row_mask_indptr[1:] != batch.row_mask_indptr[:-1]) if len(batch.row_mask_runs) else _NONE
    for row in masked.tolist():
        covered = int(_mask_runs(batch, row).sum(dtype=np.int64))
        if covered > vocab_size:
            raise DriverError(f"row {row}: its token mask covers {covered} tokens of {vocab_size}")
    return Rows(n_rows, n_draws, random, kept, np.flatnonzero(keep[kept] == KEEP_EMBEDDING), masked)


def mask_words(batch: Batch, rows: Rows, vocab_size: int) -> I32:
    """The token masks of `rows.masked`, int32 [rows, V / 32]: token t in bit t % 32 of word t / 32."""
    n_words = -(-vocab_size // 32)
    words = np.zeros((len(rows.masked), n_words), np.uint32)
    for index, row in enumerate(rows.masked.tolist()):
        runs = _mask_runs(batch, row)
        allowed = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
        bits = np.packbits(allowed, bitorder="little")
        words[index].view(np.uint8)[: len(bits)] = bits
    return words.view(np.int32)


def _mask_runs(batch: Batch, row: int) -> npt.NDArray[np.uint32]:
    return batch.row_mask_runs[batch.row_mask_indptr[row] : batch.row_mask_indptr[row + 1]]


_NONE: I64 = np.zeros(0, np.int64)
