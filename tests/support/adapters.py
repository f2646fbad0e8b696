"""Folders of adapters in the format of PEFT, written with numpy alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pie.backends.adapters.modules import modules_of
from pie.models.spec import DecoderSpec
from support.checkpoints import write_safetensors

ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def weights(spec: DecoderSpec, rank: int, seed: int, targets: Sequence[str] = ALL) -> dict[str, np.ndarray]:
    """Random matrices by their names, large enough to be seen in every logit."""
    random = np.random.default_rng(seed)
    found = {}
    for module in modules_of(spec):
        if module.short_name in targets:
            for letter, shape in (("A", (rank, module.n_inputs)), ("B", (module.n_outputs, rank))):
                values = random.standard_normal(shape) * shape[1] ** -0.5
                found[f"base_model.model.{module.name}.lora_{letter}.weight"] = values.astype(np.float32)
    return found


def config(rank: int, targets: Sequence[str] = ALL, **changes: Any) -> dict[str, Any]:
    """The fields of `adapter_config.json`; None removes one."""
    fields = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": list(targets),
        "bias": "none",
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def write_adapter(
    folder: Path, spec: DecoderSpec, *, rank: int = 4, seed: int = 0, dtype: str = "F32", targets: Sequence[str] = ALL, **changes: Any
) -> Path:
    """Writes a random adapter of a model, with some fields of its config changed."""
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(config(rank, targets, **changes)))
    write_safetensors(folder / "adapter_model.safetensors", weights(spec, rank, seed, targets), dtype)
    return folder
