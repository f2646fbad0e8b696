"""The interpreter of a spec: what is computed of the tokens of a batch, by tensors that lie on the device.

Symbols: T tokens, R rows wanted, E hidden size, H heads, G heads of keys and values, D head size, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pie.backends.cuda.attention import Attending
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.group import Group, summed
from pie.backends.cuda.weights import Layer, Weights
from pie.models.rotary import amplitude, inverse_frequencies
from pie.models.spec import DecoderSpec, Rotary


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a batch, int32 [T] each, on the device."""

    ids: Tensor
    positions: Tensor
    pages: Tensor
    """The page that each is written to; that of nobody for a token that is in its slot already."""
    slots: Tensor
    """The slot within that page."""


class Decoder:
    """Computes batches of one model, or the share of one rank in it."""

    def __init__(self, spec: DecoderSpec, weights: Weights, calls: Calls, max_tokens: int, group: Group) -> None:
        """`spec` and `weights` are those of the rank; see `pie.backends.cuda.layout`."""
        self._spec = spec
        self._group = group
        self._weights = weights
        self._calls = calls
        device = weights.embedding.device
        self._rotary = rotary_table(spec.rotary, spec.attention.head_dim, spec.max_positions, device)
        # Each token is written as a sequence of one page.
        self._sequences = torch.arange(max_tokens + 1, dtype=torch.int32, device=device)

    def forward(
        self, tokens: Tokens, attention: Attending, kv: Tensor, rows: Tensor | None, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The logits, float32 [R, V], and the hidden states that they are made of [R, E].

        `attention` is planned for the batch; `kv` is the pool [L, pages, 2, slots, G, D], which keys and values are
        written to; `rows` are the tokens whose rows are wanted, int32 [R], None: all. The logits go to `out`, if given.
        """
        spec, calls, weights = self._spec, self._calls, self._weights
        residual = self._embedded(tokens.ids)
        if spec.embedding_scale != 1.0:
            residual = residual * spec.embedding_scale
        lengths = tokens.slots + 1
        x = calls.rmsnorm(residual, weights.layers[0].input_norm, eps=spec.norm_epsilon)
        for index, layer in enumerate(weights.layers):
            x = self._attention(x, layer, tokens, lengths, attention, kv[index])
            is_last = index == len(weights.layers) - 1
            if is_last and rows is not None:
                # Keys and values need every token; what follows the last attention is computed for wanted rows alone.
                x, residual = x[rows], residual[rows]
                if not len(x):
                    # A flush, or a chunk of a prompt that goes on: libraries launch a block for a row, and CUDA refuses
                    # a kernel without one. Every rank stops here, for all know the rows.
                    return x.new_zeros((0, spec.vocab_size), dtype=torch.float32), x
            calls.fused_add_rmsnorm(x, residual, layer.mlp_norm, eps=spec.norm_epsilon)
            gate_up = calls.linear(x, layer.gate_up, layer.gate_up_bias, x.dtype)
            x = self._joined(calls.silu_and_mul(gate_up), layer.down, layer.down_bias)
            norm = weights.final_norm if is_last else weights.layers[index + 1].input_norm
            calls.fused_add_rmsnorm(x, residual, norm, eps=spec.norm_epsilon)
        return self._logits(x, out), x

    def _embedded(self, ids: Tensor) -> Tensor:
        """The embeddings [T, E]. Each rank has those of some tokens, and zeros of all others."""
        embedding, group = self._weights.embedding, self._group
        if group.size == 1:
            return embedding[ids]
        own = ids - group.rank * len(embedding)
        is_own = (own >= 0) & (own < len(embedding))
        return summed(group, torch.where(is_own[:, None], embedding[own.clamp(0, len(embedding) - 1)], 0.0))

    def _joined(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """A linear of inputs that are spread over the ranks, summed in the order of ranks, rounded once."""
        calls, group = self._calls, self._group
        if group.size == 1:
            return calls.linear(x, weight, bias, x.dtype)
        total = summed(group, calls.linear(x, weight, None, torch.float32))
        return (total if bias is None else total + bias.float()).to(x.dtype)

    def _logits(self, x: Tensor, out: Tensor | None) -> Tensor:
        """The logits [R, V], which each rank computes for some tokens."""
        group, vocab_size = self._group, self._spec.vocab_size
        own = self._calls.linear(x, self._weights.output, None, torch.float32, out if group.size == 1 else None)
        if group.size == 1:
            return own
        logits = group.gather(own).transpose(0, 1).flatten(1)[:, :vocab_size]
        return logits.contiguous() if out is None else out.copy_(logits)

    def _attention(  # noqa: PLR0913, PLR0917 - what a layer has, and what the batch has
        self, x: Tensor, layer: Layer, tokens: Tokens, lengths: Tensor, attention: Attending, kv: Tensor
    ) -> Tensor:
        """The outputs of a layer's attention [T, E]; keys and values of the batch are stored first."""
        heads, calls, n_tokens = self._spec.attention, self._calls, len(x)
        sizes = [heads.n_heads * heads.head_dim, heads.n_kv_heads * heads.head_dim, heads.n_kv_heads * heads.head_dim]
        q, k, v = torch.split(calls.linear(x, layer.qkv, layer.qkv_bias, x.dtype), sizes, dim=1)
        if layer.q_norm is not None:
            q = self._head_norm(q, layer.q_norm)
        if layer.k_norm is not None:
            k = self._head_norm(k, layer.k_norm)
        # Heads of their own lie side by side in one tensor with others otherwise, which kernels need not accept.
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        calls.apply_rope_with_cos_sin_cache_inplace(tokens.positions, q, k, heads.head_dim, self._rotary, is_neox=True)
        calls.append_paged_kv_cache(
            k.view(n_tokens, heads.n_kv_heads, heads.head_dim),
            v.view(n_tokens, heads.n_kv_heads, heads.head_dim),
            batch_indices=self._sequences[:n_tokens],
            positions=tokens.slots,
            paged_kv_cache=kv,
            kv_indices=tokens.pages,
            kv_indptr=self._sequences[: n_tokens + 1],
            kv_last_page_len=lengths,
            kv_layout="NHD",
        )
        attended = attention.run(q.view(n_tokens, heads.n_heads, heads.head_dim), kv)
        return self._joined(attended.view(n_tokens, -1), layer.o, layer.o_bias)

    def _head_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """The norm of each head of x [T, heads * D]."""
        normed = self._calls.rmsnorm(x.reshape(-1, self._spec.attention.head_dim), weight, eps=self._spec.norm_epsilon)
        return normed.view(len(x), -1)


def rotary_table(rotary: Rotary, head_dim: int, max_positions: int, device: torch.device) -> Tensor:
    """Cosines, then sines of every position, float32 [positions, D]; see `pie.backends.cpu.rotary`."""
    angles = np.arange(max_positions, dtype=np.float32)[:, None] * inverse_frequencies(rotary, head_dim)
    exact, scale = angles.astype(np.float64), amplitude(rotary)
    table = np.concatenate([scale * np.cos(exact), scale * np.sin(exact)], axis=1).astype(np.float32)
    return torch.from_numpy(table).to(device)
