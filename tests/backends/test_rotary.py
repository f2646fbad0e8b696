"""Angles of rotation against transformers, of every kind of scaling, up to position 32,768."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from pie.backends import open_driver
from pie.backends.base import DriverOptions
from pie.backends.cpu import CpuOptions
from pie.backends.cpu.rotary import rotary_tables
from pie.models import rotary
from pie.models.loader import load_checkpoint
from pie.models.spec import LinearScaling, Llama3Scaling, Rotary, Scaling, YarnScaling
from support.arenas import Feed, batch

N_POSITIONS = 32_768
THETAS = (1e4, 1e5, 5e5, 1e6, 5e6, 12_345.6)
DIMS = (16, 24, 64, 80, 96, 128, 256)


def yarn(
    factor: float, original: int, *, truncate: bool = True, fast: float = 32.0, slow: float = 1.0
) -> tuple[YarnScaling, dict[str, Any]]:
    """A scaling, as Pie has it and as transformers has it."""
    fields = {"factor": factor, "attention_factor": 1.0, "beta_fast": fast, "beta_slow": slow, "truncate": truncate}
    return YarnScaling(**fields, original_positions=original), fields | {"rope_type": "yarn", "original_max_position_embeddings": original}


def llama3(factor: float, low: float, high: float, original: int) -> tuple[Llama3Scaling, dict[str, Any]]:
    fields = {"factor": factor, "low_freq_factor": low, "high_freq_factor": high}
    return Llama3Scaling(factor, low, high, original), fields | {"rope_type": "llama3", "original_max_position_embeddings": original}


SCALINGS: dict[str, tuple[Scaling | None, dict[str, Any]]] = {
    "plain": (None, {}),
    "linear": (LinearScaling(3.0), {"rope_type": "linear", "factor": 3.0}),
    "llama3": llama3(8.0, 1.0, 4.0, 8192),
    "llama3, other factors": llama3(32.0, 1.5, 3.7, 4096),
    "yarn": yarn(4.0, 4096),
    # The ramp ends behind the last pair: a bound at the last pair would slow the last ones wholly.
    "yarn, long before": yarn(4.0, 131_072),
    "yarn, not truncated": yarn(40.0, 131_072, truncate=False),
    "yarn, other ends": yarn(40.0, 4096, truncate=False, fast=16.0, slow=2.0),
    # Both ends lie on one pair.
    "yarn, steep": yarn(4.0, 4096, truncate=False, fast=1.000001, slow=1.0),
}


def as_trained(theta: float, dim: int, fields: dict[str, Any]) -> LlamaRotaryEmbedding:
    parameters = {"rope_type": "default", "rope_theta": theta} | fields
    sizes = {"hidden_size": 2 * dim, "num_attention_heads": 2, "head_dim": dim, "max_position_embeddings": N_POSITIONS}
    return LlamaRotaryEmbedding(transformers.LlamaConfig(**sizes, rope_parameters=parameters))


def ulps(found: Any, expected: Any) -> Any:
    """How many float32 lie between two positive ones."""
    return np.abs(found.view(np.int32).astype(np.int64) - expected.view(np.int32))


def powers_of_torch(theta: float, head_dim: int) -> Any:
    return (theta ** (torch.arange(0, head_dim, 2).float() / head_dim)).numpy()


@pytest.mark.parametrize("name", SCALINGS)
def test_frequencies_are_those_of_float32_arithmetic(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    scaling, fields = SCALINGS[name]
    cases = [(theta, dim, as_trained(theta, dim, fields).inv_freq.numpy()) for theta in THETAS for dim in DIMS]
    own = [ulps(rotary.inverse_frequencies(Rotary("halves", theta, scaling), dim), expected) for theta, dim, expected in cases]
    found = np.concatenate(own)
    # What is left is the last bit of a power, and what comes of it: most where the ramp of llama3 nearly cancels a
    # pair.
    assert (found > 0).mean() < 0.04
    assert found.max() <= 16
    monkeypatch.setattr(rotary, "_powers", powers_of_torch)
    for theta, dim, expected in cases:
        assert np.array_equal(rotary.inverse_frequencies(Rotary("halves", theta, scaling), dim), expected), (theta, dim)


def test_powers_are_rounded_correctly() -> None:
    for theta in THETAS:
        for dim in DIMS:
            exponents = np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)
            exact = np.longdouble(np.float32(theta)) ** exponents.astype(np.longdouble)
            powers = rotary._powers(theta, dim)
            assert np.array_equal(powers, exact.astype(np.float32))
            assert ulps(powers, powers_of_torch(theta, dim)).max() <= 1


@pytest.mark.parametrize("name", SCALINGS)
def test_tables_up_to_the_last_position(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    scaling, fields = SCALINGS[name]
    monkeypatch.setattr(rotary, "_powers", powers_of_torch)
    cos, sin = rotary_tables(Rotary("halves", 1e6, scaling), 128, N_POSITIONS)
    trained = as_trained(1e6, 128, fields)
    positions = torch.arange(N_POSITIONS)[None]
    expected = [table[0, :, :64].numpy() for table in trained(torch.zeros(1), positions)]
    # The angles are equal; torch's cosines are rounded twice.
    assert max(np.abs(cos - expected[0]).max(), np.abs(sin - expected[1]).max()) <= 1.2e-7


@pytest.mark.parametrize("name", ["plain", "linear", "llama3", "yarn, long before"])
def test_logits_of_far_positions(tmp_path: Path, library: Path, name: str) -> None:
    """A sequence whose tokens stand at any positions up to the last."""
    torch.manual_seed(4)
    torch.set_num_threads(1)
    parameters = {"rope_type": "default", "rope_theta": 5e5} | SCALINGS[name][1]
    config = transformers.LlamaConfig(
        vocab_size=160, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=N_POSITIONS, initializer_range=0.2, rope_parameters=parameters, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.save_pretrained(tmp_path)
    assert load_checkpoint(tmp_path).spec.max_positions == N_POSITIONS
    random = np.random.default_rng(3)
    tokens = random.integers(0, 160, 48).tolist()
    positions = sorted([0, N_POSITIONS - 1, *random.choice(N_POSITIONS - 1, 46, replace=False).tolist()])
    with torch.no_grad():
        expected = model(torch.tensor([tokens]), position_ids=torch.tensor([positions])).logits[0].numpy()
    feed = batch([Feed(tokens, range(3), rows=range(48), positions=positions)], page_size=16)
    for driver in (
        open_driver("cpu", tmp_path, CpuOptions(n_pages=4, dtype="float32", n_threads=1, library=library)),
        open_driver("reference", tmp_path, DriverOptions(n_pages=4, dtype="float32")),
    ):
        assert np.abs(driver.run(feed) - expected).max() / expected.std() < 1e-4
        driver.close()
