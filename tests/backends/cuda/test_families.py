"""The cuda back end on torch's CPU against transformers: every family, tied or not, sharded, in every dtype."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from pie.backends import open_driver
from pie.backends.base import Driver
from pie.backends.cuda import CudaOptions
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.conformance import RowsOf
from support.families import MODELS, save_random

N_PROMPT, N_NEW = 48, 6
PROMPT = np.random.default_rng(3).integers(0, 160, N_PROMPT).tolist()
FLOAT32 = 1e-4
"""How far a logit may be off, in standard deviations of all of them."""


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def opened(folder: Path, dtype: str | None) -> Driver:
    return RowsOf(open_driver("cuda", folder, CudaOptions(device="cpu", n_pages=8, dtype=dtype, swap_bytes=0)))


def rows_of(driver: Driver) -> np.ndarray:
    return driver.run(batch([Feed(PROMPT, range(8), rows=range(N_PROMPT))], page_size=16))


def check_parity(name: str, folder: Path, model: torch.nn.Module) -> None:
    prompt, driver = torch.tensor([PROMPT]), opened(folder, "float32")
    with torch.no_grad():
        expected = model(prompt).logits[0].numpy()
        continuation = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
            max_new_tokens=N_NEW, min_new_tokens=N_NEW, pad_token_id=0, eos_token_id=None,
        )[0, N_PROMPT:].tolist()  # fmt: skip
    logits = rows_of(driver)
    difference = float(np.abs(logits - expected).max() / expected.std())
    print(f"{name}: largest difference {difference:.1e} of the spread")
    assert difference < FLOAT32
    tokens = [int(logits[-1].argmax())]
    while len(tokens) < N_NEW:
        feed = Feed([tokens[-1]], range(8), start=N_PROMPT + len(tokens) - 1, rows=[0])
        tokens.append(int(driver.run(batch([feed], page_size=16))[0].argmax()))
    assert tokens == continuation
    driver.close()


@pytest.mark.parametrize("name", MODELS)
def test_random_models(tmp_path: Path, name: str) -> None:
    check_parity(name, tmp_path, save_random(tmp_path, name))


@pytest.mark.parametrize("is_tied", [False, True])
def test_qwen3(tmp_path: Path, *, is_tied: bool) -> None:
    folder = write_checkpoint(tmp_path / "model", dtype="F32", n_shards=3, tie_word_embeddings=is_tied)
    check_parity("qwen3", folder, transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["grouped, llama3", "biases everywhere, yarn with all fields", "qwen2"])
def test_half_precision_is_that_of_transformers_but_for_rounding(tmp_path: Path, name: str, dtype: torch.dtype) -> None:
    """Both round in the same places where they can, and sum in another order."""
    save_random(tmp_path, name, dtype=dtype, max_shard_size="60KB")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=dtype).eval()
    exact = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    with torch.no_grad():
        theirs, expected = (peer(torch.tensor([PROMPT])).logits[0].float().numpy() for peer in (model, exact))
    ours = rows_of(opened(tmp_path, None))
    mine, yours = (float(np.abs(logits - expected).mean() / expected.std()) for logits in (ours, theirs))
    print(f"{name}: {dtype}: mean difference from float32 {mine:.1e} of the spread, that of transformers {yours:.1e}")
    assert mine < 1.25 * yours + 1e-4
