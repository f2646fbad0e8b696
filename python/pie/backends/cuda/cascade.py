"""Attention that reads a shared prefix once for all sequences that have it, and then what each has of its own.

Both parts give a state: outputs, and the logarithms of the sums behind them, by which FlashInfer merges the two. A
merge rounds in other places than attention over the whole sequence does, and which places those are depends on who
shares what in a batch: so it is for `deterministic = false` alone. Symbols: T tokens, R rows, N prefixes, S sequences
that a graph is for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.cuda.attention import Planner, Wrapper
from pie.backends.cuda.device import Device
from pie.backends.cuda.prefixes import I32, MOST_PREFIXES, Shared
from pie.backends.cuda.staging import ALIGNED, Staging, words_of


@dataclass(frozen=True, eq=False)
class Cascade:
    """See `pie.backends.cuda.attention.Attending`; both wrappers are planned."""

    own: Wrapper
    """Of all tokens, over the pages behind the prefixes."""
    prefix: Wrapper
    """Of the rows, over the pages of the prefixes."""
    merge: Callable[..., None]
    """`merge_state_in_place`."""
    rows: Tensor
    """The token of each row, int32 [R]."""
    row_of_token: Tensor
    """int32 [T]; any row for a token that has none."""
    has_row: Tensor
    """bool [T]."""

    def run(self, q: Tensor, kv: Tensor) -> Tensor:
        """See `Attending`."""
        out, sums = self.own.run_with_sums(q, kv)
        others, other_sums = self.prefix.run_with_sums(q.index_select(0, self.rows), kv)
        at = self.row_of_token
        self.merge(out, sums, others.index_select(0, at), other_sums.index_select(0, at), self.has_row)
        return out


class Sent(NamedTuple):
    """What the device has to know of prefixes."""

    rows: Tensor
    row_of_token: Tensor
    has_row: Tensor
    kv_indices: Tensor


def words_of_prefixes(shared: Shared) -> list[I32]:
    """The arrays that the device is sent, in the order of `Sent`."""
    return [shared.rows, shared.row_of_token, words_of(shared.has_row.view(np.uint8)), shared.kv_indices]


def as_sent(sent: list[Tensor], n_tokens: int) -> Sent:
    """The arrays as they lie on the device."""
    rows, row_of_token, has_row, kv_indices = sent
    return Sent(rows, row_of_token, has_row.view(torch.uint8)[:n_tokens].view(torch.bool), kv_indices)


class CascadeGraphs:
    """What the graphs of decode batches whose sequences share prefixes read of these.

    It lies where a graph found it when it was captured: arrays of a length that its size fixes, then the page indices.
    Sizes share the memory, for a batch has read it before the next one is sent.
    """

    def __init__(self, planner: Planner, device: Device, n_most: int, n_indices: int, nobody: int) -> None:
        """For up to `n_most` sequences and `n_indices` pages of prefixes; `nobody` is the page of unused prefixes."""
        self._planner, self._device = planner, device
        self._n_indices = n_indices
        self._nobody = nobody
        self._words = Staging(device, 3 * (n_most + ALIGNED) + n_indices + MOST_PREFIXES + ALIGNED)
        self._wrappers: dict[int, Wrapper] = {}
        self._planned: tuple[int, I32 | None] = (0, None)
        """The size that was sent and planned for last, and the rows: the same array, where nothing else has changed."""

    def holds(self, shared: Shared) -> bool:
        """Whether there is room for its page indices."""
        return len(shared.kv_indices) <= self._n_indices

    def prepare(self, size: int, own: Wrapper) -> Cascade:
        """What a graph of that size is captured with; `own` is planned for the same size."""
        device = self._device.name
        n, n_indices = _n_prefixes(size), self._n_indices + MOST_PREFIXES
        numbers, nobody = np.arange(size, dtype=np.int32), np.full(n_indices, self._nobody, np.int32)
        sent = as_sent(self._send(size, numbers, numbers, np.ones(size, np.bool_), nobody), size)
        wrapper = self._wrappers[size] = self._planner.graphed(
            size + MOST_PREFIXES,
            qo_indptr_buf=torch.zeros(n + 1, dtype=torch.int32, device=device),
            paged_kv_indptr_buf=torch.zeros(n + 1, dtype=torch.int32, device=device),
            paged_kv_indices_buf=sent.kv_indices,
            paged_kv_last_page_len_buf=torch.zeros(n, dtype=torch.int32, device=device),
        )
        self._planned = (0, None)
        # The first plan says how many rows there may be.
        self._plan(size, wrapper, np.array([0, size], np.int32), np.array([0, 1], np.int32), sent.kv_indices[:n])
        return Cascade(own, wrapper, self._planner.merge, sent.rows, sent.row_of_token, sent.has_row)

    def plan(self, size: int, shared: Shared) -> None:
        """Sends the prefixes of a batch, and plans for them, where they are not those of the batch before."""
        if self._planned[0] == size and self._planned[1] is shared.rows:
            return
        self._planned = (0, None)
        indices = np.append(shared.kv_indices, np.full(_n_prefixes(size) - len(shared.qo_indptr) + 1, self._nobody, np.int32))
        *_, sent = self._send(size, shared.rows, shared.row_of_token, shared.has_row, indices)
        self._plan(size, self._wrappers[size], shared.qo_indptr, shared.kv_indptr, sent)
        self._planned = (size, shared.rows)

    def clear(self) -> None:
        """Forgets what was prepared."""
        self._wrappers.clear()

    def _send(self, size: int, rows: I32, row_of_token: I32, has_row: npt.NDArray[np.bool_], indices: I32) -> list[Tensor]:
        """Arrays of S words, S words and S bytes, zeros behind what there is, and the page indices."""
        padded = np.zeros((2, size), np.int32)
        padded[0, : len(rows)], padded[1, : len(row_of_token)] = rows, row_of_token
        flags = np.zeros(size, np.uint8)
        flags[: len(has_row)] = has_row
        return self._words.send([padded[0], padded[1], words_of(flags), indices])

    def _plan(self, size: int, wrapper: Wrapper, qo_indptr: I32, kv_indptr: I32, indices: Tensor) -> None:
        """Plans prefixes, and others without rows behind them, a page of nobody each, up to the number of the size."""
        n, n_used = _n_prefixes(size), len(qo_indptr) - 1
        qo, kv = np.full(n + 1, qo_indptr[-1], np.int32), np.empty(n + 1, np.int32)
        qo[: n_used + 1], kv[: n_used + 1] = qo_indptr, kv_indptr
        kv[n_used + 1 :] = kv_indptr[-1] + np.arange(1, n - n_used + 1)
        self._planner.plan_prefixes(wrapper, torch.from_numpy(qo), torch.from_numpy(kv), indices)


def _n_prefixes(size: int) -> int:
    """For which a graph of so many sequences has room: each is shared by two at the least."""
    return max(1, min(MOST_PREFIXES, size // 2))
