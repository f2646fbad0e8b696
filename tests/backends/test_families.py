"""Random models of the Llama-like families, made and saved by transformers: every back end gives its logits and greedy
tokens.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pie.backends import open_driver
from pie.backends.base import Driver, DriverOptions
from pie.backends.cpu import CpuOptions
from pie.models.loader import load_checkpoint
from support.arenas import Feed, batch
from support.families import MODELS, save_random
from support.kernels import isas

N_PROMPT, N_NEW = 160, 32
PROMPT = np.random.default_rng(3).integers(0, 160, N_PROMPT).tolist()


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def drivers(folder: Path, library: Path, dtype: str | None = "float32") -> dict[str, Driver]:
    """The reference, and the CPU back end on each instruction set."""
    sizes: dict[str, Any] = {"n_pages": 16, "dtype": dtype}
    opened = {isa: open_driver("cpu", folder, CpuOptions(**sizes, n_threads=2, isa=isa, library=library)) for isa in isas(library)}
    return opened | {"reference": open_driver("reference", folder, DriverOptions(**sizes))}


def greedy(driver: Driver, newest: int) -> list[int]:
    """The continuation after a prompt that is stored already."""
    tokens = [newest]
    while len(tokens) < N_NEW:
        logits = driver.run(batch([Feed([tokens[-1]], range(16), start=N_PROMPT + len(tokens) - 1, rows=[0])], page_size=16))
        tokens.append(int(logits[0].argmax()))
    return tokens


def check_parity(name: str, folder: Path, model: torch.nn.Module, library: Path) -> None:
    prompt = torch.tensor([PROMPT])
    with torch.no_grad():
        expected = model(prompt).logits[0].numpy()
        continuation = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
            max_new_tokens=N_NEW, min_new_tokens=N_NEW, pad_token_id=0, eos_token_id=None,
        )[0, N_PROMPT:].tolist()  # fmt: skip
    for backend, driver in drivers(folder, library).items():
        logits = driver.run(batch([Feed(PROMPT, range(16), rows=range(N_PROMPT))], page_size=16))
        difference = float(np.abs(logits - expected).max() / expected.std())
        print(f"{name}: {backend}: largest difference {difference:.1e} of the spread")
        assert difference < 1e-4, backend
        assert greedy(driver, int(logits[-1].argmax())) == continuation, backend
        driver.close()


@pytest.mark.parametrize("name", MODELS)
def test_random_models(tmp_path: Path, library: Path, name: str) -> None:
    check_parity(name, tmp_path, save_random(tmp_path, name), library)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_sharded_models_of_every_dtype(tmp_path: Path, library: Path, dtype: torch.dtype) -> None:
    model = save_random(tmp_path, "grouped, llama3", dtype=dtype, max_shard_size="60KB")
    assert len(list(tmp_path.glob("*.safetensors"))) >= 3
    checkpoint = load_checkpoint(tmp_path)
    assert {f"torch.{tensor.dtype}" for tensor in checkpoint.tensors.values()} == {str(dtype)}
    assert checkpoint.dtype == ("bfloat16" if dtype == torch.bfloat16 else "float32")
    check_parity(f"{dtype}, sharded", tmp_path, model, library)


@pytest.mark.parametrize("name", MODELS)
def test_configs_of_older_versions_say_the_same(tmp_path: Path, name: str) -> None:
    """`rope_theta` at the top and `rope_scaling` with `type`, as checkpoints of before 2026 have them."""
    save_random(tmp_path, name)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    expected = load_checkpoint(tmp_path).spec
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = None if scaling["rope_type"] == "default" else {"type": scaling.pop("rope_type")} | scaling
    path.write_text(json.dumps(config))
    assert load_checkpoint(tmp_path).spec == expected


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_is_one_computation_on_every_back_end(tmp_path: Path, library: Path, name: str) -> None:
    """The same roundings in the same places: only the order of sums differs, and instruction sets do not differ at
    all.
    """
    save_random(tmp_path, name, dtype=torch.bfloat16)
    rows = {
        backend: driver.run(batch([Feed(PROMPT, range(16), rows=range(N_PROMPT))], page_size=16))
        for backend, driver in drivers(tmp_path, library, dtype=None).items()
    }
    reference = rows.pop("reference")
    assert len({logits.tobytes() for logits in rows.values()}) == 1
    difference = np.abs(rows["portable"] - reference) / reference.std()
    print(f"{name}: bfloat16: mean difference {difference.mean():.1e}, largest {difference.max():.1e} of the spread")
    assert difference.mean() < 5e-3
