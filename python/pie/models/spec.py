"""What a decoder computes, as data. Family files make it; back ends interpret it.

Symbols of shapes: V vocabulary, E hidden size, I intermediate size, H heads, G heads of keys and values, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Shape: TypeAlias = tuple[int, ...]
DtypeName: TypeAlias = Literal["bfloat16", "float32"]


@dataclass(frozen=True)
class Rotary:
    """Rotation of queries and keys by their position."""

    kind: Literal["halves"]
    """Which elements are rotated together: element i with element i + D/2."""
    theta: float
    """Element pair i turns by position * theta^(-2i/D)."""


@dataclass(frozen=True)
class Attention:
    """Causal attention with grouped heads."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    scale: float
    """Scores are multiplied by this before the softmax."""
    head_norms: bool
    """Queries and keys pass an RMS norm over their head before the rotation."""


@dataclass(frozen=True)
class LayerNames:
    """Names of a layer's weights in the checkpoint."""

    input_norm: str
    q: str
    k: str
    v: str
    o: str
    q_norm: str | None
    k_norm: str | None
    mlp_norm: str
    gate: str
    up: str
    down: str


@dataclass(frozen=True)
class WeightNames:
    """Names of all weights in the checkpoint. `{layer}` in those of a layer stands for its index."""

    embedding: str
    final_norm: str
    output: str
    layer: LayerNames


@dataclass(frozen=True)
class DecoderSpec:
    """A decoder: embedding, layers of attention and MLP with a norm before each, a final norm, logits."""

    family: str
    vocab_size: int
    max_positions: int
    """Positions are below this."""
    n_layers: int
    hidden_size: int
    intermediate_size: int
    norm: Literal["rms"]
    norm_epsilon: float
    attention: Attention
    rotary: Rotary
    mlp: Literal["swiglu"]
    embedding_scale: float
    """Embedding rows are multiplied by this."""
    tied: bool
    """The logits use the embedding's weights."""
    names: WeightNames

    def layer_names(self, layer: int) -> LayerNames:
        """The weight names of one layer."""
        named: dict[str, Any] = {field: name and name.format(layer=layer) for field, name in vars(self.names.layer).items()}
        return LayerNames(**named)

    def shapes(self) -> dict[str, Shape]:
        """The shape of every weight, by name; matrices are [outputs, inputs]."""
        attention = self.attention
        hidden, q_width = self.hidden_size, attention.n_heads * attention.head_dim
        kv_width = attention.n_kv_heads * attention.head_dim
        shapes: dict[str, Shape] = {
            self.names.embedding: (self.vocab_size, hidden),
            self.names.final_norm: (hidden,),
        }
        if not self.tied:
            shapes[self.names.output] = (self.vocab_size, hidden)
        for layer in range(self.n_layers):
            names = self.layer_names(layer)
            shapes |= {
                names.input_norm: (hidden,),
                names.q: (q_width, hidden),
                names.k: (kv_width, hidden),
                names.v: (kv_width, hidden),
                names.o: (hidden, q_width),
                names.mlp_norm: (hidden,),
                names.gate: (self.intermediate_size, hidden),
                names.up: (self.intermediate_size, hidden),
                names.down: (hidden, self.intermediate_size),
            }
            shapes |= {name: (attention.head_dim,) for name in (names.q_norm, names.k_norm) if name is not None}
        return shapes
