"""A Llama folder through the whole engine, on both back ends that compute."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers

from pie.config import EMBEDDED_FOLDER
from support.command import pie

PROGRAM = """
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context(Model.load("llama"))
    ctx.user("Hello!")
    tokens = await ctx.generate(Sampler.argmax(), max_tokens=24).ignore_eos(True).collect_tokens()
    return tokens
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama with rotary scaling, in shards, under the embedded model's tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "llama"
    torch.manual_seed(5)
    scaling = {
        "rope_type": "llama3",
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    config = transformers.LlamaConfig(
        vocab_size=4096, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=256, initializer_range=0.2, rope_parameters={"rope_theta": 1e4} | scaling,
        bos_token_id=None, eos_token_id=4087,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="600KB")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(EMBEDDED_FOLDER / name, folder)
    return folder


def test_both_back_ends_and_all_instruction_sets_give_the_same_tokens(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM)
    answers = []
    for settings in ('driver = "cpu"', 'driver = "cpu"\nisa = "portable"\nn_threads = 1', 'driver = "reference"'):
        (tmp_path / "config.toml").write_text(f'[model.llama]\npath = "{folder}"\n{settings}\n')
        done = pie("run", "--config", str(tmp_path / "config.toml"), "--seed", "1", str(tmp_path / "main.py"))
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    assert len(answers[0]) == 24
    assert answers[0] == answers[1] == answers[2]
