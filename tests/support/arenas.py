"""Batches for drivers, built without the engine."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass, field

import numpy as np

from pie.batch import ARRAYS, HEADER_WORDS, LAYOUT_VERSION, MAGIC, Batch


@dataclass(frozen=True)
class Feed:
    """Tokens of one sequence in a batch."""

    tokens: Many[int]
    pages: Many[int]
    """Pages of the whole sequence, in storage order; more than needed is fine."""
    start: int = 0
    """Slots that are stored before."""
    rows: Many[int] = ()
    """Tokens whose logits are wanted, as indices into `tokens`."""
    masks: dict[int, Many[int]] = field(default_factory=dict)
    """Attention rows as run lengths, by index into `tokens`."""
    positions: Many[int] | None = None
    """By default the slots."""
    reread: bool = False
    adapter: int = 0


def batch(feeds: Many[Feed], *, page_size: int, copies: Many[tuple[int, int]] = (), batch_id: int = 0) -> Batch:
    """The arena of a batch."""
    arrays: dict[str, list[int]] = {name: [] for name in ARRAYS}
    for name in ("qo_indptr", "kv_indptr", "mask_indptr", "row_mask_indptr"):
        arrays[name].append(0)
    for seq_idx, feed in enumerate(feeds):
        first, kv_len = len(arrays["tokens"]), feed.start + len(feed.tokens)
        n_pages = -(-kv_len // page_size)
        assert n_pages <= len(feed.pages), "the test gave too few pages"
        arrays["tokens"] += feed.tokens
        arrays["positions"] += range(feed.start, kv_len) if feed.positions is None else feed.positions
        arrays["qo_indptr"].append(first + len(feed.tokens))
        arrays["kv_indices"] += feed.pages[:n_pages]
        arrays["kv_indptr"].append(len(arrays["kv_indices"]))
        arrays["kv_last_page_len"].append(kv_len - (n_pages - 1) * page_size)
        arrays["row_token"] += [first + row for row in feed.rows]
        for token_idx in range(len(feed.tokens)):
            arrays["mask_runs"] += feed.masks.get(token_idx, ())
            arrays["mask_indptr"].append(len(arrays["mask_runs"]))
        arrays["seq_context"] += [seq_idx + 1, 0]
        arrays["seq_request"] += [seq_idx + 1, 0]
        arrays["seq_adapter"] += [feed.adapter, 0]
        arrays["seq_media"] += [0, 0]
        arrays["seq_reread"].append(int(feed.reread))
    arrays["copy_src"] = [src for src, _ in copies]
    arrays["copy_dst"] = [dst for _, dst in copies]
    header, offset = np.zeros(HEADER_WORDS, np.uint32), HEADER_WORDS
    for pair, name in enumerate(ARRAYS):
        header[16 + 2 * pair : 18 + 2 * pair] = offset, len(arrays[name])
        offset += len(arrays[name])
    counts = len(arrays["tokens"]), len(feeds), len(arrays["row_token"])
    header[:9] = MAGIC, LAYOUT_VERSION, offset, batch_id & 0xFFFFFFFF, batch_id >> 32, page_size, *counts
    return Batch(np.concatenate([header, np.array([word for name in ARRAYS for word in arrays[name]], np.uint32)]))
