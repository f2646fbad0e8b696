"""The Llama family, and Mistral where it has no sliding window.

RMS norms, rotation by halves, SwiGLU, biases where configured.
"""

from __future__ import annotations

from pie.models.config import Config
from pie.models.decoder import Defaults, decoder_spec, full_attention, weight_names
from pie.models.spec import DecoderSpec

_MISTRAL_POSITIONS = 4096 * 32
_MISTRAL_WINDOW = 4096
_MISTRAL_KV_HEADS = 8


def llama(config: Config) -> DecoderSpec:
    """The spec of a Llama config; PieError `invalid-model` for variants that it does not describe."""
    full_attention(config)
    bias = config.flag("attention_bias", False)
    names = weight_names(qkv_bias=bias, o_bias=bias, mlp_bias=config.flag("mlp_bias", False))
    return decoder_spec(config, "llama", names, Defaults(max_positions=2048))


def mistral(config: Config) -> DecoderSpec:
    """The spec of a Mistral config; PieError `invalid-model` where a sliding window is shorter than the context.

    A config that does not name the window has one, of 4,096 tokens.
    """
    full_attention(config)
    max_positions = config.size("max_position_embeddings", _MISTRAL_POSITIONS)
    window = config.fields.get("sliding_window", _MISTRAL_WINDOW)
    if window is not None and config.size("sliding_window", _MISTRAL_WINDOW) < max_positions:
        raise config.error(
            f"sliding_window is {window}, below max_position_embeddings {max_positions}; supported: null, or one that covers all positions"
        )
    return decoder_spec(config, "mistral", weight_names(), Defaults(max_positions, n_kv_heads=_MISTRAL_KV_HEADS))
