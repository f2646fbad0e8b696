"""What a batch must keep before anything of it is computed, and where its sequences lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.backends.base import Capabilities, DriverError
from pie.batch import Batch
from pie.batch_layout import U32

I64: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Spans:
    """Where the sequences of a batch lie, host int64 [B] each."""

    n_new: I64
    """Tokens in the batch."""
    n_pages: I64
    kv_len: I64
    """Slots once the batch has been written."""
    is_reread: Flags
    """Whether the slot of the only token holds its key and value already."""

    @property
    def first_slot(self) -> I64:
        """The slot of the first token."""
        return self.kv_len - self.n_new


def check(batch: Batch, limits: Capabilities) -> Spans:
    """Where the sequences of a batch lie.

    Raises DriverError for a batch that contradicts itself or the driver's limits.
    """
    if batch.page_size != limits.page_size:
        raise DriverError(f"the batch has pages of {batch.page_size} tokens, the driver of {limits.page_size}")
    _lengths(batch)
    if max(batch.n_tokens, batch.n_rows) > limits.max_batch_tokens:
        raise DriverError(f"{batch.n_tokens} tokens and {batch.n_rows} rows in a batch; the driver takes {limits.max_batch_tokens}")
    for name, values, limit in (
        ("token", batch.tokens, limits.vocab_size),
        ("position", batch.positions, limits.max_positions),
        ("page index", batch.kv_indices, limits.n_pages),
        ("page copied from", batch.copy_src, limits.n_pages),
        ("page copied to", batch.copy_dst, limits.n_pages),
        ("page swapped out", batch.swap_out_src, limits.n_pages),
        ("page swapped in to", batch.swap_in_dst, limits.n_pages),
        ("host slot swapped out to", batch.swap_out_dst, limits.host_pages),
        ("host slot swapped in from", batch.swap_in_src, limits.host_pages),
        ("row_token", batch.row_token, batch.n_tokens),
    ):
        if len(values) and values.max() >= limit:
            raise DriverError(f"{name} {values.max()} is not below {limit}")
    indptr("qo_indptr", batch.qo_indptr, batch.n_tokens, strict=True)
    indptr("kv_indptr", batch.kv_indptr, len(batch.kv_indices), strict=True)
    indptr("mask_indptr", batch.mask_indptr, len(batch.mask_runs), strict=False)
    if (batch.row_token[1:] < batch.row_token[:-1]).any():
        raise DriverError("row_token descends")
    spans = _spans(batch)
    if len(batch.mask_runs):
        _masks(batch, spans)
    if len(batch.copy_src) or len(batch.swap_in_src) or len(batch.swap_out_src):
        _copies(batch)
    _page_users(batch, spans, limits.n_pages)
    return spans


def indptr(name: str, values: U32, end: int, *, strict: bool) -> None:
    """Raises DriverError where offsets do not rise from 0 to `end`; strictly: each by one at least."""
    rises = values[1:] > values[:-1] if strict else values[1:] >= values[:-1]
    if not len(values) or values[0] != 0 or values[-1] != end or not rises.all():
        raise DriverError(f"{name} does not rise from 0 to {end}")


def lengths(*arrays: tuple[str, U32, int]) -> None:
    """Raises DriverError where an array, with its name, has another length than the one beside it."""
    for name, values, expected in arrays:
        if len(values) != expected:
            raise DriverError(f"{name} has {len(values)} elements, not {expected}")


def mask_of(batch: Batch, token_idx: int) -> list[int]:
    """The run lengths of a token's mask; none: causality alone."""
    runs: list[int] = batch.mask_runs[batch.mask_indptr[token_idx] : batch.mask_indptr[token_idx + 1]].tolist()
    return runs


def _lengths(batch: Batch) -> None:
    n_tokens, n_seqs = batch.n_tokens, batch.n_seqs
    lengths(
        ("tokens", batch.tokens, n_tokens),
        ("positions", batch.positions, n_tokens),
        ("qo_indptr", batch.qo_indptr, n_seqs + 1),
        ("kv_indptr", batch.kv_indptr, n_seqs + 1),
        ("kv_last_page_len", batch.kv_last_page_len, n_seqs),
        ("row_token", batch.row_token, batch.n_rows),
        ("row_keep", batch.row_keep, batch.n_rows),
        ("mask_indptr", batch.mask_indptr, n_tokens + 1),
        ("copy_dst", batch.copy_dst, len(batch.copy_src)),
        ("swap_out_dst", batch.swap_out_dst, len(batch.swap_out_src)),
        ("swap_in_dst", batch.swap_in_dst, len(batch.swap_in_src)),
        ("seq_reread", batch.seq_reread, n_seqs if len(batch.seq_reread) else 0),
    )


