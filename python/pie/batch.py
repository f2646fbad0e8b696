"""The batch as a driver sees it: a typed view of the arena, without a copy.

The arena is an array of little-endian 32-bit words: a header of 96 words, then arrays at the offsets that the header
names. `docs/reference/driver.md` tells what a driver does with each. Symbols: T tokens, B sequences, R rows of logits
wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from pie.errors import PieError

if TYPE_CHECKING:
    from typing_extensions import Buffer

U32: TypeAlias = npt.NDArray[np.uint32]
U64: TypeAlias = npt.NDArray[np.uint64]

MAGIC = 0x42454950
LAYOUT_VERSION = 3
HEADER_WORDS = 96
EMBEDDING = 2
"""The word of `row_keep` by which the hidden state of a token is wanted in place of its logits."""
ARRAYS = (
    "tokens",
    "positions",
    "qo_indptr",
    "kv_indptr",
    "kv_indices",
    "kv_last_page_len",
    "seq_context",
    "seq_request",
    "seq_adapter",
    "seq_adapter_version",
    "seq_zo_seed",
    "row_token",
    "mask_indptr",
    "mask_runs",
    "copy_src",
    "copy_dst",
    "row_sampler",
    "row_slot",
    "row_draws",
    "row_mask_indptr",
    "row_mask_runs",
    "seq_media",
    "seq_reread",
    "swap_out_src",
    "swap_out_dst",
    "swap_in_src",
    "swap_in_dst",
    "row_keep",
    "seq_follows",
)
"""The arrays in the order of their (offset, length) pairs in the header."""

_FIRST_PAIR = 16


class Batch:
    """A batch of T tokens from B sequences, of which R rows of logits are wanted.

    All arrays are views and read-only.
    """

    __slots__ = ("_pairs", "words")

    words: U32
    """The whole arena, uint32."""

    def __init__(self, words: U32) -> None:
        if len(words) < HEADER_WORDS or int(words[0]) != MAGIC or int(words[1]) != LAYOUT_VERSION or int(words[2]) != len(words):
            raise PieError(
                "internal",
                f"an array of {len(words)} words is not a batch of layout {LAYOUT_VERSION}: "
                "the engine and the Python package are of different versions",
            )
        self.words = words
        self._pairs = words[_FIRST_PAIR : _FIRST_PAIR + 2 * len(ARRAYS)].tolist()

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> Batch:
        """The view of an arena that supports the buffer protocol; the arena lives as long as the view."""
        return cls(np.frombuffer(memoryview(buffer), dtype="<u4"))

    def array(self, name: str) -> U32:
        """The words of the array of that name of `ARRAYS`."""
        pair = 2 * ARRAYS.index(name)
        offset, length = self._pairs[pair], self._pairs[pair + 1]
        if offset + length > len(self.words):
            raise PieError("internal", f"{name} (offset {offset}, length {length}) leaves the batch of {len(self.words)} words")
        return self.words[offset : offset + length]

    def _wide(self, name: str) -> U64:
        return self.array(name).view("<u8")

    @property
    def id(self) -> int:
        """The name of the batch, by which it is completed."""
        return int(self.words[3]) | int(self.words[4]) << 32

    @property
    def before(self) -> int:
        """The number of the batch whose rows sequences of this one follow; 0 where none does."""
        return int(self.words[9]) | int(self.words[10]) << 32

    @property
    def page_size(self) -> int:
        """Tokens of a page."""
        return int(self.words[5])

    @property
    def n_tokens(self) -> int:
        """T."""
        return int(self.words[6])

    @property
    def n_seqs(self) -> int:
        """B."""
        return int(self.words[7])

    @property
    def n_rows(self) -> int:
        """R."""
        return int(self.words[8])

    @property
    def tokens(self) -> U32:
        """Token ids [T]."""
        return self.array("tokens")

    @property
    def positions(self) -> U32:
        """Rotary positions [T]."""
        return self.array("positions")

    @property
    def qo_indptr(self) -> U32:
        """Where the tokens of each sequence begin and end [B + 1]."""
        return self.array("qo_indptr")

    @property
    def kv_indptr(self) -> U32:
        """Where the pages of each sequence begin and end in `kv_indices` [B + 1]."""
        return self.array("kv_indptr")

    @property
    def kv_indices(self) -> U32:
        """Page indices of all sequences, in storage order."""
        return self.array("kv_indices")

    @property
    def kv_last_page_len(self) -> U32:
        """Tokens in the last page of each sequence, those of this batch included [B]."""
        return self.array("kv_last_page_len")

    @property
    def seq_context(self) -> U64:
        """Context of each sequence [B]."""
        return self._wide("seq_context")

    @property
    def seq_request(self) -> U64:
        """Request of each sequence [B]."""
        return self._wide("seq_request")

    @property
    def seq_adapter(self) -> U64:
        """Adapter of each sequence [B]; 0 is none."""
        return self._wide("seq_adapter")

    @property
    def seq_adapter_version(self) -> U32:
        """Version of the adapter of each sequence [B]."""
        return self.array("seq_adapter_version")

    @property
    def seq_zo_seed(self) -> U32:
        """Whether the adapter of each sequence is perturbed, and the halves of the seed, the low one first [B, 3]."""
        return self.array("seq_zo_seed").reshape(-1, 3)

    @property
    def seq_media(self) -> U64:
        """Media of each sequence [B]; 0 is none."""
        return self._wide("seq_media")

    @property
    def seq_reread(self) -> U32:
        """1 where the slots of a sequence's tokens hold their keys and values already [B], or empty: nowhere."""
        return self.array("seq_reread")

    @property
    def seq_follows(self) -> U32:
        """1 plus the row of the batch before that draws the only token of a sequence, else 0 [B]."""
        return self.array("seq_follows")

    @property
    def row_token(self) -> U32:
        """The token of each row of logits [R], as an index into `tokens`, never descending."""
        return self.array("row_token")

    @property
    def mask_indptr(self) -> U32:
        """Where the attention row of each token begins and ends in `mask_runs` [T + 1]; an empty one: causal only."""
        return self.array("mask_indptr")

    @property
    def mask_runs(self) -> U32:
        """Attention rows as alternating run lengths over the slots, forbidden first."""
        return self.array("mask_runs")

    @property
    def row_sampler(self) -> U32:
        """How each row is drawn from [R, 8]: kind, temperature, top-k, top-p, min-p, seed (2 words), position."""
        return self.array("row_sampler").reshape(-1, 8)

    @property
    def row_slot(self) -> U32:
        """Which of the sampled rows of its pass each row is [R]."""
        return self.array("row_slot")

    @property
    def row_draws(self) -> U32:
        """Independent draws from each row [R]."""
        return self.array("row_draws")

    @property
    def row_mask_indptr(self) -> U32:
        """Where the token mask of each row begins and ends in `row_mask_runs` [R + 1]; an empty one: no restriction."""
        return self.array("row_mask_indptr")

    @property
    def row_mask_runs(self) -> U32:
        """Token masks as alternating run lengths over the vocabulary, forbidden first."""
        return self.array("row_mask_runs")

    @property
    def row_keep(self) -> U32:
        """1 where the row itself is wanted, beside what is drawn from it; EMBEDDING where it is a hidden state [R]."""
        return self.array("row_keep")

    @property
    def swap_out_src(self) -> U32:
        """Pages copied to host memory, before anything else."""
        return self.array("swap_out_src")

    @property
    def swap_out_dst(self) -> U32:
        """Host slots that they are copied to."""
        return self.array("swap_out_dst")

    @property
    def swap_in_src(self) -> U32:
        """Host slots copied back, after the swap-outs and before the page copies."""
        return self.array("swap_in_src")

    @property
    def swap_in_dst(self) -> U32:
        """Pages that they are copied to."""
        return self.array("swap_in_dst")

    @property
    def copy_src(self) -> U32:
        """Pages copied from, after the swaps and before anything is computed."""
        return self.array("copy_src")

    @property
    def copy_dst(self) -> U32:
        """Pages copied to."""
        return self.array("copy_dst")
