"""Which function makes the spec of which architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pie.models.config import Config
from pie.models.llama import llama, mistral
from pie.models.qwen2 import qwen2
from pie.models.qwen3 import qwen3
from pie.models.spec import DecoderSpec

FAMILIES: Mapping[str, Callable[[Config], DecoderSpec]] = MappingProxyType(
    {"LlamaForCausalLM": llama, "MistralForCausalLM": mistral, "Qwen2ForCausalLM": qwen2, "Qwen3ForCausalLM": qwen3}
)
"""By the name in `architectures` of a config."""


def spec_of(config: Config) -> DecoderSpec:
    """The spec of a config; PieError `invalid-model` where no family knows its architecture."""
    architectures = config.fields.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise config.error("architectures is missing; it must name the architecture of the model")
    for architecture in architectures:
        if isinstance(architecture, str) and architecture in FAMILIES:
            if config.fields.get("quantization_config") is not None:
                raise config.error("quantised weights are not supported; use the bfloat16, float16 or float32 checkpoint")
            return FAMILIES[architecture](config)
    raise config.error(f"architecture {architectures[0]!r} is not supported; supported: {', '.join(sorted(FAMILIES))}")
