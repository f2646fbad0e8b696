"""Writes the released model directory from a checkpoint."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from .batches import load_tokenizer
from .card import Origin, model_card
from .checkpoint import Checkpoint
from .model import configuration
from .score import ScoreCard
from .tokenizer import END_OF_TEXT, TURN_END, token_id

LARGEST_BYTES = 16_000_000
"""The bound on the size of the weights file."""

_CONFIG_FIELDS = (
    *("architectures", "model_type", "vocab_size", "hidden_size", "intermediate_size"),
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("hidden_act", "max_position_embeddings", "rms_norm_eps", "rope_parameters"),
    *("attention_bias", "attention_dropout", "tie_word_embeddings", "use_cache"),
    *("use_sliding_window", "initializer_range", "bos_token_id", "eos_token_id"),
    "pad_token_id",
)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def export(checkpoint: Checkpoint, release: Path) -> str:
    """Writes config.json, generation_config.json and model.safetensors (bf16).

    The tokenizer must be there already. Returns the SHA-256 digest of the weights file.
    """
    tokenizer = load_tokenizer(release)
    end_of_text, turn_end = (token_id(tokenizer, t) for t in (END_OF_TEXT, TURN_END))
    full = configuration(end_of_text_id=end_of_text, turn_end_id=turn_end).to_dict()
    config = {name: full[name] for name in _CONFIG_FIELDS}
    config["architectures"] = ["Qwen3ForCausalLM"]
    # Both names of the same two facts: readers older and newer than transformers 5.
    config["rope_theta"] = full["rope_parameters"]["rope_theta"]
    config["dtype"] = config["torch_dtype"] = "bfloat16"
    _write_json(release / "config.json", config)
    _write_json(
        release / "generation_config.json",
        {
            "bos_token_id": end_of_text,
            "pad_token_id": end_of_text,
            "eos_token_id": [turn_end, end_of_text],
            "do_sample": True,
            "temperature": 0.8,
            "top_p": 0.95,
        },
    )
    weights = {name: t.to(torch.bfloat16).contiguous() for name, t in checkpoint.average.items()}
    path = release / "model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    # safetensors makes files that only their owner may read; a wheel keeps the mode.
    path.chmod(0o644)
    size = path.stat().st_size
    if size > LARGEST_BYTES:
        raise ValueError(f"{path.name} has {size} bytes; at most {LARGEST_BYTES} are allowed")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_card(checkpoint: Checkpoint, release: Path, scores: ScoreCard, origin: Origin) -> None:
    """Writes MODEL_CARD.md beside the weights, which must be those of the checkpoint."""
    content = (release / "model.safetensors").read_bytes()
    card = model_card(checkpoint, scores, origin, digest=hashlib.sha256(content).hexdigest(), n_bytes=len(content))
    (release / "MODEL_CARD.md").write_text(card, encoding="utf-8")
