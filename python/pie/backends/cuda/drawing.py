"""Draws tokens from the rows of a batch, on the device.

Symbols: R rows, D draws, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.checks import I64
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.rows import Rows, mask_words
from pie.backends.cuda.sampler_words import SAMPLER_WORDS, filtered_rows
from pie.backends.cuda.sampling import NOTHING, Draws, draw, drawable, greatest
from pie.backends.cuda.staging import Staging
from pie.batch import Batch

_ROWS_COMPILED_FOR = (1, 2, 16)
"""Triton compiles xgrammar's kernel for one row, for multiples of 16, and for all other numbers."""


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
        """Draws from `logits`, float32 [R, V], which stay as they are.

        Rows with token masks are copied and drawn from apart; the others cost what they would without those.
        """
        if not len(rows.row_of_draw):
            return DrawnTokens(logits.new_empty(0, dtype=torch.int32), self._nothing(logits, rows))
        arrays: list[npt.NDArray[Any]] = []
        if not rows.is_one_each:
            arrays += [rows.row_of_draw, rows.first_draws, np.flatnonzero(rows.n_draws)]
        if len(rows.masked):
            arrays += [rows.masked, mask_words(batch, rows, self._vocab_size).reshape(-1)]
        groups = random_groups(batch, rows)
        for group in groups:
            arrays += group.arrays()
        sent = iter(self._staging.send([_i32(array) for array in arrays]) if arrays else [])
        of_draw = None if rows.is_one_each else (next(sent).long(), next(sent).long(), next(sent).long())
        is_drawable = drawable(logits, logits)
        best = greatest(logits, is_drawable)
        sources = {False: (logits, is_drawable)}
        if len(rows.masked):
            of_masks, words = next(sent).long(), next(sent)
            masked, can_draw = sources[True] = self._masked(logits[of_masks], is_drawable[of_masks], words)
            best[of_masks] = greatest(masked, can_draw)
        tokens = best if of_draw is None else best[of_draw[0]]
        for group in groups:
            places = next(sent).long()
            tokens[places] = draw(*sources[group.is_masked], group.draws(sent), self._calls.arithmetic)
        if of_draw is None:
            return DrawnTokens(tokens, tokens)
        firsts = self._nothing(logits, rows)
        firsts[of_draw[2]] = tokens[of_draw[1]]
        return DrawnTokens(tokens, firsts)

    def warm_up(self, logits: Tensor) -> None:
        """Runs every kernel once, on one row: filtered draws, unfiltered ones, masks."""
        row = torch.zeros(1, dtype=torch.int64, device=logits.device)
        temperature, keys = torch.ones(1, device=logits.device), row.new_zeros((1, 5))
        for is_filtered in (False, True):
            draws = Draws(row, temperature, row, temperature, temperature - 1, keys, [1], is_filtered)
            draw(logits, drawable(logits, logits), draws, self._calls.arithmetic)
        for n_rows in _ROWS_COMPILED_FOR:
            words = torch.full((n_rows * -(-self._vocab_size // 32),), NOTHING, dtype=torch.int32, device=logits.device)
            self._masked(logits.repeat(n_rows, 1), drawable(logits, logits), words)

    def _masked(self, masked: Tensor, is_drawable: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """These rows with minus infinity where a token is forbidden, and which of them have one that is allowed."""
        self._calls.apply_token_bitmask_inplace(masked, words.view(len(masked), -1), vocab_size=self._vocab_size)
        return masked, is_drawable & (masked.amax(dim=1) > -torch.inf)

    def _nothing(self, logits: Tensor, rows: Rows) -> Tensor:
        return torch.full((rows.n_rows,), NOTHING, dtype=torch.int32, device=logits.device)


@dataclass(frozen=True, eq=False)
class RandomRows:
    """Rows that tokens are drawn from at random, all or none with token masks, all or none with top-k or top-p.

    N of them, D draws.
    """

    is_masked: bool
    row: I64
    """Where each lies among the rows of the batch, or among those with masks, [N]."""
    places: I64
    """The place of each draw among all of the batch, [D]."""
    owner: I64
    """Which of the rows each draw is from, [D]."""
    nth: I64
    """Which draw of its row each is, [D]."""
    n_draws: list[int]
    sampler: npt.NDArray[np.uint32]
    """[N, 8]."""
    slot: npt.NDArray[np.uint32]
    """[N]."""
    is_filtered: bool

    @property
    def is_one_each(self) -> bool:
        """Whether each row has one draw."""
        return len(self.owner) == len(self.row)

    def arrays(self) -> list[npt.NDArray[Any]]:
        """What the device has to know."""
        many = [] if self.is_one_each else [self.owner, self.nth]
        return [self.places, self.row, self.sampler.reshape(-1), self.slot, *many]

    def draws(self, sent: Iterator[Tensor]) -> Draws:
        """The same for the device, where `sent` continues behind the places."""
        row, sampler, slot = next(sent).long(), next(sent).view(-1, SAMPLER_WORDS), next(sent)
        owner, nth = (None, None) if self.is_one_each else (next(sent).long(), next(sent).long())
        return Draws.of(row, sampler, slot, self.n_draws, is_filtered=self.is_filtered, owner=owner, nth=nth)


def random_groups(batch: Batch, rows: Rows) -> list[RandomRows]:
    """The rows that tokens are drawn from at random, by whether they have token masks, and top-k or top-p.

    Those two sort the whole vocabulary, which costs more than all else: a row that has neither is left out of that.
    """
    if not len(rows.random):
        return []
    sampler = batch.array("row_sampler").reshape(-1, SAMPLER_WORDS)
    place_of = np.full(rows.n_rows, -1)
    place_of[rows.masked] = np.arange(len(rows.masked))
    has_mask, has_filter = place_of[rows.random] >= 0, filtered_rows(sampler[rows.random])
    firsts, groups = np.cumsum(rows.n_draws) - rows.n_draws, []
    for is_masked, is_filtered in product((False, True), repeat=2):
        own = rows.random[(has_mask == is_masked) & (has_filter == is_filtered)]
        if not len(own):
            continue
        counts = rows.n_draws[own]
        owner = np.repeat(np.arange(len(own)), counts)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        groups.append(
            RandomRows(
                is_masked=is_masked,
                row=place_of[own] if is_masked else own,
                places=firsts[own][owner] + nth,
                owner=owner,
                nth=nth,
                n_draws=counts.tolist(),
                sampler=sampler[own],
                slot=batch.row_slot[own],
                is_filtered=is_filtered,
            )
        )
    return groups


def _i32(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    return values.view(np.int32) if values.dtype == np.uint32 else values.astype(np.int32, copy=False)
