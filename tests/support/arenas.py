"""Batches for drivers, built without the engine."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass, field

import numpy as np

from oracle.sampler import Sampler
from pie.batch import Batch
from pie.batch_layout import ARRAYS, HEADER_WORDS, KEEP_EMBEDDING, LAYOUT_VERSION, MAGIC

ONE = 0x3F800000
"""The bits of the float 1."""


@dataclass(frozen=True)
class Draw:
    """How a token is drawn from a row."""

    sampler: Sampler = field(default_factory=Sampler)
    seed: int = 0
    slot: int = 0
    mask: Many[int] = ()
    """Run lengths over the vocabulary, forbidden first."""

    def words(self, position: int) -> list[int]:
        """The words of `row_sampler`."""
        floats = np.array([self.sampler.temperature, self.sampler.top_p, self.sampler.min_p], np.float32).view(np.uint32).tolist()
        kind = int(self.sampler.temperature > 0)
        return [kind, floats[0], self.sampler.top_k, floats[1], floats[2], *halves(self.seed), position]


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
    draws: Many[Draw] = ()
    """How each row is drawn from; by default the greatest logit."""
    embeds: Many[int] = ()
    """Which of `rows` are hidden states in place of logits."""
    masks: Mapping[int, Many[int]] = field(default_factory=dict)
    """Attention rows as run lengths, by index into `tokens`."""
    positions: Many[int] | None = None
    """By default the slots."""
    reread: bool = False
    follows: int | None = None
    """The row of the batch before that draws its only token."""
    adapter: int = 0
    adapter_version: int = 0
    zo_seed: int | None = None
    media: int = 0


def halves(value: int) -> list[int]:
    """A 64-bit value as two words, the low one first."""
    return [value & 0xFFFFFFFF, value >> 32]


def batch(
    feeds: Many[Feed],
    *,
    page_size: int,
    copies: Many[tuple[int, int]] = (),
    swap_outs: Many[tuple[int, int]] = (),
    swap_ins: Many[tuple[int, int]] = (),
    batch_id: int = 0,
    before: int = 0,
) -> Batch:
    """The arena of a batch behind the batch `before`: `swap_outs` are (page, host slot), `swap_ins` (host slot, page),
    `copies` (page, page).
    """
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
        draws = feed.draws or [Draw(slot=slot) for slot in range(len(feed.rows))]
        for row_idx, (row, drawn) in enumerate(zip(feed.rows, draws, strict=True)):
            embeds = row_idx in feed.embeds
            arrays["row_token"].append(first + row)
            arrays["row_sampler"] += drawn.words(kv_len)
            arrays["row_slot"].append(drawn.slot)
            arrays["row_draws"].append(int(not embeds))
            arrays["row_mask_runs"] += drawn.mask
            arrays["row_mask_indptr"].append(len(arrays["row_mask_runs"]))
            arrays["row_keep"].append(KEEP_EMBEDDING if embeds else 0)
        for token_idx in range(len(feed.tokens)):
            arrays["mask_runs"] += feed.masks.get(token_idx, ())
            arrays["mask_indptr"].append(len(arrays["mask_runs"]))
        arrays["seq_context"] += halves(seq_idx + 1)
        arrays["seq_request"] += halves(seq_idx + 1)
        arrays["seq_adapter"] += halves(feed.adapter)
        arrays["seq_adapter_version"].append(feed.adapter_version)
        arrays["seq_zo_seed"] += [int(feed.zo_seed is not None), *halves(feed.zo_seed or 0)]
        arrays["seq_media"] += halves(feed.media)
        arrays["seq_reread"].append(int(feed.reread))
        arrays["seq_follows"].append(0 if feed.follows is None else feed.follows + 1)
    for name, pairs in (("copy", copies), ("swap_out", swap_outs), ("swap_in", swap_ins)):
        arrays[f"{name}_src"] = [src for src, _ in pairs]
        arrays[f"{name}_dst"] = [dst for _, dst in pairs]
    return arena(arrays, page_size=page_size, batch_id=batch_id, before=before)


def arena(arrays: Mapping[str, Many[int]], *, page_size: int, batch_id: int = 0, before: int = 0) -> Batch:
    """The arena of these arrays, whatever they hold."""
    header, offset = np.zeros(HEADER_WORDS, np.uint32), HEADER_WORDS
    for pair, name in enumerate(ARRAYS):
        header[16 + 2 * pair : 18 + 2 * pair] = offset, len(arrays[name])
        offset += len(arrays[name])
    counts = len(arrays["tokens"]), len(arrays["kv_last_page_len"]), len(arrays["row_token"])
    header[:11] = MAGIC, LAYOUT_VERSION, offset, *halves(batch_id), page_size, *counts, *halves(before)
    return Batch(np.concatenate([header, np.array([word for name in ARRAYS for word in arrays[name]], np.uint32)]))
