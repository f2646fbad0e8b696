"""The architecture of the models: Qwen3, small."""

from __future__ import annotations

from typing import NamedTuple

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from .tokenizer import VOCABULARY_SIZE

MAX_POSITIONS = 2048


class Shape(NamedTuple):
    """What the sizes of a model follow from: widths, layers and heads."""

    width: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int


TINY = Shape(256, 512, 8, 4, 2)
"""5.8 M parameters.

Eight thin layers rather than fewer wide ones because most skills (sums, spelling) take several steps.
"""
DRAFT = Shape(64, 128, 4, 2, 1)
"""0.46 M parameters, 0.92 MB, of which the embedding is more than half: it guesses what the other says, for
speculation.
"""


def configuration(*, end_of_text_id: int, turn_end_id: int, shape: Shape = TINY) -> Qwen3Config:
    """The configuration that ships with the weights.

    The head size is 64 because paged-attention libraries for accelerators have no smaller one.
    """
    return Qwen3Config(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=shape.width,
        intermediate_size=shape.mlp,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=64,
        max_position_embeddings=MAX_POSITIONS,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=True,
        attention_bias=False,
        use_cache=True,
        bos_token_id=end_of_text_id,
        eos_token_id=turn_end_id,
        pad_token_id=end_of_text_id,
    )


def fresh_model(config: Qwen3Config, seed: int) -> Qwen3ForCausalLM:
    """Random weights in float32 that depend on the seed alone.

    The output layers of attention and MLP begin at zero, so that every layer is at first
    the identity (the residual stream alone), which lets small models start at a high rate.
    """
    torch.manual_seed(seed)
    model: Qwen3ForCausalLM = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                parameter.zero_()
            elif name.endswith("proj.weight"):
                torch.nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
            elif name.endswith("embed_tokens.weight"):
                torch.nn.init.normal_(parameter, std=0.02)
    return model
