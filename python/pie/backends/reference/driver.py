"""The driver: a batch, one sequence and one operation after the other.

Arithmetic is float32 throughout. In bfloat16 the weights, the inputs of linears, and the keys and values are bfloat16
values, as on every back end; the sums are torch's, so the last bits may depend on the batch.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.adapters.loaded import Adapters
from pie.backends.adapters.noise import noise
from pie.backends.base import Capabilities, Command, DriverError, DriverOptions, ExportPages, FailedSequencesError, ImportPages
from pie.backends.checks import check, mask_of
from pie.backends.copying import measure_copy_ns
from pie.backends.moving import Bytes, export_pages, import_pages, made_by
from pie.backends.reference.lora import Adapted, TorchHolder
from pie.backends.sizes import capabilities, choose_dtype
from pie.backends.unsupported import unsupported
from pie.batch import Batch
from pie.batch_layout import KEEP_EMBEDDING, U32
from pie.models.loader import Checkpoint, load_checkpoint
from pie.models.rotary import amplitude, inverse_frequencies
from pie.models.spec import LayerNames, page_bytes

_PAGES_VERSION = 1
"""Raised with every change of how keys and values are computed that changes a bit of them."""
_DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


def open_driver(folder: Path, options: DriverOptions | None = None) -> ReferenceDriver:
    """Loads a model folder into torch.

    Raises PieError `invalid-model` for the folder, `invalid-argument` for the options.
    """
    return ReferenceDriver(load_checkpoint(folder), options or DriverOptions())


class ReferenceDriver:
    """Runs batches of one model on torch's CPU; see `pie.backends.base.Driver`."""

    def __init__(self, checkpoint: Checkpoint, options: DriverOptions) -> None:
        self._spec = spec = checkpoint.spec
        dtype = choose_dtype(checkpoint, options)
        self._dtype = _DTYPES[dtype]
        limits = capabilities("reference", checkpoint, dtype, options)
        self._weights = {name: torch.tensor(tensor.float32()) for name, tensor in checkpoint.tensors.items()}
        self._frequencies = torch.tensor(inverse_frequencies(spec.rotary, spec.attention.head_dim))
        heads = spec.attention
        # [layers, keys and values, pages, slots, heads, elements]
        page = (options.page_size, heads.n_kv_heads, heads.head_dim)
        self._kv = torch.zeros((spec.n_layers, 2, limits.n_pages, *page), dtype=self._dtype)
        # [host slots, layers, keys and values, slots, heads, elements]; untouched memory costs nothing
        self._host = torch.empty((limits.host_pages, spec.n_layers, 2, *page), dtype=self._dtype)
        n_bytes = page_bytes(spec, dtype, options.page_size)
        copy_ns = measure_copy_ns(self._swap_out, self._swap_in, limits, n_bytes)
        maker = made_by("reference", _PAGES_VERSION, dtype, spec.n_layers, heads.n_kv_heads, heads.head_dim)
        self._capabilities = replace(limits, copy_page_ns=copy_ns, adapters=True, page_bytes=n_bytes, pages_made_by=maker)
        self._holder = TorchHolder(spec)
        self._adapters = Adapters(spec, options.adapter_bytes, self._holder, noise)
        # What the sequences of the batch that runs are computed with.
        self._adapted = Adapted(())
        self._lock = threading.Lock()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves."""
        return self._capabilities

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Makes the copies of a batch, computes it and returns its logits, float32 [R, V].

        Raises DriverError where it does not fit, and then nothing has changed; FailedSequencesError where some
        sequences have media, or an adapter that is not loaded.
        """
        with self._lock, torch.inference_mode():
            if self._closed:
                raise DriverError("the driver is closed")
            check(batch, self._capabilities)
            reasons = unsupported(batch, self._capabilities) | self._adapters.missing(batch)
            self._copy(batch)
            self._adapted = self._holder.adapted(batch, _spans(batch))
            logits = np.ascontiguousarray(self._run(batch).numpy())
        if reasons:
            raise FailedSequencesError(logits, reasons)
        return logits

    def command(self, command: Command) -> None:
        """Loads, makes, changes, copies or drops an adapter, or moves pages.

        Raises RefusedAdapterError and DriverError; nothing has changed then.
        """
        with self._lock:
            if self._closed:
                raise DriverError("the driver is closed")
            match command:
                case ExportPages():
                    export_pages(command, self._capabilities, self._page)
                case ImportPages():
                    import_pages(command, self._capabilities, self._room, self._fill)
                case _:
                    self._adapters.carry_out(command)

    def _page(self, page: int) -> Bytes:
        content: Bytes = self._kv[:, :, page].contiguous().view(torch.uint8).numpy().reshape(-1)
        return content

    def _room(self, _page: int) -> Bytes:
        return np.empty(self._capabilities.page_bytes, np.uint8)

    def _fill(self, page: int, content: Bytes) -> None:
        there = self._kv[:, :, page]
        there.copy_(torch.from_numpy(content).view(self._dtype).reshape(there.shape))

    def close(self) -> None:
        """Gives the memory back; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._weights.clear()
            self._kv = self._host = torch.zeros(0)

    def _copy(self, batch: Batch) -> None:
        """Makes the copies: out, in, then from page to page."""
        for page, slot in _pairs(batch.swap_out_src, batch.swap_out_dst):
            self._swap_out(page, slot)
        for slot, page in _pairs(batch.swap_in_src, batch.swap_in_dst):
            self._swap_in(slot, page)
        for src, dst in _pairs(batch.copy_src, batch.copy_dst):
            self._kv[:, :, dst] = self._kv[:, :, src]

    def _swap_out(self, page: int, slot: int) -> None:
        self._host[slot] = self._kv[:, :, page]

    def _swap_in(self, slot: int, page: int) -> None:
        self._kv[:, :, page] = self._host[slot]

    def _run(self, batch: Batch) -> Tensor:
        spec, weights = self._spec, self._weights
        if not batch.n_tokens:
            return torch.zeros(0, spec.vocab_size)
        positions = torch.tensor(batch.positions.astype(np.float32))
        angles = positions[:, None] * self._frequencies
        cos, sin = (amplitude(spec.rotary) * f(angles.double()) for f in (torch.cos, torch.sin))
        hidden = weights[spec.names.embedding][batch.tokens.astype(np.int64)] * spec.embedding_scale
        for layer in range(spec.n_layers):
            names = spec.layer_names(layer)
            hidden = hidden + self._attention(batch, layer, names, hidden, (cos.float(), sin.float()))
            hidden = hidden + self._mlp(names, hidden)
        rows = self._norm(hidden[batch.row_token.astype(np.int64)], spec.names.final_norm)
        logits = self._linear(rows, spec.names.embedding if spec.tied else spec.names.output)
        for row in np.flatnonzero(batch.row_keep == KEEP_EMBEDDING).tolist():
            logits[row] = 0
            logits[row, : spec.hidden_size] = rows[row]
        return logits

    def _attention(self, batch: Batch, layer: int, names: LayerNames, hidden: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
        """The outputs [T, E] of a layer's attention; keys and values of the batch are stored first."""
        heads, normed = self._spec.attention, self._norm(hidden, names.input_norm)

        def split(name: str, bias: str | None) -> Tensor:
            return self._linear(normed, name, bias).reshape(len(hidden), -1, heads.head_dim)

        q = _rotate(self._norm(split(names.q, names.q_bias), names.q_norm), rotation)
        k = _rotate(self._norm(split(names.k, names.k_bias), names.k_norm), rotation)
        v = split(names.v, names.v_bias)
        keys, values = self._kv[layer]
        for seq_idx, tokens in enumerate(_spans(batch)):
            if not _is_reread(batch, seq_idx):
                slots = _slots(batch, seq_idx)[_kv_len(batch, seq_idx) - len(tokens) :]
                keys.flatten(0, 1)[slots] = k[tokens.start : tokens.stop].to(self._dtype)
                values.flatten(0, 1)[slots] = v[tokens.start : tokens.stop].to(self._dtype)
        attended = torch.zeros(len(hidden), heads.n_heads * heads.head_dim)
        for seq_idx, tokens in enumerate(_spans(batch)):
            slots, visible = _slots(batch, seq_idx), _visible(batch, seq_idx, tokens)
            group = heads.n_heads // heads.n_kv_heads
            seen = visible.any(dim=0)[:, None, None]
            # What no token sees may hold anything, numbers that are none included.
            key, value = (
                torch.where(seen, part.flatten(0, 1)[slots], 0).float().repeat_interleave(group, dim=1) for part in (keys, values)
            )
            scores = torch.einsum("thd,shd->hts", q[tokens.start : tokens.stop], key) * heads.scale
            shares = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
            attended[tokens.start : tokens.stop] = torch.einsum("hts,shd->thd", shares, value).flatten(1)
        return self._linear(attended, names.o, names.o_bias)

    def _mlp(self, names: LayerNames, hidden: Tensor) -> Tensor:
        normed = self._norm(hidden, names.mlp_norm)
        gate, up = self._linear(normed, names.gate, names.gate_bias), self._linear(normed, names.up, names.up_bias)
        return self._linear(torch.nn.functional.silu(gate) * up, names.down, names.down_bias)

    def _norm(self, x: Tensor, name: str | None) -> Tensor:
        """RMS norm of the last axis; x itself where the model has none there."""
        if name is None:
            return x
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self._spec.norm_epsilon) * self._weights[name]

    def _linear(self, x: Tensor, name: str, bias: str | None = None) -> Tensor:
        """The linear x W^T + b, with x rounded to the model's dtype, and what adapters change in it."""
        x = x.to(self._dtype).float()
        y = x @ self._weights[name].T
        self._adapted.add(name, x, y)
        return y if bias is None else y + self._weights[bias]


