"""What the config fields and weight names of the families have in common."""

from __future__ import annotations

from dataclasses import dataclass

from pie.models.config import Config
from pie.models.rotary import yarn_attention_factor
from pie.models.spec import Attention, DecoderSpec, LayerNames, LinearScaling, Llama3Scaling, Rotary, Scaling, WeightNames, YarnScaling

# Far beyond any model; the names of all their weights fit into memory.
_MAX_LAYERS = 4096
_LAYER = "model.layers.{layer}."
_ATTENTION = _LAYER + "self_attn."
_MLP = _LAYER + "mlp."


def weight_names(*, head_norms: bool = False, qkv_bias: bool = False, o_bias: bool = False, mlp_bias: bool = False) -> WeightNames:
    """The names that transformers gives the weights of a Llama-like decoder."""

    def optional(name: str, there: bool) -> str | None:
        return name if there else None

    layer = LayerNames(
        input_norm=_LAYER + "input_layernorm.weight",
        q=_ATTENTION + "q_proj.weight",
        k=_ATTENTION + "k_proj.weight",
        v=_ATTENTION + "v_proj.weight",
        o=_ATTENTION + "o_proj.weight",
        mlp_norm=_LAYER + "post_attention_layernorm.weight",
        gate=_MLP + "gate_proj.weight",
        up=_MLP + "up_proj.weight",
        down=_MLP + "down_proj.weight",
        q_norm=optional(_ATTENTION + "q_norm.weight", head_norms),
        k_norm=optional(_ATTENTION + "k_norm.weight", head_norms),
        q_bias=optional(_ATTENTION + "q_proj.bias", qkv_bias),
        k_bias=optional(_ATTENTION + "k_proj.bias", qkv_bias),
        v_bias=optional(_ATTENTION + "v_proj.bias", qkv_bias),
        o_bias=optional(_ATTENTION + "o_proj.bias", o_bias),
        gate_bias=optional(_MLP + "gate_proj.bias", mlp_bias),
        up_bias=optional(_MLP + "up_proj.bias", mlp_bias),
        down_bias=optional(_MLP + "down_proj.bias", mlp_bias),
    )
    return WeightNames("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", layer)


def full_attention(config: Config) -> None:
    """Refuses sliding windows: every token sees all before it."""
    config.only("use_sliding_window", False)
    layer_types = config.fields.get("layer_types") or []
    names = sorted(set(map(str, layer_types))) if isinstance(layer_types, list) else [repr(layer_types)]
    if set(names) - {"full_attention"}:
        raise config.error(f"layer_types names {names}; supported: full_attention")


@dataclass(frozen=True)
class Defaults:
    """What transformers takes where a config of the family leaves a field out."""

    max_positions: int
    head_dim: int | None = None
    """The hidden size over the number of heads if None."""
    n_kv_heads: int | None = None
    """The number of heads if None."""


def decoder_spec(config: Config, family: str, names: WeightNames, defaults: Defaults) -> DecoderSpec:
    """The spec of a Llama-like decoder; PieError `invalid-model` where its sizes do not go together."""
    config.only("hidden_act", "silu")
    n_heads, hidden_size = config.size("num_attention_heads"), config.size("hidden_size")
    n_kv_heads = config.size("num_key_value_heads", defaults.n_kv_heads or n_heads)
    if n_heads % n_kv_heads:
        raise config.error(f"num_attention_heads {n_heads} is not a multiple of num_key_value_heads {n_kv_heads}")
    if defaults.head_dim is None and config.fields.get("head_dim") is None and hidden_size % n_heads:
        raise config.error(f"hidden_size {hidden_size} is not a multiple of num_attention_heads {n_heads}, and there is no head_dim")
    head_dim = config.size("head_dim", defaults.head_dim or max(1, hidden_size // n_heads))
    if head_dim % 2:
        raise config.error(f"head_dim is {head_dim}; rotation needs an even one")
    max_positions = config.size("max_position_embeddings", defaults.max_positions)
    return DecoderSpec(
        family=family,
        vocab_size=config.size("vocab_size"),
        max_positions=max_positions,
        n_layers=config.size("num_hidden_layers", most=_MAX_LAYERS),
        hidden_size=hidden_size,
        intermediate_size=config.size("intermediate_size"),
        norm="rms",
        norm_epsilon=config.positive("rms_norm_eps", 1e-6),
        attention=Attention(n_heads, n_kv_heads, head_dim, scale=head_dim**-0.5, head_norms=names.layer.q_norm is not None),
        rotary=_rotary(config, max_positions),
        mlp="swiglu",
        embedding_scale=1.0,
        tied=config.flag("tie_word_embeddings", False),
        names=names,
    )


def _rotary(config: Config, max_positions: int) -> Rotary:
    """Rotary fields: in `rope_parameters` of newer configs, in `rope_scaling` and at the top of older ones."""
    config.only("partial_rotary_factor", 1)
    theta, scaling = config.positive("rope_theta", 10_000.0), None
    for name in ("rope_scaling", "rope_parameters"):
        section = config.section(name)
        if not section.fields:
            continue
        if any(isinstance(value, dict) for value in section.fields.values()):
            raise config.error(f"{name} differs by kind of layer, which is not supported; one set of fields is")
        section.only("partial_rotary_factor", 1)
        theta = section.positive("rope_theta", theta)
        scaling = _scaling(section, max_positions)
    if theta <= 1:
        raise config.error(f"rope_theta is {theta:g}; it must be above 1")
    return Rotary("halves", theta, scaling)


def _scaling(section: Config, max_positions: int) -> Scaling | None:
    kind = section.fields.get("rope_type") or section.fields.get("type") or "default"
    if kind == "default":
        return None
    original = section.size("original_max_position_embeddings", max_positions)
    if kind == "linear":
        return LinearScaling(_factor(section))
    if kind == "llama3":
        low, high = section.positive("low_freq_factor"), section.positive("high_freq_factor")
        if low >= high:
            raise section.error(f"low_freq_factor {low:g} is not below high_freq_factor {high:g}")
        return Llama3Scaling(_factor(section), low, high, original)
    if kind == "yarn":
        return _yarn(section, max_positions, original)
    why = ": its angles change with the length, so stored keys would not hold" if kind in ("dynamic", "longrope") else ""
    raise section.error(f"rope_type is {kind!r}, which is not supported{why}; supported: default, linear, llama3, yarn")


def _factor(section: Config) -> float:
    factor = section.positive("factor")
    if factor < 1:
        raise section.error(f"the factor of the rotary scaling is {factor:g}; it must be at least 1")
    return factor


def _yarn(section: Config, max_positions: int, original: int) -> YarnScaling:
    factor = max_positions / original if section.fields.get("factor") is None else _factor(section)
    scales = [None if section.fields.get(name) is None else section.positive(name) for name in ("mscale", "mscale_all_dim")]
    beta_fast, beta_slow = section.positive("beta_fast", 32.0), section.positive("beta_slow", 1.0)
    if beta_slow >= beta_fast:
        raise section.error(f"beta_slow {beta_slow:g} is not below beta_fast {beta_fast:g}")
    return YarnScaling(
        factor=factor,
        attention_factor=section.positive("attention_factor", yarn_attention_factor(factor, *scales)),
        beta_fast=beta_fast,
        beta_slow=beta_slow,
        original_positions=original,
        truncate=section.flag("truncate", True),
    )
