"""How attention is planned: what FlashInfer's `plan` is given, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from pie.backends.base import Capabilities
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.device import Device
from pie.backends.cuda.memory import plan_bytes, workspace_bytes
from pie.backends.cuda.options import CudaOptions
from pie.errors import PieError
from pie.models.spec import Attention

_MERGE_ELEMENTS = 8 * 1024
"""Of a token's heads, that a block of the kernel that merges states takes: 1024 threads, 8 elements each."""
_MASK_STARTS = "_mask_indptr_buf"
"""Where FlashInfer's wrapper keeps at which byte the mask of each piece begins."""


class Attending(Protocol):
    """Attention that is planned for a batch."""

    def run(self, q: Tensor, kv: Tensor) -> Tensor:
        """The outputs [T, H, D] of queries [T, H, D] over the pages of a layer [pages, 2, slots, G, D]."""


@dataclass(frozen=True, eq=False)
class Mask:
    """Which slots the tokens of pieces see, on the device."""

    bits: Tensor
    """uint8: row by row, a bit a slot, the lowest of a byte first; each piece begins with a byte of its own."""
    starts: Tensor
    """The byte that each piece begins with, and the end, int32 [Q + 1]."""


class Wrapper:
    """One of FlashInfer's, and the mark of its last plan; see `Attending`."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.planned: Any = None
        """Behind the copy of its plan from host memory; None: it was never planned."""

    def run(self, q: Tensor, kv: Tensor) -> Tensor:
        """See `Attending`."""
        out: Tensor = self.library.run(q, kv)
        return out

    def run_with_sums(self, q: Tensor, kv: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs, and the logarithms to base 2 of what was summed for them, float32 [T, H]."""
        out, sums = self.library.run(q, kv, return_lse=True)
        return out, sums


@dataclass(frozen=True, eq=False)
class Split:
    """Tokens without masks by one kernel, and those with masks by the other; see `Attending`.

    A token's kernel does not depend on what stands beside it.
    """

    causal: Attending
    causal_tokens: Tensor
    """int32, those of `causal`."""
    masked: Attending
    masked_tokens: Tensor

    def run(self, q: Tensor, kv: Tensor) -> Tensor:
        """See `Attending`."""
        out = torch.empty_like(q)
        for attention, tokens in ((self.causal, self.causal_tokens), (self.masked, self.masked_tokens)):
            out[tokens] = attention.run(q[tokens], kv)
        return out


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

    @property
    def is_fixed(self) -> bool:
        """Whether the plan of a decode batch says nothing of its lengths, so that a graph is planned for once.

        FlashInfer plans by the number of queries of each sequence, and by lengths only where it splits over them
        (`PrefillSplitQOKVIndptr` in its `attention/scheduler.cuh`).
        """
        return self._options.deterministic

    @property
    def merge(self) -> Callable[..., None]:
        """`merge_state_in_place`."""
        return self._calls.merge_state_in_place

    @property
    def can_share(self) -> bool:
        """Whether sequences may attend to a prefix that they share at once.

        Never where no batch may change a bit. A sequence is not split there, so that its sums run through the end of a
        prefix; merged states round at it. Splits at fixed places, merged for every sequence, would give the same bits
        whether a split is shared or not, but for what stands at `_splitting` there are none.
        """
        return not self._options.deterministic and self._heads.n_heads * self._heads.head_dim <= _MERGE_ELEMENTS

    def wrapper(self) -> Wrapper:
        """What batches without a graph are planned in, 8 MiB on the device and as much pinned: one for many batches.

        Raises PieError `invalid-config` where masks are kept otherwise than they are written here.
        """
        library = self._calls.attention(self._workspace, "NHD", backend="fa2")
        if not hasattr(library, _MASK_STARTS):
            raise PieError(
                "invalid-config",
                f"flashinfer-python keeps attention masks in another way than this back end writes them (there is no {_MASK_STARTS}); "
                "install the version that is served: pip install 'pie-engine[cuda]'",
            )
        return Wrapper(library)

    def graphed(self, n_seqs: int, **buffers: Tensor) -> Wrapper:
        """What a graph of so many sequences, or of rows and prefixes together, runs over these buffers.

        Each keeps its plan, on the device and in pinned memory, for which FlashInfer takes 8 MiB of both; a decode
        batch needs some KiB. What is given back here is taken for the next one.
        """
        library = self._calls.attention(self._workspace, "NHD", use_cuda_graph=True, backend="fa2", **buffers)
        library.reset_workspace_buffer(self._workspace, torch.empty(plan_bytes(n_seqs), dtype=torch.uint8, device=self._device.name))
        return Wrapper(library)

    def plan(  # noqa: PLR0913, PLR0917 - the arrays of FlashInfer
        self, wrapper: Wrapper, qo_indptr: Tensor, kv_indptr: Tensor, kv_indices: Tensor, last_page_len: Tensor, mask: Mask | None = None
    ) -> None:
        """Has attention planned for a batch.

        The page indices are on the device, for FlashInfer would wait for their copy, and so is `mask`, None: causality
        alone. It is packed: FlashInfer would pack what is not by waiting for the device.
        """
        bits = None if mask is None else mask.bits
        self._planned(wrapper, (qo_indptr, kv_indptr, kv_indices, last_page_len), packed_custom_mask=bits, causal=mask is None)
        if mask is not None:
            # FlashInfer counts bits where its kernel addresses bytes, where it is given packed masks.
            setattr(wrapper.library, _MASK_STARTS, mask.starts)
        wrapper.planned = self._device.mark()

    def plan_prefixes(self, wrapper: Wrapper, qo_indptr: Tensor, kv_indptr: Tensor, kv_indices: Tensor) -> None:
        """Has attention planned for rows that see all slots of full pages; see `plan`."""
        full = torch.full((len(kv_indptr) - 1,), self._page_size, dtype=torch.int32)
        self._planned(wrapper, (qo_indptr, kv_indptr, kv_indices, full), packed_custom_mask=None, causal=False)
        wrapper.planned = self._device.mark()

    def _planned(self, wrapper: Wrapper, arrays: tuple[Tensor, ...], *, packed_custom_mask: Tensor | None, causal: bool) -> None:
        """Calls FlashInfer."""
        heads = self._heads
        # A plan is written to memory that the plan before may be copied from; that is long over, but for a hair.
        if wrapper.planned is not None:
            self._device.synchronize(wrapper.planned)
        wrapper.library.plan(
            *arrays,
            heads.n_heads,
            heads.n_kv_heads,
            heads.head_dim,
            self._page_size,
            packed_custom_mask=packed_custom_mask,
            causal=causal,
            sm_scale=heads.scale,
            q_data_type=self._dtype,
            kv_data_type=self._dtype,
            non_blocking=True,
            **self._splitting(),
        )

    def _splitting(self) -> dict[str, Any]:
        """How long sequences are split: not at all where no batch may change a bit.

        A split that depends on a sequence's length alone would do as well, but FlashInfer keeps what each split of each
        piece gives (a tile of queries of every head, in float32) in its workspace at once: a chunk of a prompt behind a
        long context does not fit there. Nor has a graph room for more splits than it was captured with.
        """
        return {"disable_split_kv": True} if self._options.deterministic else {}
