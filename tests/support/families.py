"""Random models of the Llama-like families, made and saved by transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

SIZES = {
    "vocab_size": 160, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "initializer_range": 0.2, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LONG_YARN = YARN | {"beta_fast": 16.0, "beta_slow": 2.0, "mscale": 0.7, "mscale_all_dim": 1.1, "truncate": False}


def rotary(theta: float = 10_000.0, **scaling: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta} | scaling}


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "grouped, llama3": ("Llama", rotary(5e5, **LLAMA3)),
    "tied, one kv head, yarn": ("Llama", rotary(**YARN) | {"tie_word_embeddings": True, "num_key_value_heads": 1}),
    "no groups, wide heads, linear": (
        "Llama",
        rotary(rope_type="linear", factor=3.0) | {"num_key_value_heads": 4, "head_dim": 32, "hidden_size": 48, "num_hidden_layers": 4},
    ),
    "biases everywhere, yarn with all fields": ("Llama", rotary(**LONG_YARN) | {"attention_bias": True, "mlp_bias": True}),
    "mistral": ("Mistral", rotary() | {"sliding_window": None, "head_dim": 16}),
    "qwen2": ("Qwen2", rotary(1e6) | {"num_attention_heads": 2, "tie_word_embeddings": True}),
    "qwen2, yarn": ("Qwen2", rotary(1e6, **YARN)),
}


def save_random(
    folder: Path, name: str, *, dtype: torch.dtype = torch.float32, max_shard_size: str = "1GB", **others: Any
) -> torch.nn.Module:
    """Makes the model, biases included, with some fields of its config changed, and saves it in that dtype.

    Returns what it computes in float32 with the saved weights.
    """
    family, changes = MODELS[name]
    changes = changes | others
    torch.manual_seed(len(name))
    config = getattr(transformers, f"{family}Config")(**SIZES | changes)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in (p for n, p in model.named_parameters() if n.endswith("bias") or "norm" in n):
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    model.to(dtype).save_pretrained(folder, max_shard_size=max_shard_size)
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
