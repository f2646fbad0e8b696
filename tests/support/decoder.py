"""A decoder in float64, one obvious line an operation: what the kernels are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pie.models.loader import Checkpoint

Array = Any


@dataclass
class States:
    """What a decoder with one layer passes through; a row a token."""

    embedded: Array
    normed: Array
    qkv: Array
    """After norms and rotation."""
    attended: Array
    gate_up: Array
    activated: Array
    hidden: Array
    final: Array


class Decoder:
    """A checkpoint in float64."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.spec = checkpoint.spec
        self.weights = {name: tensor.float32().astype(np.float64) for name, tensor in checkpoint.tensors.items()}

    def logits(self, tokens: list[int], *, visible: Array | None = None, positions: list[int] | None = None) -> tuple[Array, States]:
        """Logits [T, V] and the states of the last layer; `visible` [T, T] says which slot each token sees."""
        spec, weights, heads = self.spec, self.weights, self.spec.attention
        n_tokens = len(tokens)
        positions = list(range(n_tokens)) if positions is None else positions
        visible = np.tri(n_tokens, dtype=bool) if visible is None else visible & np.tri(n_tokens, dtype=bool)
        embedded = hidden = weights[spec.names.embedding][tokens] * spec.embedding_scale
        for layer in range(spec.n_layers):
            names = spec.layer_names(layer)
            normed = self.norm(hidden, names.input_norm)
            q = self.heads(normed @ weights[names.q].T, names.q_norm, positions)
            k = self.heads(normed @ weights[names.k].T, names.k_norm, positions)
            v = (normed @ weights[names.v].T).reshape(n_tokens, -1, heads.head_dim)
            group = heads.n_heads // heads.n_kv_heads
            scores = np.einsum("thd,shd->hts", q, np.repeat(k, group, axis=1)) * heads.scale
            scores = np.where(visible, scores, -np.inf)
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            shares /= shares.sum(axis=-1, keepdims=True)
            attended = np.einsum("hts,shd->thd", shares, np.repeat(v, group, axis=1)).reshape(n_tokens, -1)
            hidden = hidden + attended @ weights[names.o].T
            gate_up = self.norm(hidden, names.mlp_norm) @ np.concatenate([weights[names.gate], weights[names.up]]).T
            gate, up = np.split(gate_up, 2, axis=1)
            activated = gate / (1 + np.exp(-gate)) * up
            hidden = hidden + activated @ weights[names.down].T
            qkv = np.concatenate([part.reshape(n_tokens, -1) for part in (q, k, v)], axis=1)
        final = self.norm(hidden, spec.names.final_norm)
        logits = final @ weights[spec.names.embedding if spec.tied else spec.names.output].T
        return logits, States(embedded, normed, qkv, attended, gate_up, activated, hidden, final)

    def norm(self, x: Array, name: str) -> Array:
        """RMS norm of the last axis."""
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.spec.norm_epsilon) * self.weights[name]

    def heads(self, x: Array, norm: str | None, positions: list[int]) -> Array:
        """Heads [T, H, D], normalised and rotated."""
        dim = self.spec.attention.head_dim
        x = x.reshape(len(x), -1, dim)
        x = x if norm is None else self.norm(x, norm)
        # The angles are those of float32, as models are trained with; all else is exact.
        exponents = np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)
        frequencies = np.float32(1) / (self.spec.rotary.theta ** exponents.astype(np.float64)).astype(np.float32)
        angles = np.outer(np.array(positions, np.float32), frequencies).astype(np.float64)[:, None, :]
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], axis=-1)
