"""Model folders and options that cannot be served: one clear error each."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import transformers

from pie.backends import sizes
from pie.backends.base import DriverError, DriverOptions
from pie.backends.cpu import CpuOptions, open_driver
from pie.config import ModelConfig
from pie.errors import PieError
from pie.memory import needed_bytes
from pie.models.loader import load_checkpoint, read_config
from support.arenas import Feed, batch
from support.checkpoints import QWEN3, write_checkpoint, write_safetensors


def rewrite_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut(path: Path, n_bytes: int) -> None:
    path.write_bytes(path.read_bytes()[:n_bytes])


def rewrite_header_text(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    text = change(content[8 : 8 + length].decode().rstrip()).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def rewrite_header(folder: Path, change: Callable[[dict[str, dict[str, object]]], None]) -> None:
    def changed(text: str) -> str:
        header = json.loads(text)
        change(header)
        return json.dumps(header)

    rewrite_header_text(folder, changed)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


NORM = "model.layers.0.input_layernorm.weight"
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
    "weights are a folder": (lambda folder: replace(folder / "model.safetensors", Path.mkdir), r"model.safetensors: is not a file"),
    "weights are a pipe": (lambda folder: replace(folder / "model.safetensors", os.mkfifo), r"model.safetensors: is not a file"),
    "config is a pipe": (lambda folder: replace(folder / "config.json", os.mkfifo), r"config.json: is not a file"),
    "huge config": (lambda folder: os.truncate(folder / "config.json", (64 << 20) + 1), r"config.json: is larger than 67108864 bytes"),
    "field twice": (
        lambda folder: (folder / "config.json").write_text('{"hidden_size": 1, "x": 0, "hidden_size": 2}'),
        r"config.json: names 'hidden_size' twice",
    ),
    "tensor twice in the header": (
        lambda folder: rewrite_header_text(folder, lambda text: text[:-1] + ', "' + Q + '": {}}'),
        r"model.safetensors: its header: names 'model.layers.0.self_attn.q_proj.weight' twice",
    ),
    "weights that the config denies": (
        lambda folder: rewrite_header(
            folder, lambda header: header.update({Q[:-6] + "bias": header[NORM] | {"shape": [0], "data_offsets": [0, 0]}})
        ),
        r"q_proj.bias has no place in the model that .*config.json makes",
    ),
    "entry": (lambda folder: rewrite_header(folder, lambda header: header[Q].update(shape="many")), r"entry of .*q_proj.weight is damaged"),
}


def test_the_memory_of_a_model_is_that_of_the_weights_it_reads(tmp_path: Path) -> None:
    def weights_bytes(folder: Path) -> int:
        model = ModelConfig(name="m", path=str(folder))
        return needed_bytes(model) - model.kv_bytes

    whole, sharded = write_checkpoint(tmp_path / "whole"), write_checkpoint(tmp_path / "sharded", n_shards=2)
    shards_bytes = sum(path.stat().st_size for path in sharded.glob("*.safetensors"))
    for folder in (whole, sharded):
        (folder / "consolidated.safetensors").write_bytes(bytes(1 << 20))
    assert weights_bytes(whole) == (whole / "model.safetensors").stat().st_size
    assert weights_bytes(sharded) == shards_bytes
    (sharded / "model.safetensors.index.json").write_text("{}")
    assert weights_bytes(sharded) == 0  # loading says what is wrong


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


FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
# What the index says of a tensor, and what the error must say.
INDICES: dict[str, tuple[object, str]] = {
    "no map": (None, "weight_map is missing or damaged"),
    "a list": ([Q], "weight_map is missing or damaged"),
    "a number for a shard": ({Q: 1}, "weight_map is missing or damaged"),
    "a shard beside the folder": (
        {Q: "../elsewhere.safetensors"},
        "names the shard '../elsewhere.safetensors'; a shard lies in the model folder",
    ),
    "an absolute path": ({Q: "/etc/passwd"}, "names the shard '/etc/passwd'"),
    "a backslash": ({Q: "..\\elsewhere"}, "a shard lies in the model folder itself"),
    "the folder above": ({Q: ".."}, "names the shard '..'"),
    "the folder": ({Q: ""}, "names the shard ''"),
    "a NUL": ({Q: "model\0.safetensors"}, "a shard lies in the model folder itself"),
    "a missing shard": ({Q: "model-00009-of-00002.safetensors"}, "model-00009-of-00002.safetensors: cannot be read"),
    "a shard without the tensor": ({Q: FIRST, "nobody": FIRST}, f"{FIRST}: lacks nobody, which model.safetensors.index.json places there"),
    "the other shard": ({Q: SECOND}, f"{SECOND}: lacks {Q}, which"),
    "not all tensors": ({Q: FIRST}, "the weights lack model.embed_tokens.weight of shape"),
}


@pytest.mark.parametrize("damage", INDICES)
def test_a_damaged_index(tmp_path: Path, damage: str) -> None:
    weight_map, message = INDICES[damage]
    folder = write_checkpoint(tmp_path / "model", n_shards=2)
    write_safetensors(folder / FIRST, {Q: np.zeros((128, 48))}, "BF16")
    write_safetensors(folder / SECOND, {}, "BF16")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(PieError) as caught:
        load_checkpoint(folder)
    assert caught.value.code == "invalid-model"
    assert message in caught.value.message
    print(f"{damage}: {caught.value.message}")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: cut(folder / SECOND, 100), "not a safetensors file, or cut off"),
        (lambda folder: cut(folder / SECOND, (folder / SECOND).stat().st_size - 2), "the file is cut off; fetch it again"),
        (lambda folder: (folder / SECOND).unlink(), f"{SECOND}: cannot be read"),
        (lambda folder: (folder / SECOND).write_bytes((folder / FIRST).read_bytes()), f"lies in {FIRST} and in {SECOND}"),
        (lambda folder: replace(folder / SECOND, os.mkfifo), f"{SECOND}: is not a file"),
        (lambda folder: cut(folder / "model.safetensors.index.json", 50), "model.safetensors.index.json: not JSON"),
    ],
)
def test_damaged_shards(tmp_path: Path, damage: Callable[[Path], object], message: str) -> None:
    folder = write_checkpoint(tmp_path / "model", n_shards=2)
    damage(folder)
    with pytest.raises(PieError, match=message) as caught:
        load_checkpoint(folder)
    assert caught.value.code == "invalid-model"


LLAMA = {"architectures": ["LlamaForCausalLM"], "rope_theta": 1e4}
# Configs of other families that cannot be served, and what the error must say.
CONFIGS: dict[str, tuple[dict[str, object], str]] = {
    "dynamic": ({"rope_scaling": {"type": "dynamic", "factor": 2}}, "'dynamic', which is not supported: its angles change with the length"),
    "longrope": ({"rope_scaling": {"rope_type": "longrope"}}, "'longrope', which is not supported"),
    "unknown kind": (
        {"rope_scaling": {"rope_type": ["yarn"]}},
        "rope_type is ['yarn'], which is not supported; supported: default, linear,",
    ),
    "no factor": ({"rope_scaling": {"rope_type": "linear"}}, "factor is None; it must be a positive number"),
    "factor": ({"rope_scaling": {"rope_type": "linear", "factor": 0.5}}, "the factor of the rotary scaling is 0.5; it must be at least 1"),
    "infinite": ({"rope_scaling": {"rope_type": "linear", "factor": float("inf")}}, "factor is inf"),
    "not a number": ({"rope_theta": float("nan")}, "rope_theta is nan"),
    "beyond every float": ({"rope_theta": 10**400}, "it must be a positive number"),
    "a tower": ({"num_hidden_layers": 1 << 24}, "num_hidden_layers is 16777216; it must be an integer from 1 to 4096"),
    "theta": ({"rope_theta": 1.0}, "rope_theta is 1; it must be above 1"),
    "llama3 without fields": ({"rope_scaling": {"rope_type": "llama3", "factor": 8}}, "low_freq_factor is None"),
    "llama3 crossed": (
        {"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}},
        "low_freq_factor 4 is not below high_freq_factor 4",
    ),
    "yarn crossed": ({"rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 1}}, "beta_slow 1 is not below beta_fast 1"),
    "part of the head": ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
    "scaling is a list": ({"rope_scaling": [1]}, "rope_scaling is [1]; it must be an object"),
    "by kind of layer": ({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}, "rope_parameters differs by kind of layer"),
    "hidden size and heads": ({"head_dim": None, "num_attention_heads": 10}, "hidden_size 48 is not a multiple of num_attention_heads 10"),
    "bias that is no flag": ({"attention_bias": "yes"}, "attention_bias is 'yes'; it must be true or false"),
    "layer types": ({"layer_types": "all"}, "layer_types names"),
    "mistral's default window": (
        {"architectures": ["MistralForCausalLM"], "max_position_embeddings": 8192},
        "sliding_window is 4096, below",
    ),
    "mistral's window": (
        {"architectures": ["MistralForCausalLM"], "sliding_window": 64},
        "sliding_window is 64, below max_position_embeddings 512",
    ),
    "qwen2's window": ({"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": True}, "use_sliding_window is True"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_cannot_be_served(tmp_path: Path, name: str) -> None:
    changes, message = CONFIGS[name]
    (tmp_path / "config.json").write_text(json.dumps(QWEN3 | LLAMA | changes))
    with pytest.raises(PieError) as caught:
        read_config(tmp_path)
    assert caught.value.code == "invalid-model"
    assert message in caught.value.message
    print(f"{name}: {caught.value.message}")


def test_a_window_that_covers_all_positions_is_none(tmp_path: Path) -> None:
    for window in (None, 512, 4096):
        config = QWEN3 | {"architectures": ["MistralForCausalLM"], "sliding_window": window}
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert read_config(tmp_path).family == "mistral"


def test_stored_frequencies_of_older_checkpoints_are_left_out(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model")
    stored = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    rewrite_header(folder, lambda header: header.update({"model.layers.0.self_attn.rotary_emb.inv_freq": stored}))
    assert NORM in load_checkpoint(folder).tensors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "dtype is 'int8'; choose one of bfloat16, float32"),
        ({"dtype": "bfloat16"}, "has float32 weights, which are not rounded"),
        ({"isa": "neon"}, "isa is 'neon'; choose one of auto, avx512, avx2, portable"),
        ({"n_threads": 0}, "n_threads is 0; it must be 1 to 1024"),
        ({"page_size": 0}, "page_size is 0"),
        ({"max_batch_tokens": 0}, "max_batch_tokens is 0"),
        ({"kv_bytes": 100}, "kv_bytes is 100; one page of 16 tokens needs 16384 bytes"),
        ({"n_pages": 0}, "n_pages is 0"),
        ({"swap_bytes": -1}, "swap_bytes is -1; it must be at least 0"),
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
    assert (capabilities.masks, capabilities.positions, capabilities.adapters, capabilities.media) == (True, True, True, False)


@pytest.mark.parametrize(
    ("options", "host_pages"),
    [
        ({}, 12),  # as many as the pool has
        ({"swap_bytes": 40_000}, 4),
        ({"swap_bytes": 8191}, 0),
        ({"swap_bytes": 1_000_000}, 122),  # more than the pool, where it is asked for
        ({"swap_bytes": None, "kv_bytes": 3 << 30}, (2 << 30) // 8192),  # no more than 2 GiB unasked
    ],
)
def test_host_memory(tmp_path: Path, options: dict[str, int | None], host_pages: int) -> None:
    checkpoint = load_checkpoint(write_checkpoint(tmp_path / "model"))
    found = sizes.capabilities("cpu", checkpoint, checkpoint.dtype, DriverOptions(**({"kv_bytes": 100_000} | options)))
    assert found.host_pages == host_pages


def test_a_driver_without_host_memory_refuses_swaps(tmp_path: Path, library: Path) -> None:
    driver = open_driver(write_checkpoint(tmp_path / "model"), CpuOptions(kv_bytes=100_000, swap_bytes=0, library=library))
    assert (driver.capabilities.host_pages, driver.capabilities.copy_page_ns) == (0, 0)
    with pytest.raises(DriverError, match="host slot in swap_out_dst 0 is not below 0"):
        driver.run(batch([], page_size=16, swap_outs=[(0, 0)]))
    driver.close()


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


def test_what_a_config_leaves_out_is_as_transformers_has_it(tmp_path: Path) -> None:
    left_out = dict.fromkeys(("rms_norm_eps", "tie_word_embeddings", "rope_theta"))
    (tmp_path / "config.json").write_text(json.dumps(QWEN3 | left_out))
    spec, usual = read_config(tmp_path), transformers.Qwen3Config()
    found = (spec.norm_epsilon, spec.tied, spec.rotary.theta)
    assert found == (usual.rms_norm_eps, usual.tie_word_embeddings, usual.rope_parameters["rope_theta"])
