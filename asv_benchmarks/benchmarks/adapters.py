"""What adapters cost in a step: 32 sequences with eight adapters of rank 16, beside the same sequences without any.

The model is Qwen3-0.6B cut to half of its layers and a small vocabulary: the share of the adapters is that of a layer,
and a head would only make it smaller.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness import Figure, Goal, Row, in_turns, save, show
from pie.backends.adapters.modules import modules_of
from pie.backends.base import AdapterName, LoadAdapter
from pie.backends.cpu import CpuDriver, CpuOptions, open_driver
from pie.batch import Batch
from pie.batch_layout import ARRAYS, HEADER_WORDS, LAYOUT_VERSION, MAGIC
from pie.models.loader import read_config

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 2048,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 14,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
}
N_SEQS, N_ADAPTERS, RANK = 32, 8, 16
N_STEPS = 8
"""Steps of a sample."""
PAGE_SIZE = 16
NONE = "32 sequences without adapters in a driver that has eight"
CASES = {"32 sequences, 8 adapters of rank 16": N_SEQS, "4 of 32 sequences with an adapter of rank 16 each": 4, NONE: 0}

ROW = Row(
    name="adapters",
    title="A step of 32 sequences with adapters, on half of the layers of Qwen3-0.6B",
    driver="cpu, bfloat16, all cores",
    path="CpuDriver.run -> kernels",
    peer="the same sequences without adapters, in a driver that has none loaded",
)


def write_tensors(path: Path, shapes: dict[str, tuple[int, ...]], random: np.random.Generator) -> None:
    """Random bfloat16 numbers with small exponents: no sum overflows, and the speed does not depend on the values."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        n_bytes = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + n_bytes]}
        end += n_bytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in shapes.values():
            values = random.integers(0, 256, 2 * int(np.prod(shape)), np.uint8)
            values[1::2] = 0x3C
            file.write(values.tobytes())


def write_model(folder: Path, random: np.random.Generator) -> Path:
    """The model, in the Hugging Face format."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    write_tensors(folder / "model.safetensors", dict(read_config(folder).shapes()), random)
    return folder


def write_adapter(folder: Path, model: Path, random: np.random.Generator) -> Path:
    """An adapter of all linears, in the format of PEFT."""
    folder.mkdir()
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": "all-linear", "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    shapes = {}
    for module in modules_of(read_config(model)):
        name = f"base_model.model.{module.name}"
        shapes |= {f"{name}.lora_A.weight": (RANK, module.n_inputs), f"{name}.lora_B.weight": (module.n_outputs, RANK)}
    write_tensors(folder / "adapter_model.safetensors", shapes, random)
    return folder


def step_of(n_adapted: int, slot: int) -> Batch:
    """A token of each sequence, of which some have adapters, in the slot of that index."""
    ones, sequences = [1] * N_SEQS, range(N_SEQS)
    ids = [1 + idx % N_ADAPTERS if idx < n_adapted else 0 for idx in sequences]
    starts = list(range(N_SEQS + 1))
    arrays: dict[str, list[int]] = {key: [] for key in ARRAYS} | {
        "tokens": [7 + idx for idx in sequences],
        "positions": [slot] * N_SEQS,
        "qo_indptr": starts,
        "kv_indptr": starts,
        "kv_indices": list(sequences),
        "kv_last_page_len": [slot + 1] * N_SEQS,
        "seq_context": [word for idx in sequences for word in (idx + 1, 0)],
        "seq_request": [word for idx in sequences for word in (idx + 1, 0)],
        "seq_adapter": [word for adapter in ids for word in (adapter, 0)],
        "seq_adapter_version": ones,
        "seq_zo_seed": [0] * (3 * N_SEQS),
        "seq_media": [0] * (2 * N_SEQS),
        "seq_reread": [0] * N_SEQS,
        "seq_follows": [0] * N_SEQS,
        "row_token": list(sequences),
        "row_keep": [0] * N_SEQS,
        "row_sampler": [0] * (8 * N_SEQS),
        "row_slot": [0] * N_SEQS,
        "row_draws": ones,
        "row_mask_indptr": [0] * (N_SEQS + 1),
        "mask_indptr": [0] * (N_SEQS + 1),
    }
    header, offset = np.zeros(HEADER_WORDS, np.uint32), HEADER_WORDS
    for pair, name in enumerate(ARRAYS):
        header[16 + 2 * pair : 18 + 2 * pair] = offset, len(arrays[name])
        offset += len(arrays[name])
    header[:9] = MAGIC, LAYOUT_VERSION, offset, 0, 0, PAGE_SIZE, N_SEQS, N_SEQS, N_SEQS
    return Batch(np.concatenate([header, np.array([word for name in ARRAYS for word in arrays[name]], np.uint32)]))


def step_ms(driver: CpuDriver, steps: list[Batch]) -> float:
    """The mean time of a step."""
    start_s = time.perf_counter()
    for step in steps:
        driver.run(step)
    return (time.perf_counter() - start_s) * 1e3 / len(steps)


def measure() -> Iterator[Figure]:
    """Milliseconds of a step, with adapters and without."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = write_model(folder / "model", random)
        options = CpuOptions(n_pages=N_SEQS, max_batch_tokens=N_SEQS, page_size=PAGE_SIZE)
        ours, peer = open_driver(model, options), open_driver(model, options)
        for adapter_id in range(1, N_ADAPTERS + 1):
            path = write_adapter(folder / str(adapter_id), model, random)
            ours.command(LoadAdapter(AdapterName(adapter_id, 1), str(path)))
        plain = [step_of(0, slot) for slot in range(N_STEPS)]
        for case, n_adapted in CASES.items():
            steps = [step_of(n_adapted, slot) for slot in range(N_STEPS)]
            # The first run of each takes memory from the system.
            step_ms(ours, steps)
            step_ms(peer, plain)
            times = in_turns(partial(step_ms, ours, steps), partial(step_ms, peer, plain))
            figure = Figure(case, "ms/step", *times, goals=[Goal("ratio", 1.02 if n_adapted == 0 else 1.15)])
            show(f"adapters: {case}: {figure.median('ours'):.1f} ms, {figure.median('ratio'):.3f} x")
            yield figure


class Adapters:
    """The time of a step with adapters, in parts of one without."""

    params: ClassVar[list[str]] = list(CASES)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 900
    unit = "x"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], case: str) -> float:
        """The median over the rounds."""
        return figures[case].median("ratio")
