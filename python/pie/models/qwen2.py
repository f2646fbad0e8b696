"""The Qwen2 family (dense): as Llama, with biases on queries, keys and values."""

from __future__ import annotations

from pie.models.config import Config
from pie.models.decoder import Defaults, decoder_spec, full_attention, weight_names
from pie.models.spec import DecoderSpec


def qwen2(config: Config) -> DecoderSpec:
    """The spec of a Qwen2 config; PieError `invalid-model` for variants that it does not describe."""
    full_attention(config)
    return decoder_spec(config, "qwen2", weight_names(qkv_bias=True), Defaults(max_positions=32_768))
