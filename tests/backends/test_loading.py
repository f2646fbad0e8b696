"""Model folders and options that cannot be served: one clear error each."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pie.backends.base import DriverError
from pie.backends.cpu import CpuOptions, open_driver
from pie.errors import PieError
from pie.models.loader import load_checkpoint, read_config
from support.arenas import Feed, batch
from support.checkpoints import QWEN3, write_checkpoint, write_safetensors


def rewrite_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut(path: Path, n_bytes: int) -> None:
    path.write_bytes(path.read_bytes()[:n_bytes])


def rewrite_header(folder: Path, change: Callable[[dict[str, dict[str, object]]], None]) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


Q = "model.layers.0.self_attn.q_proj.weight"
# What is done to a good folder, and what the error must say.
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), r"config.json: cannot be read"),
    "config is not JSON": (lambda folder: cut(folder / "config.json", 40), r"config.json: not JSON"),
    "config is a list": (lambda folder: (folder / "config.json").write_text("[]"), r"holds a list, not an object"),
    "architecture": (
        lambda folder: rewrite_config(folder, architectures=["GPT2LMHeadModel"]),
        r"'GPT2LMHeadModel' is not supported; supported: LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM",
    ),
    "no architecture": (lambda folder: rewrite_config(folder, architectures=None), r"architectures is missing"),
    "missing size": (lambda folder: rewrite_config(folder, hidden_size=None), r"hidden_size is missing"),
    "text for a size": (lambda folder: rewrite_config(folder, hidden_size="48"), r"hidden_size is '48'; it must be an integer"),
    "negative size": (lambda folder: rewrite_config(folder, num_hidden_layers=-1), r"num_hidden_layers is -1"),
    "huge size": (lambda folder: rewrite_config(folder, vocab_size=1 << 40), r"vocab_size is 1099511627776"),
    "heads": (lambda folder: rewrite_config(folder, num_attention_heads=3), r"3 is not a multiple of num_key_value_heads 2"),
    "odd head": (lambda folder: rewrite_config(folder, head_dim=31), r"head_dim is 31"),
    "activation": (lambda folder: rewrite_config(folder, hidden_act="gelu"), r"hidden_act is 'gelu', which is not supported"),
    "biases": (lambda folder: rewrite_config(folder, attention_bias=True), r"attention_bias is True"),
    "sliding window": (lambda folder: rewrite_config(folder, layer_types=["sliding_attention"]), r"layer_types names"),
    "rotary scaling": (lambda folder: rewrite_config(folder, rope_scaling={"rope_type": "dynamic"}), r"rope_type is 'dynamic'"),
    "quantised": (lambda folder: rewrite_config(folder, quantization_config={"bits": 4}), r"quantised weights"),
    "wrong shape": (
        lambda folder: rewrite_config(folder, num_attention_heads=8),
        r"model.safetensors: model.layers.0.self_attn.q_proj.weight has shape \[128, 48\], but .*config.json makes it \[256, 48\]",
    ),
    "missing tensor": (
        lambda folder: rewrite_config(folder, num_hidden_layers=3),
        r"lack model.layers.2.input_layernorm.weight of shape \[48\]",
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), r"model.safetensors: cannot be read"),
    "empty weights": (lambda folder: cut(folder / "model.safetensors", 0), r"the file is empty"),
    "a few bytes": (lambda folder: cut(folder / "model.safetensors", 5), r"not a safetensors file, or cut off \(5 bytes\)"),
    "cut in the header": (lambda folder: cut(folder / "model.safetensors", 600), r"not a safetensors file, or cut off \(600 bytes\)"),
    "cut in the data": (lambda folder: cut(folder / "model.safetensors", 30_000), r"the file is cut off; fetch it again"),
    "header is no JSON": (
        lambda folder: (folder / "model.safetensors").write_bytes((4).to_bytes(8, "little") + b"{{{{"),
        r"its header: not JSON",
    ),
    "unknown dtype": (
        lambda folder: rewrite_header(folder, lambda header: header[Q].update(dtype="F8_E4M3")),
        r"is F8_E4M3; supported: BF16, F16, F32",
    ),
    "offsets": (
        lambda folder: rewrite_header(folder, lambda header: header[Q].update(data_offsets=[0, 1 << 60])),
        r"q_proj.weight lies at bytes 0 to",
    ),
    "bytes for a shape": (
        lambda folder: rewrite_header(folder, lambda header: header[Q].update(shape=[128, 47])),
        r"q_proj.weight has 12288 bytes for shape \[128, 47\] of BF16",
    ),
    "entry": (lambda folder: rewrite_header(folder, lambda header: header[Q].update(shape="many")), r"entry of .*q_proj.weight is damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_one_clear_error(tmp_path: Path, library: Path, damage: str) -> None:
    folder = write_checkpoint(tmp_path / "model")
    do, message = DAMAGES[damage]
    do(folder)
    with pytest.raises(PieError, match=message) as caught:
        open_driver(folder, CpuOptions(library=library))
    assert caught.value.code == "invalid-model"
    assert str(folder) in caught.value.message


def test_shards(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", n_shards=3)
    whole = write_checkpoint(tmp_path / "whole")
    found, expected = load_checkpoint(folder).tensors, load_checkpoint(whole).tensors
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name].float32(), expected[name].float32()) for name in expected)


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        (None, "weight_map is missing or damaged"),
        ({Q: "../elsewhere.safetensors"}, "a shard lies in the model folder itself"),
        ({Q: "model-00009-of-00002.safetensors"}, "model-00009-of-00002.safetensors: cannot be read"),
        ({Q: "model-00001-of-00002.safetensors", "nobody": "model-00001-of-00002.safetensors"}, "lacks nobody"),
    ],
)
def test_a_damaged_index(tmp_path: Path, weight_map: object, message: str) -> None:
    folder = write_checkpoint(tmp_path / "model", n_shards=2)
    write_safetensors(folder / "model-00001-of-00002.safetensors", {Q: np.zeros((128, 48))}, "BF16")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(PieError, match=message) as caught:
        load_checkpoint(folder)
    assert caught.value.code == "invalid-model"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "dtype is 'int8'; choose one of bfloat16, float32"),
        ({"dtype": "bfloat16"}, "has float32 weights, which are not rounded"),
        ({"isa": "neon"}, "isa is 'neon'; choose one of auto, avx512, avx2, portable"),
        ({"n_threads": 0}, "n_threads is 0; it must be 1 to 1024"),
        ({"page_size": 0}, "page_size is 0"),
        ({"max_batch_tokens": 0}, "max_batch_tokens is 0"),
        ({"kv_bytes": 100}, "kv_bytes is 100; one page of 16 tokens needs 16384"),
        ({"n_pages": 0}, "n_pages is 0"),
    ],
)
def test_options_are_checked(tmp_path: Path, library: Path, options: dict[str, object], message: str) -> None:
    folder = write_checkpoint(tmp_path / "model", dtype="F32")
    with pytest.raises(PieError, match=message) as caught:
        open_driver(folder, CpuOptions(library=library, **options))
    assert caught.value.code == "invalid-argument"


def test_capabilities(tmp_path: Path, library: Path) -> None:
    folder = write_checkpoint(tmp_path / "model")
    capabilities = open_driver(folder, CpuOptions(kv_bytes=100_000, library=library)).capabilities
    # 2 layers x (keys, values) x 2 heads x 32 elements x 16 tokens x 2 bytes: 8,192 a page.
    assert (capabilities.vocab_size, capabilities.max_positions, capabilities.page_size, capabilities.n_pages) == (160, 512, 16, 12)


def test_a_closed_driver_says_so(tmp_path: Path, library: Path) -> None:
    driver = open_driver(write_checkpoint(tmp_path / "model"), CpuOptions(library=library))
    driver.close()
    driver.close()
    with pytest.raises(DriverError, match="closed"):
        driver.run(batch([Feed([1], [0], rows=[0])], page_size=16))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rope_theta": 5e5}, 5e5),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7e5}}, 7e5),
        ({"rope_theta": 5e5, "rope_scaling": None}, 5e5),
        ({"rope_theta": None}, 1e4),
    ],
)
def test_the_rotary_base_of_old_and_new_configs(tmp_path: Path, changes: dict[str, object], expected: float) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3 | changes))
    assert read_config(tmp_path).rotary.theta == expected
