"""How attention is cut for a batch: what `plan` is given, on the host.

FlashInfer lays its threads out by the average number of queries of a sequence, so that a token's sums are made in
another order where its neighbours are more. A batch is therefore cut into pieces of so few tokens that it chooses the
least tile of queries for each of them, alone or together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.backends.checks import I64, Spans, mask_of
from pie.batch import Batch
from pie.models.spec import Attention

I32: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]

TILE_ROWS = 16
"""Rows of queries, a token's heads of one group each a row, that FlashInfer's least tile has."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of a batch, in the order of its tokens; Q of them."""

    qo_indptr: I32
    """[Q + 1]."""
    kv_indptr: I32
    """[Q + 1]."""
    kv_indices: I32
    kv_last_page_len: I32
    """[Q]."""
    mask: Bytes | None
    """Which slots each token of a piece sees, row by row and piece by piece, a bit each, the lowest of a byte first.

    None: causality alone.
    """
    n_mask_bits: int = 0


def tokens_of_piece(attention: Attention) -> int:
    """The most tokens of a piece whose rows fit the least tile."""
    return max(1, TILE_ROWS // (attention.n_heads // attention.n_kv_heads))


def cut(batch: Batch, spans: Spans, n_most: int | None) -> Pieces:
    """Cuts the sequences into pieces of at most `n_most` tokens; None: one piece each."""
    per_piece = spans.n_new if n_most is None else np.minimum(spans.n_new, n_most)
    n_pieces = -(-spans.n_new // per_piece)
    total = int(n_pieces.sum())
    if total == batch.n_seqs:
        qo_indptr = _i32(batch.qo_indptr)
        mask, n_bits = _mask(batch, qo_indptr, spans.kv_len)
        return Pieces(qo_indptr, _i32(batch.kv_indptr), _i32(batch.kv_indices), _i32(batch.kv_last_page_len), mask, n_bits)
    owner = np.repeat(np.arange(batch.n_seqs), n_pieces)
    nth = np.arange(total) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    ends = np.minimum((nth + 1) * per_piece[owner], spans.n_new[owner])
    lengths = spans.first_slot[owner] + ends
    n_pages = -(-lengths // batch.page_size)
    kv_indptr = np.concatenate([[0], np.cumsum(n_pages)])
    # The pages of a piece are the first ones of its sequence.
    at = np.arange(kv_indptr[-1]) - np.repeat(kv_indptr[:-1], n_pages) + np.repeat(batch.kv_indptr[owner].astype(np.int64), n_pages)
    qo_indptr = np.concatenate([[0], batch.qo_indptr[owner] + ends]).astype(np.int32)
    last = lengths - (n_pages - 1) * batch.page_size
    return Pieces(qo_indptr, _i32(kv_indptr), _i32(batch.kv_indices[at]), _i32(last), *_mask(batch, qo_indptr, lengths))


def _mask(batch: Batch, qo_indptr: I32, lengths: I64) -> tuple[Bytes | None, int]:
    """The bits of all pieces and how many they are; None where no token has a mask. `lengths` are the slots of each."""
    if not len(batch.mask_runs):
        return None, 0
    parts = []
    for first, end, length in zip(qo_indptr[:-1].tolist(), qo_indptr[1:].tolist(), lengths.tolist(), strict=True):
        own = np.arange(length - (end - first), length)
        visible = np.arange(length) <= own[:, None]
        for row, token_idx in enumerate(range(first, end)):
            runs = np.array(mask_of(batch, token_idx), np.int64)
            if len(runs):
                allowed = np.repeat(np.arange(len(runs)) % 2 == 1, runs)[:length]
                visible[row, : len(allowed)] &= allowed
                visible[row, len(allowed) :] = False
        parts.append(visible.reshape(-1))
    bits = np.concatenate(parts)
    return np.packbits(bits, bitorder="little"), len(bits)


def _i32(values: npt.NDArray[np.uint32] | npt.NDArray[np.int64]) -> I32:
    """A copy as signed words: the arena is read-only, and gone when the batch is answered."""
    return values.astype(np.int32)
