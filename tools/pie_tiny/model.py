"""The architecture of the model: Qwen3, small."""

from __future__ import annotations

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from .tokenizer import VOCABULARY_SIZE

MAX_POSITIONS = 2048
N_LAYERS = 8


def configuration(*, end_of_text_id: int, turn_end_id: int, n_layers: int = N_LAYERS) -> Qwen3Config:
    """The configuration that ships with the weights.

    5.8 M parameters. The head size is 64 because paged-attention libraries for
    accelerators have no smaller one; eight thin layers rather than fewer wide ones because
    most skills (sums, spelling, recalling a name) take several steps.
    """
    return Qwen3Config(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=n_layers,
        num_attention_heads=4,
        num_key_value_heads=2,
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
