"""The Qwen3 family (dense).

RMS norms, also over the heads of queries and keys; rotation by halves; SwiGLU; no biases.
"""

from __future__ import annotations

from pie.models.config import Config
from pie.models.decoder import Defaults, decoder_spec, full_attention, weight_names
from pie.models.spec import DecoderSpec


def qwen3(config: Config) -> DecoderSpec:
    """The spec of a Qwen3 config; PieError `invalid-model` for variants that it does not describe."""
    config.only("attention_bias", False)
    full_attention(config)
    return decoder_spec(config, "qwen3", weight_names(head_norms=True), Defaults(max_positions=32_768, head_dim=128))
