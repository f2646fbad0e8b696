"""Where the parts run, and models for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.calls import Calls, library_calls, standin_calls
from pie.backends.cuda.device import CudaDevice, Device, HostDevice
from pie.models.loader import load_checkpoint, read_config

Row = tuple[str, str, str]
"""What was looked at, what was found, and whether that is what it should be: `yes`, `no`, or the reason of neither."""

SMALL = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 160, "hidden_size": 128, "intermediate_size": 192,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip
"""The least heads that FlashInfer serves."""
SHAPE_06B = SMALL | {
    "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40_960, "rope_theta": 1e6, "tie_word_embeddings": True,
}  # fmt: skip
"""That of Qwen3-0.6B."""


@dataclass(frozen=True)
class Place:
    """A device, and a folder for models."""

    device: str
    folder: Path

    @property
    def is_gpu(self) -> bool:
        """On a CPU the parts run too, with small sizes: so are they tested."""
        return self.device != "cpu"

    def calls(self, *, deterministic: bool = True) -> Calls:
        """The calls of a step."""
        return library_calls(deterministic=deterministic) if self.is_gpu else standin_calls()

    def torch_device(self) -> Device:
        """The device."""
        return CudaDevice(self.device) if self.is_gpu else HostDevice()

    def driver(self, model: Path, **options: Any) -> CudaDriver:
        """A driver of that model."""
        return CudaDriver(load_checkpoint(model), CudaOptions(device=self.device, swap_bytes=1 << 20, **options))

    def model(self, name: str, config: dict[str, Any], dtype: torch.dtype = torch.bfloat16) -> Path:
        """A folder with random weights of that config, made once."""
        from safetensors.torch import save_file

        folder = self.folder / f"{name}-{str(dtype).removeprefix('torch.')}"
        if (folder / "model.safetensors").exists():
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        torch.manual_seed(0)
        weights = {}
        for weight, shape in read_config(folder).shapes().items():
            values = torch.randn(shape) * (0.3 if len(shape) == 1 else 2.0 * shape[1] ** -0.5) + (1.0 if len(shape) == 1 else 0.0)
            weights[weight] = values.to(dtype)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        return folder


def judged(what: str, found: str, *, is_right: bool) -> Row:
    """A row of the table."""
    return (what, found, "yes" if is_right else "no")


def is_all_right(rows: Sequence[Row]) -> bool:
    """Whether nothing is as it should not be."""
    return all(verdict != "no" for _, _, verdict in rows)
