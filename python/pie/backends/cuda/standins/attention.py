"""`flashinfer.BatchPrefillWithPagedKVCacheWrapper`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pie.backends.cuda.standins.sums import PIECE, exponential, paired_sum

_LOG2_E = math.log2(math.e)
_Piece: TypeAlias = tuple[slice, Tensor, int]


class BatchPrefillWithPagedKVCacheWrapper:
    """Attention over pages: `plan` for a batch, `run` for each layer.

    With the buffers of a graph `run` goes by what those hold, as a graph does, and a plan fills them. As in FlashInfer,
    where a plan is given packed masks, it writes the bits before each piece to `_mask_indptr_buf`, and `run` takes them
    for bytes.

    The bits of a token's row depend on the slots that it sees alone: what it does not see adds zeros.
    """

    def __init__(
        self,
        float_workspace_buffer: Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: Tensor | None = None,
        paged_kv_indptr_buf: Tensor | None = None,
        paged_kv_indices_buf: Tensor | None = None,
        paged_kv_last_page_len_buf: Tensor | None = None,
        custom_mask_buf: Tensor | None = None,
        mask_indptr_buf: Tensor | None = None,
        backend: str = "auto",
    ) -> None:
        if kv_layout != "NHD":
            raise ValueError("pages are laid out as NHD")
        self._custom_mask_buf, self._mask_indptr_buf = custom_mask_buf, mask_indptr_buf
        buffers = (qo_indptr_buf, paged_kv_indptr_buf, paged_kv_indices_buf, paged_kv_last_page_len_buf)
        self._buffers = [buffer for buffer in buffers if buffer is not None] if use_cuda_graph else []
        self._pieces: list[_Piece] = []
        self._page_size = 1
        self._causal = True
        self._shape = (0, 0, 0)
        """Heads of queries, those of keys and values, and their size, as planned."""
        self._dtype: torch.dtype | None = None
        """That of queries; None: nothing is planned."""
        self._scale = 1.0

    def reset_workspace_buffer(self, float_workspace_buffer: Tensor, int_workspace_buffer: Tensor) -> None:
        """Takes other memory for splits and plans; neither is used here."""

    def plan(
        self,
        qo_indptr: Tensor,
        paged_kv_indptr: Tensor,
        paged_kv_indices: Tensor,
        paged_kv_last_page_len: Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        *,
        packed_custom_mask: Tensor | None = None,
        causal: bool = False,
        sm_scale: float | None = None,
        q_data_type: torch.dtype = torch.float16,
        **_how: Any,
    ) -> None:
        """Takes the pieces of a batch; `packed_custom_mask`, uint8, holds which slots each token of each sees."""
        self._shape, self._page_size, self._causal = (num_qo_heads, num_kv_heads, head_dim_qk), page_size, causal
        self._scale = head_dim_qk**-0.5 if sm_scale is None else sm_scale
        self._dtype = q_data_type
        arrays = (qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)
        if self._buffers:
            if packed_custom_mask is not None:
                raise ValueError("custom_mask_buf must be initialized if a graph has masks")
            self._fill(arrays)
            return
        self._pieces = self._cut(*arrays)
        self._custom_mask_buf, self._mask_indptr_buf = packed_custom_mask, None
        if packed_custom_mask is not None:
            n_bits = [(tokens.stop - tokens.start) * length for tokens, _, length in self._pieces]
            self._mask_indptr_buf = torch.from_numpy(np.cumsum([0, *n_bits])).int()

    def _fill(self, arrays: tuple[Tensor, ...]) -> None:
        """Puts what is planned where a graph reads it."""
        qo_indptr, _, indices, _ = self._buffers
        if len(arrays[0]) != len(qo_indptr):
            raise ValueError(f"the batch size of a graph is fixed: {len(arrays[0]) - 1} in the place of {len(qo_indptr) - 1}")
        if len(arrays[2]) > len(indices):
            raise ValueError("the length of paged_kv_indices exceeds the allocated buffer size")
        for buffer, values in zip(self._buffers, arrays, strict=True):
            buffer[: len(values)].copy_(values)

    def _cut(self, qo_indptr: Tensor, kv_indptr: Tensor, kv_indices: Tensor, last_page_len: Tensor) -> list[_Piece]:
        """Of each piece its tokens, its pages and how many slots it has."""
        tokens, ends = pairwise(qo_indptr.tolist()), pairwise(kv_indptr.tolist())
        return [
            (slice(first, end), kv_indices[first_page:end_page].long(), (end_page - first_page - 1) * self._page_size + last)
            for (first, end), (first_page, end_page), last in zip(tokens, ends, last_page_len.tolist(), strict=True)
        ]

    def _visible(self, index: int, n: int, length: int) -> Tensor:
        """Which slots each token of a piece sees, bool [tokens, slots]."""
        if self._custom_mask_buf is None or self._mask_indptr_buf is None:
            own = torch.arange(length - n, length)[:, None]
            return torch.arange(length) <= own if self._causal else torch.ones(n, length, dtype=torch.bool)
        first = int(self._mask_indptr_buf[index])
        packed = self._custom_mask_buf[first : first + -(-n * length // 8)]
        bits = (packed[:, None] >> torch.arange(8, dtype=torch.uint8, device=packed.device)) & 1
        return bits.flatten()[: n * length].reshape(n, length).bool()

    def run(self, q: Tensor, paged_kv_cache: Tensor, *, return_lse: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """The outputs [T, H, D] of queries [T, H, D] over keys and values [pages, 2, slots, G, D].

        With `return_lse` the logarithms to base 2 of the sums of each head too, float32 [T, H]. Of tokens in no piece
        they are not numbers: FlashInfer leaves there what there was.
        """
        if self._dtype != q.dtype or (q.shape[1], paged_kv_cache.shape[3], q.shape[2]) != self._shape:
            raise RuntimeError(f"planned for queries of {self._dtype} and {self._shape}, not of {q.dtype} and {tuple(q.shape)}")
        out = torch.zeros_like(q)
        sums = torch.full(q.shape[:2], torch.nan, dtype=torch.float32, device=q.device)
        for index, (tokens, pages, length) in enumerate(self._cut(*self._buffers) if self._buffers else self._pieces):
            stored = paged_kv_cache[pages.to(paged_kv_cache.device)]
            # [G, 1, 1, slots, D]
            key, value = (stored[:, half].flatten(0, 1)[:length].float().transpose(0, 1)[:, None, None] for half in (0, 1))
            visible = self._visible(index, tokens.stop - tokens.start, length).to(q.device)
            n_at_once = max(1, PIECE // (q.shape[1] * length * q.shape[2]))
            for first in range(tokens.start, tokens.stop, n_at_once):
                end = min(first + n_at_once, tokens.stop)
                seen = visible[first - tokens.start : end - tokens.start]
                out[first:end], sums[first:end] = self._attended(q[first:end], key, value, seen)
        return (out, sums) if return_lse else out

    def _attended(self, q: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs of some tokens, each by itself, and the logarithms of their sums."""
        # [G, heads of a group, tokens, 1, D]
        queries = q.float().reshape(len(q), len(key), -1, q.shape[-1]).permute(1, 2, 0, 3)[..., None, :]
        scores = torch.where(seen, paired_sum(queries * key) * self._scale, -torch.inf)
        top = scores.amax(dim=-1, keepdim=True)
        shares = exponential(scores - top)
        # What is hidden may hold numbers that are none.
        weighted = torch.where(seen[..., None], shares[..., None] * value, 0.0).transpose(-1, -2)
        total = paired_sum(shares)
        attended = paired_sum(weighted) / total[..., None]
        sums = torch.log2(total) + top[..., 0] * _LOG2_E
        return attended.permute(2, 0, 1, 3).flatten(1, 2).to(q.dtype), sums.permute(2, 0, 1).flatten(1, 2)
