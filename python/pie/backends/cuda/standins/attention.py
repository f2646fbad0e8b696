"""`flashinfer.BatchPrefillWithPagedKVCacheWrapper`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pie.backends.cuda.standins.sums import exponential, paired_sum

_Piece: TypeAlias = tuple[slice, Tensor, Tensor]


class BatchPrefillWithPagedKVCacheWrapper:
    """Attention over pages: `plan` for a batch, `run` for each layer.

    With the buffers of a graph `run` goes by what those hold, as a graph does, and a plan fills them.

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
        self._pieces: list[_Piece] = []
        buffers = (qo_indptr_buf, paged_kv_indptr_buf, paged_kv_indices_buf, paged_kv_last_page_len_buf)
        self._buffers = [buffer for buffer in buffers if buffer is not None] if use_cuda_graph else []
        self._page_size = 1
        self._causal = True
        self._n_kv_heads = 1
        self._scale = 1.0

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
        custom_mask: Tensor | None = None,
        causal: bool = False,
        sm_scale: float | None = None,
        **_how: Any,
    ) -> None:
        """Takes the pieces of a batch; `custom_mask`, bool and flat, holds which slots each token of each sees."""
        self._n_kv_heads, self._page_size, self._causal = num_kv_heads, page_size, causal
        self._scale = head_dim_qk**-0.5 if sm_scale is None else sm_scale
        arrays = (qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)
        if self._buffers:
            if custom_mask is not None:
                raise ValueError("a graph has no buffer for masks")
            for buffer, values in zip(self._buffers, arrays, strict=True):
                buffer[: len(values)].copy_(values)
        else:
            self._pieces = self._cut(*arrays, custom_mask)

    def _cut(  # the arrays of a plan
        self, qo_indptr: Tensor, kv_indptr: Tensor, kv_indices: Tensor, last_page_len: Tensor, mask: Tensor | None
    ) -> list[_Piece]:
        """Of each piece its tokens, its pages and which slots each token sees."""
        pieces: list[_Piece] = []
        last, n_before = last_page_len.tolist(), 0
        tokens, ends = pairwise(qo_indptr.tolist()), pairwise(kv_indptr.tolist())
        for index, ((first, end), (first_page, end_page)) in enumerate(zip(tokens, ends, strict=True)):
            n, length = end - first, (end_page - first_page - 1) * self._page_size + last[index]
            if mask is None:
                own = torch.arange(length - n, length)[:, None]
                visible = torch.arange(length) <= own if self._causal else torch.ones(n, length, dtype=torch.bool)
            else:
                visible = mask[n_before : n_before + n * length].reshape(n, length)
                n_before += n * length
            pieces.append((slice(first, end), kv_indices[first_page:end_page].long(), visible))
        return pieces

    def _cut_by_buffers(self) -> list[_Piece]:
        qo_indptr, kv_indptr, kv_indices, last_page_len = self._buffers
        return self._cut(qo_indptr, kv_indptr, kv_indices, last_page_len, None)

    def run(self, q: Tensor, paged_kv_cache: Tensor) -> Tensor:
        """The outputs [T, H, D] of queries [T, H, D] over keys and values [pages, 2, slots, G, D]."""
        out = torch.zeros_like(q)
        for tokens, pages, visible in self._cut_by_buffers() if self._buffers else self._pieces:
            stored = paged_kv_cache[pages.to(paged_kv_cache.device)]
            length = visible.shape[1]
            # [G, 1, 1, slots, D]
            key, value = (stored[:, half].flatten(0, 1)[:length].float().transpose(0, 1)[:, None, None] for half in (0, 1))
            # [G, heads of a group, tokens, 1, D]
            queries = q[tokens].float().reshape(visible.shape[0], self._n_kv_heads, -1, q.shape[-1]).permute(1, 2, 0, 3)[..., None, :]
            seen = visible.to(q.device)
            scores = torch.where(seen, paired_sum(queries * key) * self._scale, -torch.inf)
            shares = exponential(scores - scores.amax(dim=-1, keepdim=True))
            # What is hidden may hold numbers that are none.
            weighted = torch.where(seen[..., None], shares[..., None] * value, 0.0).transpose(-1, -2)
            attended = paired_sum(weighted) / paired_sum(shares)[..., None]
            out[tokens] = attended.permute(2, 0, 1, 3).flatten(1, 2).to(q.dtype)
        return out
