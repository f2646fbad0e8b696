"""Small random models in the Hugging Face format, written with numpy alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pie.models.loader import read_config

QWEN3: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 160,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}
"""A config that tests vary."""


def write_checkpoint(folder: Path, *, seed: int = 0, dtype: str = "BF16", n_shards: int = 1, **changes: Any) -> Path:
    """Writes a model of `QWEN3` with some fields changed; None removes one."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {name: value for name, value in (QWEN3 | changes).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    random = np.random.default_rng(seed)
    weights = {}
    for name, shape in read_config(folder).shapes().items():
        scale = 0.3 if len(shape) == 1 else 2.0 * shape[1] ** -0.5
        values = random.standard_normal(shape) * scale + (1.0 if len(shape) == 1 else 0.0)
        weights[name] = values.astype(np.float32)
    names = sorted(weights)
    if n_shards == 1:
        write_safetensors(folder / "model.safetensors", weights, dtype)
        return folder
    weight_map = {}
    for shard_idx in range(n_shards):
        shard = f"model-{shard_idx + 1:05}-of-{n_shards:05}.safetensors"
        mine = names[shard_idx::n_shards]
        write_safetensors(folder / shard, {name: weights[name] for name in mine}, dtype)
        weight_map |= dict.fromkeys(mine, shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def write_safetensors(path: Path, weights: dict[str, np.ndarray], dtype: str) -> None:
    """Writes float32 arrays as `F32`, or cut to `BF16`."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, values in weights.items():
        encoded = values.astype("<f4").tobytes() if dtype == "F32" else (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(encoded)]}
        data += encoded
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_shallow_copy(folder: Path, original: Path, layers: Sequence[int]) -> Path:
    """Writes a model that has some layers of another one, in this order, and its embeddings, head and tokenizer. A
    small model that thinks much like the large one, as a draft model should.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in original.iterdir():
        if file.suffix == ".json":
            shutil.copy(file, folder)
    config = json.loads((original / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": len(layers)}))
    weights = (original / "model.safetensors").read_bytes()
    n_header = int.from_bytes(weights[:8], "little")
    header, data = json.loads(weights[8 : 8 + n_header]), weights[8 + n_header :]
    kept: dict[str, Any] = {}
    copied = b""
    for name, entry in header.items():
        before, _, rest = name.partition(".layers.")
        layer, _, what = rest.partition(".")
        if name == "__metadata__" or (rest and int(layer) not in layers):
            continue
        start, end = entry["data_offsets"]
        new = f"{before}.layers.{layers.index(int(layer))}.{what}" if rest else name
        kept[new] = entry | {"data_offsets": [len(copied), len(copied) + end - start]}
        copied += data[start:end]
    text = json.dumps(kept).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + copied)
    return folder