def _pairs(src: U32, dst: U32) -> list[tuple[int, int]]:
    return list(zip(src.tolist(), dst.tolist(), strict=True))


def _spans(batch: Batch) -> list[range]:
    """The tokens of each sequence, as indices into the batch's."""
    ends = batch.qo_indptr.tolist()
    return [range(start, end) for start, end in pairwise(ends)]


def _pages(batch: Batch, seq_idx: int) -> U32:
    """Pages of a sequence in storage order."""
    return batch.kv_indices[batch.kv_indptr[seq_idx] : batch.kv_indptr[seq_idx + 1]]


def _kv_len(batch: Batch, seq_idx: int) -> int:
    """Slots of a sequence once the batch has been written."""
    return (len(_pages(batch, seq_idx)) - 1) * batch.page_size + int(batch.kv_last_page_len[seq_idx])


def _is_reread(batch: Batch, seq_idx: int) -> bool:
    """Whether the slots of a sequence's tokens hold their keys and values already."""
    return bool(len(batch.seq_reread) and batch.seq_reread[seq_idx])


def _slots(batch: Batch, seq_idx: int) -> Tensor:
    """Where the slots of a sequence lie in the pool, pages side by side [kv_len]."""
    pages = torch.tensor(_pages(batch, seq_idx).astype(np.int64))
    return (pages[:, None] * batch.page_size + torch.arange(batch.page_size)).flatten()[: _kv_len(batch, seq_idx)]


def _visible(batch: Batch, seq_idx: int, tokens: range) -> Tensor:
    """Which slots each token of a sequence sees [tokens, kv_len]: those up to its own that its attention row allows."""
    length = _kv_len(batch, seq_idx)
    own = torch.arange(length - len(tokens), length)
    visible = torch.arange(length) <= own[:, None]
    for row, token_idx in enumerate(tokens):
        runs = mask_of(batch, token_idx)
        allowed, slot = torch.zeros(length, dtype=torch.bool), 0
        for run_idx, run in enumerate(runs):
            allowed[slot : slot + run] = run_idx % 2 == 1
            slot += run
        if runs:
            visible[row] &= allowed
    return visible


def _rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Heads [T, H, D], the halves of each turned against each other."""
    cos, sin = (part[:, None, :] for part in rotation)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