def _spans(batch: Batch) -> Spans:
    qo_indptr, kv_indptr = batch.qo_indptr.astype(np.int64), batch.kv_indptr.astype(np.int64)
    n_new, n_pages = qo_indptr[1:] - qo_indptr[:-1], kv_indptr[1:] - kv_indptr[:-1]
    last = batch.kv_last_page_len.astype(np.int64)
    kv_len = (n_pages - 1) * batch.page_size + last
    reread = batch.seq_reread != 0 if len(batch.seq_reread) else np.zeros(batch.n_seqs, np.bool_)
    for is_wrong, what in (
        ((last < 1) | (last > batch.page_size), "has {n_pages} pages with {last} tokens in the last"),
        (n_new > kv_len, "has {n_new} tokens for {kv_len} slots"),
        (reread & (n_new != 1), "re-reads {n_new} tokens; one is possible"),
    ):
        if is_wrong.any():
            seq = int(is_wrong.argmax())
            raise DriverError(f"sequence {seq} " + what.format(n_pages=n_pages[seq], last=last[seq], n_new=n_new[seq], kv_len=kv_len[seq]))
    return Spans(n_new, n_pages, kv_len, reread)


def _masks(batch: Batch, spans: Spans) -> None:
    """A mask covers slots of its sequence, and allows one that causality does."""
    masked = np.flatnonzero(batch.mask_indptr[1:] > batch.mask_indptr[:-1])
    owners = np.searchsorted(batch.qo_indptr, masked, side="right") - 1
    for token_idx, seq_idx in zip(masked.tolist(), owners.tolist(), strict=True):
        runs, length = np.array(mask_of(batch, token_idx), np.int64), int(spans.kv_len[seq_idx])
        if (covered := int(runs.sum())) > length:
            raise DriverError(f"token {token_idx}: its mask covers {covered} slots of {length}")
        n_seen = length - (int(batch.qo_indptr[seq_idx + 1]) - token_idx) + 1
        starts = (np.cumsum(runs) - runs)[1::2]
        if not ((runs[1::2] > 0) & (starts < n_seen)).any():
            raise DriverError(f"token {token_idx}: its mask allows no slot that causality does")


def _copies(batch: Batch) -> None:
    """What is copied to is copied to once, and a copy comes from what no copy of its kind goes to."""
    targets = [*batch.copy_dst.tolist(), *batch.swap_in_dst.tolist()]
    if len(set(targets)) < len(targets) or set(batch.copy_dst.tolist()) & set(batch.copy_src.tolist()):
        raise DriverError("a page is copied or swapped in to twice, or copied from and to")
    slots = batch.swap_out_dst.tolist()
    if len(set(slots)) < len(slots) or set(slots) & set(batch.swap_in_src.tolist()):
        raise DriverError("a host slot is swapped out to twice, or swapped out to and in from")


def _page_users(batch: Batch, spans: Spans, n_pages: int) -> None:
    """A page that one sequence writes is of no use to another."""
    pages = batch.kv_indices
    owner = np.repeat(np.arange(batch.n_seqs), spans.n_pages)
    # Of what is re-read, nothing is written; otherwise the last slots are, up to the last page.
    first_page = np.where(spans.is_reread, spans.n_pages, spans.first_slot // batch.page_size)
    is_written = np.arange(len(pages)) >= np.repeat(batch.kv_indptr[:-1] + first_page, spans.n_pages)
    written, writers = pages[is_written], owner[is_written]
    # Where a page stands twice, the later one stays.
    newest = np.full(n_pages, -1)
    newest[written] = np.arange(len(written))
    is_twice = newest[written] != np.arange(len(written))
    if is_twice.any():
        first = int(is_twice.argmax())
        page = int(written[first])
        raise DriverError(f"page {page} is written by sequence {writers[first]} and by {writers[newest[page]]}")
    writer = np.full(n_pages, -1)
    writer[written] = writers
    is_foreign = (writer[pages] >= 0) & (writer[pages] != owner)
    if is_foreign.any():
        first = int(is_foreign.argmax())
        page = int(pages[first])
        raise DriverError(f"page {page} is written by sequence {writer[page]} and used by sequence {owner[first]}")
