"""How attention is planned: what FlashInfer's `plan` is given, and when."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pie.backends.base import Capabilities
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.device import Device
from pie.backends.cuda.memory import WORKSPACE_BYTES
from pie.backends.cuda.options import CudaOptions
from pie.models.spec import Attention

SPLIT_TOKENS = 2048
"""Keys that are summed at once, where attention is split at all and has to be the same in every batch: whole pages."""


class Planner:
    """Plans attention for batches of one model."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it depends on
        self, heads: Attention, dtype: torch.dtype, calls: Calls, device: Device, limits: Capabilities, options: CudaOptions
    ) -> None:
        self._heads, self._dtype, self._calls, self._device = heads, dtype, calls, device
        self._page_size = limits.page_size
        self._options = options
        n_bytes = WORKSPACE_BYTES if device.name.type == "cuda" else 1
        self._workspace = torch.zeros(n_bytes, dtype=torch.uint8, device=device.name)
        self._planned: Any = None

    @property
    def is_fixed(self) -> bool:
        """Whether the plan of a decode batch says nothing of its lengths, so that a graph is planned for once.

        FlashInfer plans by the number of queries of each sequence, and by lengths only where it splits over them
        (`PrefillSplitQOKVIndptr` in its `attention/scheduler.cuh`).
        """
        return self._options.deterministic

    def wrapper(self, **buffers: Any) -> Any:
        """What is planned and run; `buffers` are those of a graph."""
        return self._calls.attention(self._workspace, "NHD", backend="fa2", **buffers)

    def plan(  # noqa: PLR0913, PLR0917 - the arrays of FlashInfer
        self, attention: Any, qo_indptr: Tensor, kv_indptr: Tensor, kv_indices: Tensor, last_page_len: Tensor, mask: Tensor | None = None
    ) -> None:
        """Has attention planned for a batch.

        The page indices are on the device, for FlashInfer would wait for their copy.

        `mask`, bool and flat on the device, holds which slots each token sees; None: causality alone.
        """
        heads = self._heads
        # A plan is written to memory that the plan before may be copied from; that is long over, but for a hair.
        if self._planned is not None:
            self._device.synchronize(self._planned)
        attention.plan(
            qo_indptr,
            kv_indptr,
            kv_indices,
            last_page_len,
            heads.n_heads,
            heads.n_kv_heads,
            heads.head_dim,
            self._page_size,
            custom_mask=mask,
            causal=mask is None,
            sm_scale=heads.scale,
            q_data_type=self._dtype,
            kv_data_type=self._dtype,
            non_blocking=True,
            **self._splitting(),
        )
        self._planned = self._device.mark()

    def _splitting(self) -> dict[str, Any]:
        """How long sequences are split: by their length alone where no batch may change a bit.

        A graph has room for as many splits as it was captured with, so that none is split where there are graphs.
        """
        if not self._options.deterministic:
            return {}
        if self._options.graph_seqs:
            return {"disable_split_kv": True}
        return {"fixed_split_size": max(1, SPLIT_TOKENS // self._page_size)}
