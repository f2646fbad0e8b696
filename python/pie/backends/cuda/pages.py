"""The pool of keys and values on the device, the host's part of it, and copies between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pie.backends.base import Capabilities
from pie.backends.checks import Flags
from pie.backends.cuda.device import Device, first_line
from pie.backends.moving import Bytes
from pie.backends.sizes import invalid
from pie.batch import Batch
from pie.batch_layout import U32
from pie.models.spec import DecoderSpec

AT_ONCE = 16
"""Pages that are gathered on the device before they go to host memory, or after they came."""


class Pool:
    """Pages of all layers, [L, pages, 2, slots, G, D], and one more, that of nobody: what is not kept goes there."""

    def __init__(self, spec: DecoderSpec, limits: Capabilities, dtype: torch.dtype, device: Device) -> None:
        heads = spec.attention
        page = (2, limits.page_size, heads.n_kv_heads, heads.head_dim)
        self._device = device
        self.kv = torch.zeros((spec.n_layers, limits.n_pages + 1, *page), dtype=dtype, device=device.name)
        self.nobody = limits.n_pages
        """The index of the page that nobody has."""
        self._host = _locked(device, (limits.host_pages, spec.n_layers, *page), dtype)
        # [pages, L, 2, slots, G, D]
        self._gathered = torch.zeros((AT_ONCE, spec.n_layers, *page), dtype=dtype, device=device.name)
        self._in_flight: tuple[U32, Any] | None = None
        """The pages that the batch launched last touches, and the mark of its end."""

    def copy(self, batch: Batch) -> None:
        """Makes the copies of a batch, before its tokens are computed: out, in, then from page to page.

        Called where the stream of the batches is filled. Copies to and from host memory have a stream of their own:
        they wait for the batches before only where those touch the pages.
        """
        outs, ins = batch.swap_out_src, batch.swap_in_dst
        if len(outs) or len(ins):
            before = self._in_flight
            with self._device.copying():
                if before is not None and self._touches(before[0], outs, ins):
                    self._device.wait(before[1])
                self._out(outs, batch.swap_out_dst)
                self._in(batch.swap_in_src, ins)
                done = self._device.mark()
            self._device.wait(done)
        # One by one: a list of pages would have to come to the device first, for which the host would wait.
        for src, dst in zip(batch.copy_src.tolist(), batch.copy_dst.tolist(), strict=True):
            self.kv[:, dst] = self.kv[:, src]

    def began(self, pages: U32, mark: Any) -> None:
        """A batch that touches these pages is under way, and done where the mark is reached."""
        self._in_flight = (pages, mark)

    def ended(self, mark: Any) -> None:
        """That mark was waited for: nothing waits for its batch any more, and its arena may be gone."""
        if self._in_flight is not None and self._in_flight[1] is mark:
            self._in_flight = None

    def _touches(self, pages: U32, *others: U32) -> bool:
        """Whether any of the others is among the pages."""
        touched: Flags = np.zeros(self.nobody, np.bool_)
        touched[pages] = True
        return any(touched[other].any() for other in others)

    def swap_out(self, page: int, slot: int) -> None:
        """Copies one page to host memory, and returns when that is done."""
        self._out(np.array([page], np.uint32), np.array([slot], np.uint32))
        self._device.finish()

    def swap_in(self, slot: int, page: int) -> None:
        """Copies one page from host memory, and returns when that is done."""
        self._in(np.array([slot], np.uint32), np.array([page], np.uint32))
        self._device.finish()

    def read(self, page: int) -> Bytes:
        """What a page holds, layer by layer. Nothing of a batch is under way."""
        with self._device.computing():
            held = self.kv[:, page].contiguous().cpu()
        content: Bytes = held.view(torch.uint8).numpy().reshape(-1)
        return content

    def room(self, page: int) -> Bytes:
        """Memory for what is to be written to a page."""
        return np.empty(self.kv[:, page].numel() * self.kv.element_size(), np.uint8)

    def write(self, page: int, content: Bytes) -> None:
        """Writes what a page is to hold, and returns when that is done. Nothing of a batch is under way."""
        with self._device.computing():
            there = self.kv[:, page]
            there.copy_(torch.from_numpy(content).view(self.kv.dtype).reshape(there.shape))
        self._device.finish()

    def _out(self, pages: U32, slots: U32) -> None:
        for first in range(0, len(pages), AT_ONCE):
            part = pages[first : first + AT_ONCE].tolist()
            for index, page in enumerate(part):
                self._gathered[index] = self.kv[:, page]
            for index, slot in enumerate(slots[first : first + AT_ONCE].tolist()):
                self._host[slot].copy_(self._gathered[index], non_blocking=True)

    def _in(self, slots: U32, pages: U32) -> None:
        for first in range(0, len(slots), AT_ONCE):
            for index, slot in enumerate(slots[first : first + AT_ONCE].tolist()):
                self._gathered[index].copy_(self._host[slot], non_blocking=True)
            for index, page in enumerate(pages[first : first + AT_ONCE].tolist()):
                self.kv[:, page] = self._gathered[index]


def _locked(device: Device, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Host memory for what is swapped out. PieError `invalid-argument` where there is not so much."""
    try:
        return device.locked(shape, dtype)
    except (MemoryError, RuntimeError) as error:
        n_bytes = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
        raise invalid(
            f"the host has no {n_bytes / (1 << 30):.2f} GiB of memory that a device copies from and to ({first_line(error)}); "
            "lower swap_bytes, or raise what may be locked (ulimit -l)",
            "swap_bytes",
        ) from error
