"""The Qwen3 family (dense): RMS norms, also over the heads of queries and keys; rotation by halves; SwiGLU; no biases."""

from __future__ import annotations

from pie.models.config import Config
from pie.models.spec import Attention, DecoderSpec, LayerNames, Rotary, WeightNames

_LAYER = "model.layers.{layer}."
_NAMES = WeightNames(
    embedding="model.embed_tokens.weight",
    final_norm="model.norm.weight",
    output="lm_head.weight",
    layer=LayerNames(
        input_norm=_LAYER + "input_layernorm.weight",
        q=_LAYER + "self_attn.q_proj.weight",
        k=_LAYER + "self_attn.k_proj.weight",
        v=_LAYER + "self_attn.v_proj.weight",
        o=_LAYER + "self_attn.o_proj.weight",
        q_norm=_LAYER + "self_attn.q_norm.weight",
        k_norm=_LAYER + "self_attn.k_norm.weight",
        mlp_norm=_LAYER + "post_attention_layernorm.weight",
        gate=_LAYER + "mlp.gate_proj.weight",
        up=_LAYER + "mlp.up_proj.weight",
        down=_LAYER + "mlp.down_proj.weight",
    ),
)

# What transformers takes where a config leaves it out.
_HEAD_DIM = 128
_EPSILON = 1e-6
_THETA = 10_000.0
_MAX_POSITIONS = 32_768


def qwen3(config: Config) -> DecoderSpec:
    """The spec of a Qwen3 config; PieError `invalid-model` for variants that it does not describe."""
    config.only("hidden_act", "silu")
    config.only("attention_bias", False)
    config.only("use_sliding_window", False)
    layer_types = config.fields.get("layer_types") or []
    if set(map(str, layer_types)) - {"full_attention"}:
        raise config.error(f"layer_types names {sorted(set(map(str, layer_types)))}; supported: full_attention")
    n_heads = config.size("num_attention_heads")
    n_kv_heads = config.size("num_key_value_heads", n_heads)
    head_dim = config.size("head_dim", _HEAD_DIM)
    if n_heads % n_kv_heads:
        raise config.error(f"num_attention_heads {n_heads} is not a multiple of num_key_value_heads {n_kv_heads}")
    if head_dim % 2:
        raise config.error(f"head_dim is {head_dim}; rotation needs an even one")
    return DecoderSpec(
        family="qwen3",
        vocab_size=config.size("vocab_size"),
        max_positions=config.size("max_position_embeddings", _MAX_POSITIONS),
        n_layers=config.size("num_hidden_layers"),
        hidden_size=config.size("hidden_size"),
        intermediate_size=config.size("intermediate_size"),
        norm="rms",
        norm_epsilon=config.positive("rms_norm_eps", _EPSILON),
        attention=Attention(n_heads, n_kv_heads, head_dim, scale=head_dim**-0.5, head_norms=True),
        rotary=Rotary("halves", _theta(config)),
        mlp="swiglu",
        embedding_scale=1.0,
        tied=config.flag("tie_word_embeddings", False),
        names=_NAMES,
    )


def _theta(config: Config) -> float:
    """The rotary base: in `rope_parameters` (or `rope_scaling`) of newer configs, at the top of older ones."""
    for name in ("rope_parameters", "rope_scaling"):
        section = config.section(name)
        section.only("rope_type", "default")
        section.only("type", "default")
        if "rope_theta" in section.fields:
            return section.positive("rope_theta")
    return config.positive("rope_theta", _THETA)
