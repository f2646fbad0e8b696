"""How attention is planned: what FlashInfer's `plan` is given, and when."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pie.backends.base import Capabilities
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.device import Device
from pie.backends.cuda.memory import workspace_bytes
from pie.backends.cuda.options import CudaOptions
from pie.models.spec import Attention


class Planner:
    """Plans attention for batches of one model."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it depends on
        self, heads: Attention, dtype: torch.dtype, calls: Calls, device: Device, limits: Capabilities, options: CudaOptions
    ) -> None:
        self._heads, self._dtype, self._calls, self._device = heads, dtype, calls, device
        self._page_size = limits.page_size
        self._options = options
        n_bytes = workspace_bytes(heads, options) if device.name.type == "cuda" else 1
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
        """How long sequences are split: not at all where no batch may change a bit.

        A split that depends on a sequence's length alone would do as well, but FlashInfer keeps what each split of each
        piece gives (a tile of queries of every head, in float32) in its workspace at once: a chunk of a prompt behind a
        long context does not fit there. Nor has a graph room for more splits than it was captured with.
        """
        return {"disable_split_kv": True} if self._options.deterministic else {}
