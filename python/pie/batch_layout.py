"""The layout of a batch. Generated from rust/core/src/batch/layout.rs by tools/gen_driver_docs.py; do not edit it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

U32: TypeAlias = npt.NDArray[np.uint32]
U64: TypeAlias = npt.NDArray[np.uint64]

MAGIC = 0x42454950
LAYOUT_VERSION = 3
HEADER_WORDS = 96
FIELDS_AT = 16
"""Where the pairs of first word and length begin."""
KEEP_DRAWS = 0
"""In `row_keep`: nothing but what is drawn."""
KEEP_LOGITS = 1
"""In `row_keep`: its logits."""
KEEP_EMBEDDING = 2
"""In `row_keep`: the hidden state of its token, in place of its logits. Nothing is drawn."""

HEAD_MAGIC = 0
HEAD_VERSION = 1
HEAD_WORDS = 2
HEAD_BATCH_ID = 3
HEAD_PAGE_SIZE = 5
HEAD_TOKENS = 6
HEAD_SEQUENCES = 7
HEAD_ROWS = 8
HEAD_BEFORE = 9

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
"""The arrays in their order."""


class BatchArrays:
    """The arrays of a batch by name. They are views and read-only."""

    __slots__ = ()

    def array(self, name: str) -> U32:
        """The words of the array of that name of `ARRAYS`."""
        raise NotImplementedError

    @property
    def tokens(self) -> U32:
        """uint32 [T].

        Token ids, sequence by sequence, each in the order of storage.
        """
        return self.array("tokens")

    @property
    def positions(self) -> U32:
        """uint32 [T].

        Positions, for rotary embeddings. They may repeat or jump; causality follows the order of storage.
        """
        return self.array("positions")

    @property
    def qo_indptr(self) -> U32:
        """uint32 [B + 1].

        The tokens of sequence b are `[qo_indptr[b], qo_indptr[b + 1])`, at least one.
        """
        return self.array("qo_indptr")

    @property
    def kv_indptr(self) -> U32:
        """uint32 [B + 1].

        The pages of sequence b are `kv_indices[kv_indptr[b]..kv_indptr[b + 1]]`, at least one.
        """
        return self.array("kv_indptr")

    @property
    def kv_indices(self) -> U32:
        """uint32 [kv_indptr[B]].

        Page ids in the order of storage. The new tokens of a sequence go to its last slots, in the order of storage.
        """
        return self.array("kv_indices")

    @property
    def kv_last_page_len(self) -> U32:
        """uint32 [B].

        Slots in use in the last page, the new tokens counted: 1 to the page size.
        """
        return self.array("kv_last_page_len")

    @property
    def seq_context(self) -> U64:
        """uint64 [B].

        The context of a sequence.
        """
        return self.array("seq_context").view("<u8")

    @property
    def seq_request(self) -> U64:
        """uint64 [B].

        The request of a sequence.
        """
        return self.array("seq_request").view("<u8")

    @property
    def seq_adapter(self) -> U64:
        """uint64 [B].

        Identity of the adapter; 0 is none.
        """
        return self.array("seq_adapter").view("<u8")

    @property
    def seq_adapter_version(self) -> U32:
        """uint32 [B].

        Version of the adapter.
        """
        return self.array("seq_adapter_version")

    @property
    def seq_zo_seed(self) -> U32:
        """uint32 [B, 3].

        Flag (1: perturb the adapter), and the seed of the perturbation.
        """
        return self.array("seq_zo_seed").reshape(-1, 3)

    @property
    def row_token(self) -> U32:
        """uint32 [R].

        Indices into the tokens whose rows of logits are wanted, never descending. A token may want several rows, each
        with a sampler of its own: they lie side by side, and a driver may compute them once.
        """
        return self.array("row_token")

    @property
    def mask_indptr(self) -> U32:
        """uint32 [T + 1].

        The mask of token t is `mask_runs[mask_indptr[t]..mask_indptr[t + 1]]`.
        """
        return self.array("mask_indptr")

    @property
    def mask_runs(self) -> U32:
        """uint32 [mask_indptr[T]].

        Attention masks as run lengths, forbidden first, 1 = allowed, over the slots `[0, length after the batch)` of
        the sequence, to be ANDed with causality. Beyond the last run everything is forbidden. No run: causality alone.
        """
        return self.array("mask_runs")

    @property
    def copy_src(self) -> U32:
        """uint32 [C].

        Pages to copy, whole, after the swaps and before anything is computed.
        """
        return self.array("copy_src")

    @property
    def copy_dst(self) -> U32:
        """uint32 [C].

        Where to. No page is both source and destination of a copy in one batch, or written by two copies or swap-ins.
        """
        return self.array("copy_dst")

    @property
    def row_sampler(self) -> U32:
        """uint32 [R, 8].

        Kind (0 argmax, 1 sample), temperature (f32), top-k (0: off), top-p (f32, 1: off), min-p (f32, 0: off), seed (2
        words), position. Position is the index in the context of the token that is drawn.
        """
        return self.array("row_sampler").reshape(-1, 8)

    @property
    def row_slot(self) -> U32:
        """uint32 [R].

        Which of the sampled rows of its pass a row is.
        """
        return self.array("row_slot")

    @property
    def row_draws(self) -> U32:
        """uint32 [R].

        Independent draws from the row; 0 where the row alone is wanted.
        """
        return self.array("row_draws")

    @property
    def row_mask_indptr(self) -> U32:
        """uint32 [R + 1].

        The token mask of row r is `row_mask_runs[row_mask_indptr[r]..row_mask_indptr[r + 1]]`.
        """
        return self.array("row_mask_indptr")

    @property
    def row_mask_runs(self) -> U32:
        """uint32 [row_mask_indptr[R]].

        Token masks as run lengths over the vocabulary. Applied where the token is drawn, never by a driver that answers
        with logits.
        """
        return self.array("row_mask_runs")

    @property
    def seq_media(self) -> U64:
        """uint64 [B].

        Digest of the media of a sequence; 0 is none.
        """
        return self.array("seq_media").view("<u8")

    @property
    def seq_reread(self) -> U32:
        """uint32 [B].

        1: the only token of the sequence is in its slot already. Its row is computed and nothing is written, since the
        page may be shared, and the adapter may be another one than the token was written with.
        """
        return self.array("seq_reread")

    @property
    def swap_out_src(self) -> U32:
        """uint32 [O].

        Pages to copy to host memory, whole, before anything else.
        """
        return self.array("swap_out_src")

    @property
    def swap_out_dst(self) -> U32:
        """uint32 [O].

        The host slots that they go to, each once.
        """
        return self.array("swap_out_dst")

    @property
    def swap_in_src(self) -> U32:
        """uint32 [I].

        Host slots to copy back, whole, after the swap-outs. None of them is swapped out to in the same batch.
        """
        return self.array("swap_in_src")

    @property
    def swap_in_dst(self) -> U32:
        """uint32 [I].

        The pages that they go to, each once.
        """
        return self.array("swap_in_dst")

    @property
    def row_keep(self) -> U32:
        """uint32 [R].

        1: the row itself is wanted, beside what is drawn from it. A driver that draws on the device answers such rows
        too. 2: wanted is the hidden state of the token in place of its logits, and nothing is drawn. The row holds as
        many values as the driver declares in `embeddings`, and zeros behind them.
        """
        return self.array("row_keep")

    @property
    def seq_follows(self) -> U32:
        """uint32 [B].

        1 plus the index of a row of the batch before: the only token of the sequence is the one that is drawn from that
        row, and its word in `tokens` is 0. 0: its tokens are in `tokens`, as in every batch for a driver that does not
        declare `follows`.
        """
        return self.array("seq_follows")
