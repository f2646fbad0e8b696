"""Plain decode batches: one token of each sequence, from whose row one token is drawn, and nothing else.

Most batches are of this kind, and what it costs to look at one is paid in each step. So they are recognized by few
operations on whole arrays. What is not recognized is checked by `pie.backends.checks`, which says what is wrong, or
that nothing is. Symbols: B sequences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pie.backends.base import Capabilities
from pie.backends.cuda.sampler_words import SAMPLER_WORDS, TEMPERATURE, filtered_rows, random_rows
from pie.batch import Batch
from pie.batch_layout import ARRAYS, FIELDS_AT, HEAD_PAGE_SIZE, HEAD_ROWS, HEAD_SEQUENCES, HEAD_TOKENS, U32

_WORD_BYTES = 4

_AT = {name: FIELDS_AT + 2 * index for index, name in enumerate(ARRAYS)}
_PER_SEQUENCE = {
    "tokens": (1, 0),
    "positions": (1, 0),
    "qo_indptr": (1, 1),
    "kv_indptr": (1, 1),
    "kv_last_page_len": (1, 0),
    "row_token": (1, 0),
    "mask_indptr": (1, 1),
    "row_sampler": (SAMPLER_WORDS, 0),
    "row_slot": (1, 0),
    "row_draws": (1, 0),
    "row_mask_indptr": (1, 1),
    "row_keep": (1, 0),
    "seq_adapter": (2, 0),
    "seq_media": (2, 0),
    "seq_reread": (1, 0),
    "seq_follows": (1, 0),
}
"""How long an array is: so many words for each sequence, and so many more."""
_LENGTHS = [(_AT[name], per, more) for name, (per, more) in _PER_SEQUENCE.items()]
_LENGTHS += [
    (_AT[name], 0, 0)
    for name in ("mask_runs", "row_mask_runs", "copy_src", "copy_dst", "swap_out_src", "swap_out_dst", "swap_in_src", "swap_in_dst")
]
_ZEROS = [_AT[name] for name in ("mask_indptr", "row_mask_indptr", "row_keep", "seq_adapter", "seq_media", "seq_reread")]
_COUNTING = [_AT[name] for name in ("qo_indptr", "row_token")]


class Plain(NamedTuple):
    """A plain decode batch. The arrays are views of its arena."""

    n_seqs: int
    """B."""
    tokens: U32
    positions: U32
    kv_indptr: U32
    kv_indices: U32
    kv_last_page_len: U32
    follows: U32
    """[B]: 1 plus the row of the batch before whose draw is the token; 0: none."""
    most_followed: int
    """The greatest of `follows`."""
    pages: U32
    """The page that the token of each sequence is written to, [B]."""
    sampler: U32
    """[B * SAMPLER_WORDS]."""
    row_slot: U32
    is_random: bool
    """Whether a token is drawn at random."""
    n_filtered: int
    """How many are drawn at random with top-k or top-p."""


class PlainBatches:
    """Recognizes plain decode batches of a driver."""

    def __init__(self, limits: Capabilities) -> None:
        self._limits = limits
        most = limits.max_batch_tokens
        self._zeros = bytes(_WORD_BYTES * (2 * most + 2))
        self._ones = np.ones(most, np.uint32).tobytes()
        self._numbers = np.arange(most + 1, dtype=np.uint32)
        self._counting = self._numbers.tobytes()
        self._is_written = np.zeros(limits.n_pages, np.bool_)
        self._writer = np.zeros(limits.n_pages, np.uint32)
        """The last sequence that writes a page, of those that are looked at."""

    def find(self, batch: Batch) -> Plain | None:
        """The batch where it is plain and keeps to the limits; else None."""
        head, words, limits = batch.head, batch.words, self._limits
        n = head[HEAD_TOKENS]
        if n != head[HEAD_SEQUENCES] or n != head[HEAD_ROWS] or not 0 < n <= limits.max_batch_tokens:
            return None
        if head[HEAD_PAGE_SIZE] != limits.page_size or not self._has_lengths(head, n, len(words)):
            return None
        if not self._has_constants(head, words, n):
            return None
        found = self._arrays(head, words, n)
        return found if found is not None and self._is_within(found) else None

    @staticmethod
    def _has_lengths(head: list[int], n: int, n_words: int) -> bool:
        """Whether each array is as long as in a plain batch, and lies in the arena."""
        for at, per, more in _LENGTHS:
            length = head[at + 1]
            if length != per * n + more or head[at] + length > n_words:
                return False
        indices = _AT["kv_indices"]
        return head[indices] + head[indices + 1] <= n_words

    def _has_constants(self, head: list[int], words: U32, n: int) -> bool:
        """Whether the arrays that say nothing new in a plain batch are as they must be."""
        for at in _ZEROS:
            start, length = head[at], head[at + 1]
            if words[start : start + length].tobytes() != self._zeros[: _WORD_BYTES * length]:
                return False
        for at in _COUNTING:
            start, length = head[at], head[at + 1]
            if words[start : start + length].tobytes() != self._counting[: _WORD_BYTES * length]:
                return False
        draws = head[_AT["row_draws"]]
        return words[draws : draws + n].tobytes() == self._ones[: _WORD_BYTES * n]

    @staticmethod
    def _arrays(head: list[int], words: U32, n: int) -> Plain | None:
        def array(name: str, length: int) -> U32:
            start = head[_AT[name]]
            return words[start : start + length]

        kv_indptr, n_indices = array("kv_indptr", n + 1), head[_AT["kv_indices"] + 1]
        rises = kv_indptr[1:] > kv_indptr[:-1]
        if kv_indptr[0] != 0 or kv_indptr[n] != n_indices or not rises.all():
            return None
        kv_indices, sampler, follows = array("kv_indices", n_indices), array("row_sampler", SAMPLER_WORDS * n), array("seq_follows", n)
        is_random, n_filtered = _randomness(sampler)
        return Plain(
            n_seqs=n,
            tokens=array("tokens", n),
            positions=array("positions", n),
            kv_indptr=kv_indptr,
            kv_indices=kv_indices,
            kv_last_page_len=array("kv_last_page_len", n),
            follows=follows,
            most_followed=int(follows.max()),
            pages=kv_indices[kv_indptr[1:] - np.uint32(1)],
            sampler=sampler,
            row_slot=array("row_slot", n),
            is_random=is_random,
            n_filtered=n_filtered,
        )

    def _is_within(self, plain: Plain) -> bool:
        """Whether every number is within the limits, and every page that is written is used once."""
        limits, is_written, sequences = self._limits, self._is_written, self._numbers[: plain.n_seqs]
        if plain.tokens.max() >= limits.vocab_size or plain.positions.max() >= limits.max_positions:
            return False
        # What is 0 becomes the greatest number.
        if (plain.kv_last_page_len - np.uint32(1)).max() >= limits.page_size or plain.kv_indices.max() >= limits.n_pages:
            return False
        self._writer[plain.pages] = sequences
        if (self._writer[plain.pages] != sequences).any():
            return False
        is_written[plain.pages] = True
        # No page is beyond the pool, as was seen above: to clip costs a third of looking at each once more.
        n_uses = int(np.count_nonzero(is_written.take(plain.kv_indices, mode="clip")))
        is_written[plain.pages] = False
        return n_uses == plain.n_seqs


def _randomness(sampler: U32) -> tuple[bool, int]:
    """Whether a row is drawn from at random, and how many of those have top-k or top-p."""
    rows = sampler.reshape(-1, SAMPLER_WORDS)
    if not rows[:, TEMPERATURE].any():
        return False, 0
    is_random = random_rows(rows)
    return bool(is_random.any()), int(np.count_nonzero(is_random & filtered_rows(rows)))
