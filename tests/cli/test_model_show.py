"""`pie model show`: what it says of the embedded model and of a folder, and its errors."""

import hashlib
import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from support.checkpoints import write_checkpoint
from support.command import PATIENCE_S, command, environment, pie

ROOT = Path(__file__).parents[2]
TINY = ROOT / "python/pie/pie_tiny"


def show(*arguments: str) -> dict[str, object]:
    done = pie("model", "show", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_embedded_model(tmp_path: Path) -> None:
    facts = show("pie-tiny")
    assert facts["digest"] == "sha256:" + hashlib.sha256((TINY / "model.safetensors").read_bytes()).hexdigest()
    card = facts.pop("card")
    assert isinstance(card, str)
    assert card.startswith("# pie-tiny")
    expected = {
        "name": "pie-tiny", "family": "qwen3", "stored_dtypes": ["bfloat16"], "dtype": "bfloat16", "n_layers": 8, "hidden_size": 256,
        "n_heads": 4, "n_kv_heads": 2, "head_dim": 64, "tied_embeddings": True, "context_tokens": 2048, "vocabulary_tokens": 4096,
        "chat_template": "tokenizer_config.json", "kv_token_bytes": 8 * 2 * 2 * 64 * 2, "page_tokens": 16,
        "kv_page_bytes": 16 * 8 * 2 * 2 * 64 * 2, "rotary": {"theta": 10000.0, "scaling": None},
        "end_tokens": [{"id": 4087, "text": "<|im_end|>"}, {"id": 4085, "text": "<|endoftext|>"}],
    }  # fmt: skip
    assert {name: facts[name] for name in expected} == expected
    # 8 layers of attention, MLP and norms, the embedding and the last norm, counted by hand.
    layer = 256 * (256 + 128 + 128) + 256 * 256 + 3 * 256 * 512 + 2 * 256 + 2 * 64
    assert facts["n_parameters"] == 8 * layer + 4096 * 256 + 256
    assert facts["weights_bytes"] == 2 * (8 * layer + 4096 * 256 + 256)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("", "driver           cpu, the same answer every time"),
        ('driver = "cuda"', "driver           cuda, the same answer every time"),
        ('driver = "cuda"\ndeterministic = false', "driver           cuda, whose answers may depend on what else is in a batch"),
        ('driver = "reference"', "driver           reference, whose answers may depend on what else is in a batch"),
    ],
)
def test_it_says_whether_answers_depend_on_the_batch(tmp_path: Path, options: str, line: str) -> None:
    (tmp_path / "config.toml").write_text(f"[model.pie-tiny]\n{options}\n")
    done = pie("model", "show", "pie-tiny", "--config", str(tmp_path / "config.toml"), "--no-digest")
    assert done.returncode == 0, done.stderr
    assert line in done.stdout.splitlines()


def test_a_model_that_there_is_not_is_named_as_it_was_given() -> None:
    done = pie("model", "show", "nope")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[invalid-model]: the model 'nope' is neither a folder nor a configured model (those are: pie-tiny)")


def test_the_text_has_a_line_for_each_fact() -> None:
    done = pie("model", "show", str(TINY), "--no-digest")
    assert done.returncode == 0, done.stderr
    for line in (
        "architecture     qwen3: 8 layers, width 256",
        "end tokens       4087 <|im_end|>, 4085 <|endoftext|>",
        "digest           not computed",
    ):
        assert line in done.stdout
    assert "# pie-tiny" in done.stdout


def test_a_sharded_folder_with_scaling_and_a_card(tmp_path: Path) -> None:
    scaling = {"rope_type": "linear", "factor": 2.0}
    folder = write_checkpoint(
        tmp_path / "mine", n_shards=3, dtype="F32", architectures=["LlamaForCausalLM"], rope_scaling=scaling, eos_token_id=7
    )
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Mine\n")
    facts = show(str(folder))
    assert (facts["family"], facts["dtype"], facts["rotary"], facts["card"]) == (
        "llama",
        "float32",
        {"theta": 1e4, "scaling": "linear"},
        "# Mine",
    )
    assert (facts["end_tokens"], facts["chat_template"], len(facts["files"])) == ([{"id": 7, "text": None}], None, 3)


@pytest.mark.parametrize(("dtype", "bits"), [("BF16", "c07f"), ("BF16", "80ff"), ("F16", "007c"), ("F32", "0000c07f"), ("F32", "000080ff")])
def test_weights_that_are_not_finite_are_named(tmp_path: Path, dtype: str, bits: str) -> None:
    """Such a model is served, and each row that its weights reach is `bad-logits`: this says which weights."""
    folder = write_checkpoint(tmp_path / "mine", dtype=dtype)
    assert show(str(folder))["not_finite"] == []
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    length = 8 + int.from_bytes(content[:8], "little")
    start, end = json.loads(content[8:length])["model.norm.weight"]["data_offsets"]
    content[length + end - len(bits) // 2 : length + end] = bytes.fromhex(bits)
    assert start < end
    path.write_bytes(content)
    assert show(str(folder))["not_finite"] == ["model.norm.weight"]
    assert show(str(folder), "--no-digest")["not_finite"] is None
    line = next(line for line in pie("model", "show", str(folder)).stdout.splitlines() if line.startswith("damaged"))
    assert "NaN or infinities in model.norm.weight: what uses them is bad-logits; fetch the model again" in line


def test_weights_are_not_read_into_memory(tmp_path: Path) -> None:
    """A model of 1.5 GiB, its weight file a hole on disk, in a process that may hold a third of that."""
    folder = write_checkpoint(tmp_path / "large", num_hidden_layers=1)
    path = folder / "model.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    vocab_size = 1 << 24
    config = json.loads((folder / "config.json").read_text()) | {"vocab_size": vocab_size, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    end = len(content) - 8 - length
    header["unused"] = header["model.embed_tokens.weight"]
    header["model.embed_tokens.weight"] = {"dtype": "BF16", "shape": [vocab_size, 48], "data_offsets": [end, end + vocab_size * 96]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    os.truncate(path, 8 + len(text) + end + vocab_size * 96)

    limit = 512 << 20  # of data: mapped files do not count

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    done = subprocess.run(
        command(["model", "show", str(folder), "--json", "--no-digest"]),
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment() | {"OPENBLAS_NUM_THREADS": "1"}, preexec_fn=bounded,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["weights_bytes"] > 1.5e9


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json: cannot be read"),
        (lambda folder: (folder / "config.json").write_text('{"eos_token_id": "x"'), "config.json: not JSON"),
        (
            lambda folder: (folder / "generation_config.json").write_text('{"eos_token_id": "<end>"}'),
            "eos_token_id is ['<end>']; it must be",
        ),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"abc"), "not a safetensors file, or cut off (3 bytes)"),
        (lambda folder: os.mkfifo(folder / "README.md"), "README.md: is not a file"),
        (lambda folder: (folder / "README.md").symlink_to("/proc/self/mem"), "README.md: cannot be read"),
    ],
)
def test_what_cannot_be_shown_is_one_line(tmp_path: Path, damage: object, message: str) -> None:
    folder = write_checkpoint(tmp_path / "model")
    damage(folder)
    done = pie("model", "show", str(folder))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[invalid-model]: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_a_name_that_nobody_knows() -> None:
    done = pie("model", "show", "no-such-model")
    assert done.returncode == 1
    assert "error[invalid-model]: " in done.stderr
    assert "no-such-model" in done.stderr
