"""Adapters that PEFT made: the logits of PEFT on torch, for models of each family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import torch
import transformers

from pie.backends import open_driver
from pie.backends.base import AdapterName, CommandedDriver, DriverOptions, LoadAdapter
from pie.backends.cpu import CpuOptions
from support.arenas import Feed, batch
from support.checkpoints import QWEN3, write_checkpoint
from support.families import save_random

PROMPT = np.random.default_rng(3).integers(0, 160, 100).tolist()
NAME = AdapterName(5, 1)
FAMILIES = {"llama": "grouped, llama3", "mistral": "mistral", "qwen2": "qwen2", "qwen3": None}
ADAPTERS: dict[str, dict[str, Any]] = {
    "attention": {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]},
    "all linears, rslora": {"r": 3, "lora_alpha": 5, "target_modules": "all-linear", "use_rslora": True},
    "one layer": {"r": 16, "lora_alpha": 8, "target_modules": ["o_proj", "down_proj"], "layers_to_transform": [1]},
}


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def model_of(folder: Path, name: str | None) -> torch.nn.Module:
    """A random model, saved in the folder."""
    if name is not None:
        return save_random(folder, name)
    assert QWEN3["model_type"] == "qwen3"
    write_checkpoint(folder, dtype="F32")
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def adapted(model: torch.nn.Module, folder: Path, options: dict[str, Any]) -> torch.nn.Module:
    """The model with a random adapter of PEFT, which is saved in the folder."""
    torch.manual_seed(11)
    found = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options))
    with torch.no_grad():
        for name, parameter in found.named_parameters():
            if ".lora_" in name:
                # Small beside the weights: else the rounding of float32 grows beyond what is compared, in PEFT too.
                parameter.copy_(torch.randn_like(parameter) * 0.5 * parameter.shape[1] ** -0.5)
    found.save_pretrained(folder)
    return found.eval()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_logits_are_those_of_peft(tmp_path: Path, library: Path, family: str, adapter: str) -> None:
    model = model_of(tmp_path / "model", FAMILIES[family])
    with torch.no_grad():
        plain = model(torch.tensor([PROMPT])).logits[0].numpy()
        expected = adapted(model, tmp_path / "adapter", ADAPTERS[adapter])(torch.tensor([PROMPT])).logits[0].numpy()
    assert np.abs(expected - plain).max() / expected.std() > 1e-2
    sizes: dict[str, Any] = {"n_pages": 16, "dtype": "float32"}
    for backend, options in (("cpu", CpuOptions(**sizes, library=library)), ("reference", DriverOptions(**sizes))):
        driver = open_driver(backend, tmp_path / "model", options)
        assert isinstance(driver, CommandedDriver)
        driver.command(LoadAdapter(NAME, str(tmp_path / "adapter")))
        asks = {"adapter": NAME.id, "adapter_version": NAME.version}
        logits = driver.run(batch([Feed(PROMPT, range(16), rows=range(len(PROMPT)), **asks)], page_size=16))
        difference = float(np.abs(logits - expected).max() / expected.std())
        print(f"{family}, {adapter}: {backend}: largest difference {difference:.1e} of the spread")
        assert difference < 1e-4
        driver.close()
