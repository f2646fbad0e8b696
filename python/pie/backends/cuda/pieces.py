"""How attention is cut for a batch: what `plan` is given, on the host.

FlashInfer lays its threads out by the average number of queries of a sequence, so that a token's sums are made in
another order where its neighbours are more. A batch is therefore cut into pieces of so few tokens that it chooses the
least tile of queries for each of them, alone or together. Tokens with attention masks have pieces of their own, for
which FlashInfer has another kernel: what a token is computed by depends on itself alone. A mask that hides nothing is
none, so that its token has the bits that it would have without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pie.backends.checks import I64, Flags, Spans, mask_of
from pie.batch import Batch
from pie.models.spec import Attention

I32: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]

TILE_ROWS = 16
"""Rows of queries, a token's heads of one group each a row, that FlashInfer's least tile has."""


class PackedMasks(NamedTuple):
    """The slots that each token of each piece sees, row by row, piece by piece: a bit each, a byte's lowest first."""

    bits: Bytes
    starts: I32
    """The byte that each piece begins with, and the end, [Q + 1]."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of a batch, in the order of its tokens; Q of them."""

    qo_indptr: I32
    """[Q + 1]."""
    kv_indptr: I32
    """[Q + 1]."""
    kv_indices: I32
    kv_last_page_len: I32
    """[Q]."""
    tokens: I32 | None = None
    """The tokens of the batch that they are, in order; None: all."""
    masks: PackedMasks | None = None
    """None: causality alone."""


class Cut(NamedTuple):
    """The pieces of a batch."""

    causal: Pieces | None
    """Of tokens without masks that hide anything; None: there is none."""
    masked: Pieces | None
    """Of tokens with such masks; None: there is none."""


class _Runs(NamedTuple):
    """Tokens that stand side by side in a sequence."""

    first: I64
    end: I64
    seq: I64
    """The sequence of each."""


