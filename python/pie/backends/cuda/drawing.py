"""Draws tokens from the rows of a batch, on the device.

Symbols: R rows, D draws, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.cuda.calls import Calls
from pie.backends.cuda.rows import Rows, mask_words
from pie.backends.cuda.sampling import NOTHING, Draws, draw, drawable, greatest
from pie.backends.cuda.staging import Staging
from pie.batch import Batch

_WORD = 0xFFFFFFFF


class DrawnTokens(NamedTuple):
    """What was drawn, on the device; NOTHING where nothing can be."""

    tokens: Tensor
    """int32 [D]."""
    firsts: Tensor
    """The first draw of each row, int32 [R]; NOTHING where a row has no draw."""


class Drawing:
    """Draws from the rows of one batch after the other."""

    def __init__(self, calls: Calls, staging: Staging, vocab_size: int) -> None:
        self._calls = calls
        self._staging = staging
        self._vocab_size = vocab_size

    def draw(self, batch: Batch, rows: Rows, logits: Tensor) -> DrawnTokens:
        """Draws from `logits`, float32 [R, V], which stay as they are."""
        if not len(rows.row_of_draw):
            return DrawnTokens(logits.new_empty(0, dtype=torch.int32), self._nothing(logits, rows))
        arrays: list[npt.NDArray[np.int64 | np.int32]] = []
        if not rows.is_one_each:
            arrays += [rows.row_of_draw, rows.first_draws, np.flatnonzero(rows.n_draws)]
        if len(rows.masked):
            arrays += [rows.masked, mask_words(batch, rows, self._vocab_size).reshape(-1)]
        if len(rows.random):
            arrays += [
                rows.random,
                rows.random_draws,
                rows.nth_of_row,
                batch.array("row_sampler").view(np.int32),
                batch.row_slot.view(np.int32),
            ]
        sent = iter(self._staging.send([array.astype(np.int32, copy=False) for array in arrays]) if arrays else [])
        of_draw = None if rows.is_one_each else (next(sent).long(), next(sent).long(), next(sent).long())
        masked = self._masked(logits, next(sent), next(sent)) if len(rows.masked) else logits
        is_drawable = drawable(logits, masked)
        best = greatest(masked, is_drawable)
        tokens = best if of_draw is None else best[of_draw[0]]
        if len(rows.random):
            row, random_draws, nth, sampler, slot = (next(sent) for _ in range(5))
            draws = _draws(rows, row.long(), nth.long(), sampler.view(-1, 8), slot)
            tokens[random_draws.long()] = draw(masked, is_drawable, draws, self._calls.arithmetic)
        if of_draw is None:
            return DrawnTokens(tokens, tokens)
        firsts = self._nothing(logits, rows)
        firsts[of_draw[2]] = tokens[of_draw[1]]
        return DrawnTokens(tokens, firsts)

    def _masked(self, logits: Tensor, rows: Tensor, words: Tensor) -> Tensor:
        """The logits with minus infinity where a token is forbidden."""
        masked = logits.clone()
        masks = torch.full((len(logits), len(words) // len(rows)), NOTHING, dtype=torch.int32, device=logits.device)
        masks[rows.long()] = words.view(len(rows), -1)
        self._calls.apply_token_bitmask_inplace(masked, masks, vocab_size=self._vocab_size)
        return masked

    def _nothing(self, logits: Tensor, rows: Rows) -> Tensor:
        return torch.full((rows.n_rows,), NOTHING, dtype=torch.int32, device=logits.device)


def _draws(rows: Rows, row: Tensor, nth: Tensor, sampler: Tensor, slot: Tensor) -> Draws:
    """How tokens are drawn from the random rows, from the words of the arena."""
    mine = sampler[row]
    n_draws = rows.n_draws[rows.random].tolist()
    temperature, top_p, min_p = (mine[:, column].contiguous().view(torch.float32) for column in (1, 3, 4))
    words = [mine[:, 5], mine[:, 6], mine[:, 7], slot[row]]
    if len(nth) > len(row):
        times = torch.tensor(n_draws, device=row.device)
        words = [column.repeat_interleave(times) for column in words]
    keys = torch.stack([*(column.long() & _WORD for column in words), nth], dim=1)
    return Draws(row, temperature, mine[:, 2].long() & _WORD, top_p, min_p, keys, n_draws, rows.is_filtered)
