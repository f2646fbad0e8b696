"""What a decoder computes, as data. Family files make it; back ends interpret it.

Symbols of shapes: V vocabulary, E hidden size, I intermediate size, H heads, G heads of keys and values, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Shape: TypeAlias = tuple[int, ...]
DtypeName: TypeAlias = Literal["bfloat16", "float16", "float32"]
"""What a model is computed in: its weights, the inputs of its linears, its keys and values. float16 is computed on GPUs
alone.
"""
_ELEMENT_BYTES: dict[DtypeName, int] = {"bfloat16": 2, "float16": 2, "float32": 4}
StoredDtypeName: TypeAlias = Literal["bfloat16", "float16", "float32"]
"""What weights are stored in; where float16 is not computed, float32 holds it exactly."""


@dataclass(frozen=True)
class LinearScaling:
    """All angles divided by a factor."""

    factor: float


@dataclass(frozen=True)
class Llama3Scaling:
    """Slow pairs turn slower by a factor, fast ones as before, those between in part (Llama 3.1)."""

    factor: float
    low_freq_factor: float
    """Pairs with fewer turns than this over the original length are slow."""
    high_freq_factor: float
    """Pairs with more turns than this are fast; above the other factor."""
    original_positions: int
    """The length of the model's first training."""


@dataclass(frozen=True)
class YarnScaling:
    """As `Llama3Scaling`, with a ramp over the pairs' indices (YaRN, arXiv 2309.00071)."""

    factor: float
    attention_factor: float
    """Cosines and sines are multiplied by this."""
    beta_fast: float
    """Turns over the original length at which the ramp begins."""
    beta_slow: float
    """Turns at which it ends."""
    original_positions: int
    truncate: bool
    """The ramp begins and ends at whole indices."""


Scaling: TypeAlias = LinearScaling | Llama3Scaling | YarnScaling


@dataclass(frozen=True)
class Rotary:
    """Rotation of queries and keys by their position; `pie.models.rotary` has the formulas."""

    kind: Literal["halves"]
    """Which elements are rotated together: element i with element i + D/2."""
    theta: float
    """Element pair i turns by position * theta^(-2i/D) where nothing is scaled."""
    scaling: Scaling | None = None


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
    """Names of a layer's weights in the checkpoint; None for those that the family has not."""

    input_norm: str
    q: str
    k: str
    v: str
    o: str
    mlp_norm: str
    gate: str
    up: str
    down: str
    q_norm: str | None = None
    k_norm: str | None = None
    q_bias: str | None = None
    k_bias: str | None = None
    v_bias: str | None = None
    o_bias: str | None = None
    gate_bias: str | None = None
    up_bias: str | None = None
    down_bias: str | None = None


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
            vectors = {
                names.q_norm: attention.head_dim,
                names.k_norm: attention.head_dim,
                names.q_bias: q_width,
                names.k_bias: kv_width,
                names.v_bias: kv_width,
                names.o_bias: hidden,
                names.gate_bias: self.intermediate_size,
                names.up_bias: self.intermediate_size,
                names.down_bias: hidden,
            }
            shapes |= {name: (width,) for name, width in vectors.items() if name is not None}
        return shapes


def token_bytes(spec: DecoderSpec, dtype: DtypeName) -> int:
    """Bytes of the keys and values of one token in all layers."""
    heads = spec.attention
    return 2 * spec.n_layers * heads.n_kv_heads * heads.head_dim * _ELEMENT_BYTES[dtype]


def page_bytes(spec: DecoderSpec, dtype: DtypeName, page_size: int) -> int:
    """Bytes of one page: the keys and values of `page_size` tokens in all layers."""
    return token_bytes(spec, dtype) * page_size