def tokens_of_piece(attention: Attention) -> int:
    """The most tokens of a piece whose rows fit the least tile."""
    return max(1, TILE_ROWS // (attention.n_heads // attention.n_kv_heads))


def cut(batch: Batch, spans: Spans, n_most: int | None) -> Cut:
    """Cuts the sequences into pieces of at most `n_most` tokens; None: one piece each, or one for each run of masks."""
    starts, ends = batch.qo_indptr[:-1].astype(np.int64), batch.qo_indptr[1:].astype(np.int64)
    is_masked = _hidden_from(batch, spans)
    if not is_masked.any():
        if n_most is None or spans.n_new.max() <= n_most:
            lasts = _i32(batch.kv_last_page_len)
            return Cut(Pieces(_i32(batch.qo_indptr), _i32(batch.kv_indptr), _i32(batch.kv_indices), lasts), None)
        return Cut(_pieces(batch, spans, _shortened(_Runs(starts, ends, np.arange(batch.n_seqs)), n_most)), None)
    is_first = np.concatenate([[True], is_masked[1:] != is_masked[:-1]])
    is_first[starts] = True
    first = np.flatnonzero(is_first)
    runs = _Runs(first, np.append(first[1:], batch.n_tokens), np.searchsorted(ends, first, side="right"))
    pieces = runs if n_most is None else _shortened(runs, n_most)
    of_masks = is_masked[pieces.first]
    if of_masks.all():
        return Cut(None, _pieces(batch, spans, pieces, has_masks=True))
    return Cut(_some(batch, spans, pieces, ~of_masks), _some(batch, spans, pieces, of_masks, has_masks=True))


def _hidden_from(batch: Batch, spans: Spans) -> Flags:
    """Which tokens have a mask that hides a slot from them, [T]: one that hides none is as good as none."""
    if not len(batch.mask_runs):
        return np.zeros(batch.n_tokens, np.bool_)
    first, n_runs = batch.mask_indptr[:-1].astype(np.int64), np.diff(batch.mask_indptr)
    own = np.repeat(spans.first_slot - batch.qo_indptr[:-1], spans.n_new) + np.arange(batch.n_tokens)
    ends = np.concatenate([[0], np.cumsum(batch.mask_runs, dtype=np.int64)])
    # A run of 0 says nothing, and behind the last run everything is forbidden.
    token = np.repeat(np.arange(batch.n_tokens), n_runs)
    is_forbidden = (np.arange(len(batch.mask_runs)) - first[token]) % 2 == 0
    is_hiding = is_forbidden & (batch.mask_runs > 0) & (ends[:-1] - ends[first[token]] <= own[token])
    hides: Flags = (n_runs > 0) & (ends[first + n_runs] - ends[first] <= own)
    hides[token[is_hiding]] = True
    return hides


def _shortened(runs: _Runs, n_most: int) -> _Runs:
    """The runs in parts of at most so many tokens."""
    n_parts = -(-(runs.end - runs.first) // n_most)
    owner = np.repeat(np.arange(len(runs.first)), n_parts)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    first = runs.first[owner] + nth * n_most
    return _Runs(first, np.minimum(first + n_most, runs.end[owner]), runs.seq[owner])


def _some(batch: Batch, spans: Spans, pieces: _Runs, which: Flags, *, has_masks: bool = False) -> Pieces:
    """Those of the pieces."""
    some = _Runs(pieces.first[which], pieces.end[which], pieces.seq[which])
    n_each = some.end - some.first
    tokens = np.arange(int(n_each.sum())) + np.repeat(some.first - (np.cumsum(n_each) - n_each), n_each)
    return _pieces(batch, spans, some, _i32(tokens), has_masks=has_masks)


def _pieces(batch: Batch, spans: Spans, pieces: _Runs, tokens: I32 | None = None, *, has_masks: bool = False) -> Pieces:
    """What these pieces see: the slots of their sequences up to their last tokens."""
    owner = pieces.seq
    lengths = spans.first_slot[owner] + pieces.end - batch.qo_indptr[owner]
    n_pages = -(-lengths // batch.page_size)
    kv_indptr = np.concatenate([[0], np.cumsum(n_pages)])
    # The pages of a piece are the first ones of its sequence.
    at = np.arange(kv_indptr[-1]) - np.repeat(kv_indptr[:-1], n_pages) + np.repeat(batch.kv_indptr[owner].astype(np.int64), n_pages)
    qo_indptr = np.concatenate([[0], np.cumsum(pieces.end - pieces.first)])
    last = lengths - (n_pages - 1) * batch.page_size
    masks = _masks(batch, pieces, lengths) if has_masks else None
    return Pieces(_i32(qo_indptr), _i32(kv_indptr), _i32(batch.kv_indices[at]), _i32(last), tokens, masks)


def _masks(batch: Batch, pieces: _Runs, lengths: I64) -> PackedMasks:
    """The bits of these pieces, whose tokens have masks; `lengths` are the slots of each."""
    parts = []
    for first, end, length in zip(pieces.first.tolist(), pieces.end.tolist(), lengths.tolist(), strict=True):
        own = np.arange(length - (end - first), length)
        visible = np.arange(length) <= own[:, None]
        for row, token_idx in enumerate(range(first, end)):
            runs = np.array(mask_of(batch, token_idx), np.int64)
            allowed = np.repeat(np.arange(len(runs)) % 2 == 1, runs)[:length]
            visible[row, : len(allowed)] &= allowed
            visible[row, len(allowed) :] = False
        parts.append(np.packbits(visible.reshape(-1), bitorder="little"))
    starts = np.cumsum([0, *map(len, parts)])
    return PackedMasks(np.concatenate(parts), _i32(starts))


def _i32(values: npt.NDArray[np.uint32] | npt.NDArray[np.int64]) -> I32:
    """A copy as signed words: the arena is read-only, and gone when the batch is answered."""
    return values.astype(np.int32)
