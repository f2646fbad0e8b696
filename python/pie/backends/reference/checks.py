"""What a batch must keep before anything of it is computed."""

from __future__ import annotations

import numpy as np

from pie.backends.base import Capabilities, DriverError
from pie.batch import Batch
from pie.batch_layout import U32


def check(batch: Batch, limits: Capabilities) -> None:
    """Raises DriverError for a batch that contradicts itself or the driver's limits."""
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
        if (values >= limit).any():
            raise DriverError(f"{name} {values.max()} is not below {limit}")
    _indptr("qo_indptr", batch.qo_indptr, batch.n_tokens, strict=True)
    _indptr("kv_indptr", batch.kv_indptr, len(batch.kv_indices), strict=True)
    _indptr("mask_indptr", batch.mask_indptr, len(batch.mask_runs), strict=False)
    if (np.diff(batch.row_token.astype(np.int64)) < 0).any():
        raise DriverError("row_token descends")
    _sequences(batch)
    _masks(batch)
    _copies(batch)
    _page_users(batch)


def _lengths(batch: Batch) -> None:
    n_tokens, n_seqs = batch.n_tokens, batch.n_seqs
    for name, values, expected in (
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
    ):
        if len(values) != expected:
            raise DriverError(f"{name} has {len(values)} elements, not {expected}")


def _indptr(name: str, indptr: U32, end: int, *, strict: bool) -> None:
    if indptr[0] != 0 or indptr[-1] != end or (np.diff(indptr.astype(np.int64)) < int(strict)).any():
        raise DriverError(f"{name} does not rise from 0 to {end}")


def _sequences(batch: Batch) -> None:
    n_pages = np.diff(batch.kv_indptr.astype(np.int64))
    n_new = np.diff(batch.qo_indptr.astype(np.int64))
    for seq_idx in range(batch.n_seqs):
        last = int(batch.kv_last_page_len[seq_idx])
        if n_pages[seq_idx] == 0 or not 0 < last <= batch.page_size:
            raise DriverError(f"sequence {seq_idx} has {n_pages[seq_idx]} pages with {last} tokens in the last")
        kv_len = (n_pages[seq_idx] - 1) * batch.page_size + last
        if n_new[seq_idx] > kv_len:
            raise DriverError(f"sequence {seq_idx} has {n_new[seq_idx]} tokens for {kv_len} slots")
        if is_reread(batch, seq_idx) and n_new[seq_idx] != 1:
            raise DriverError(f"sequence {seq_idx} re-reads {n_new[seq_idx]} tokens; one is possible")


def _masks(batch: Batch) -> None:
    """A mask covers slots of its sequence, and allows one that causality does."""
    for seq_idx in range(batch.n_seqs):
        first, end = int(batch.qo_indptr[seq_idx]), int(batch.qo_indptr[seq_idx + 1])
        for token_idx in range(first, end):
            runs = mask_of(batch, token_idx)
            if not runs:
                continue
            covered, length = sum(runs), kv_len(batch, seq_idx)
            if covered > length:
                raise DriverError(f"token {token_idx}: its mask covers {covered} slots of {length}")
            n_seen = length - (end - token_idx) + 1
            starts = np.cumsum([0, *runs])[1::2][: len(runs) // 2]
            if not any(run and start < n_seen for start, run in zip(starts.tolist(), runs[1::2], strict=True)):
                raise DriverError(f"token {token_idx}: its mask allows no slot that causality does")


def _copies(batch: Batch) -> None:
    """What is copied to is copied to once, and a copy comes from what no copy of its kind goes to."""
    targets = [*batch.copy_dst.tolist(), *batch.swap_in_dst.tolist()]
    if len(set(targets)) < len(targets) or set(batch.copy_dst.tolist()) & set(batch.copy_src.tolist()):
        raise DriverError("a page is copied or swapped in to twice, or copied from and to")
    slots = batch.swap_out_dst.tolist()
    if len(set(slots)) < len(slots) or set(slots) & set(batch.swap_in_src.tolist()):
        raise DriverError("a host slot is swapped out to twice, or swapped out to and in from")


def _page_users(batch: Batch) -> None:
    """A page that one sequence writes is of no use to another."""
    written: dict[int, int] = {}
    for seq_idx in range(batch.n_seqs):
        first_slot, pages = written_from(batch, seq_idx), pages_of(batch, seq_idx).tolist()
        for page in pages[first_slot // batch.page_size :]:
            if page in written:
                raise DriverError(f"page {page} is written by sequence {written[page]} and by {seq_idx}")
            written[page] = seq_idx
    for seq_idx in range(batch.n_seqs):
        for page in pages_of(batch, seq_idx).tolist():
            if written.get(page, seq_idx) != seq_idx:
                raise DriverError(f"page {page} is written by sequence {written[page]} and used by sequence {seq_idx}")


def pages_of(batch: Batch, seq_idx: int) -> U32:
    """Pages of a sequence in storage order."""
    return batch.kv_indices[batch.kv_indptr[seq_idx] : batch.kv_indptr[seq_idx + 1]]


def kv_len(batch: Batch, seq_idx: int) -> int:
    """Slots of a sequence once the batch has been written."""
    return (len(pages_of(batch, seq_idx)) - 1) * batch.page_size + int(batch.kv_last_page_len[seq_idx])


def mask_of(batch: Batch, token_idx: int) -> list[int]:
    """The run lengths of a token's mask; none: causality alone."""
    runs: list[int] = batch.mask_runs[batch.mask_indptr[token_idx] : batch.mask_indptr[token_idx + 1]].tolist()
    return runs


def is_reread(batch: Batch, seq_idx: int) -> bool:
    """Whether the slots of a sequence's tokens hold their keys and values already."""
    return bool(len(batch.seq_reread) and batch.seq_reread[seq_idx])


def written_from(batch: Batch, seq_idx: int) -> int:
    """The first slot of a sequence that the batch writes; its end where it writes none."""
    n_new = int(batch.qo_indptr[seq_idx + 1] - batch.qo_indptr[seq_idx])
    length = kv_len(batch, seq_idx)
    # A page in use begins at a multiple of its size, so the end is rounded up: nothing of the last page is written.
    return -(-length // batch.page_size) * batch.page_size if is_reread(batch, seq_idx) or n_new == 0 else length - n_new
