"""The cpu back end against transformers, in float32: small random models, and the embedded one."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from pie.backends.cpu import CpuDriver, CpuOptions, open_driver
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from tools.pie_tiny.evaluation import sealed_items
from tools.pie_tiny.score import MAX_TOKENS, Answerer

SHAPES = {
    "grouped": {},
    "tied, one kv head": {"num_attention_heads": 6, "num_key_value_heads": 1, "tie_word_embeddings": True},
    "wide heads": {"hidden_size": 64, "head_dim": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "rope_theta": 1e6},
    "deep": {"num_hidden_layers": 5, "intermediate_size": 36, "hidden_size": 32, "head_dim": 16},
}
TINY = Path(__file__).parents[2] / "python/pie/pie_tiny"
N_PROMPTS = 20
PROMPT_LEN = 64
N_NEW = 64


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def peer(folder: Path) -> torch.nn.Module:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def open_float32(folder: Path, library: Path) -> CpuDriver:
    return open_driver(folder, CpuOptions(dtype="float32", max_batch_tokens=512, n_pages=256, library=library))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "n_shards"), [("BF16", 1), ("F32", 3)])
def test_random_models(tmp_path: Path, library: Path, shape: str, dtype: str, n_shards: int) -> None:
    folder = write_checkpoint(tmp_path / "model", dtype=dtype, n_shards=n_shards, **SHAPES[shape])
    tokens = np.random.default_rng(3).integers(0, 160, 200).tolist()
    with torch.no_grad():
        expected = peer(folder)(torch.tensor([tokens])).logits[0].numpy()
    logits = open_float32(folder, library).run(batch([Feed(tokens, range(20), rows=range(200))], page_size=16))
    assert np.abs(logits - expected).max() / expected.std() < 1e-4


def test_the_embedded_model(library: Path) -> None:
    """Logits of 20 prompts of 64 tokens, then the greedy continuation of all of them in one batch a step."""
    driver, model = open_float32(TINY, library), peer(TINY)
    prompts = np.random.default_rng(11).integers(0, 4000, (N_PROMPTS, PROMPT_LEN))
    pages = [range(idx * 8, idx * 8 + 8) for idx in range(N_PROMPTS)]
    with torch.no_grad():
        expected = model(torch.tensor(prompts)).logits.numpy()
        greedy = model.generate(
            torch.tensor(prompts), attention_mask=torch.ones_like(torch.tensor(prompts)), do_sample=False,
            max_new_tokens=N_NEW, min_new_tokens=N_NEW, pad_token_id=0, eos_token_id=None,
        )[:, PROMPT_LEN:].numpy()  # fmt: skip
    newest = []
    for prompt, mine, rows in zip(prompts, pages, expected, strict=True):
        logits = driver.run(batch([Feed(prompt.tolist(), mine, rows=range(PROMPT_LEN))], page_size=16))
        assert np.abs(logits - rows).max() / rows.std() < 1e-4
        newest.append(int(logits[-1].argmax()))
    tokens = [newest]
    for step in range(N_NEW - 1):
        feeds = [Feed([token], mine, start=PROMPT_LEN + step, rows=[0]) for token, mine in zip(tokens[-1], pages, strict=True)]
        tokens.append(driver.run(batch(feeds, page_size=16)).argmax(axis=1).tolist())
    assert np.array_equal(np.array(tokens).T, greedy)


def test_a_hundred_evaluation_prompts_are_answered_with_the_same_tokens(library: Path) -> None:
    items = sealed_items()[::11][:100]
    answerer = Answerer(TINY)
    driver = open_driver(TINY, CpuOptions(dtype="float32", max_batch_tokens=512, n_pages=256, n_threads=1, library=library))
    prompts = [answerer.tokenizer(answerer.prompt(item), add_special_tokens=False).input_ids for item in items]
    order = sorted(range(len(items)), key=lambda idx: len(prompts[idx]))
    for first in range(0, len(order), 25):
        group = order[first : first + 25]
        for idx, expected in zip(group, answerer.continuations([items[idx] for idx in group]), strict=True):
            assert list(greedy(driver, prompts[idx], answerer.ends)) == expected, items[idx]


def greedy(driver: CpuDriver, prompt: list[int], ends: list[int]) -> Iterator[int]:
    """The likeliest tokens after the prompt, which goes in by pieces."""
    pages, pieces = range(256), [range(start, min(start + 512, len(prompt))) for start in range(0, len(prompt), 512)]
    for piece in pieces:
        tokens = [prompt[i] for i in piece]
        logits = driver.run(batch([Feed(tokens, pages, start=piece.start, rows=[len(tokens) - 1])], page_size=16))
    for position in range(len(prompt), len(prompt) + MAX_TOKENS):
        token = int(logits[0].argmax())
        yield token
        if token in ends:
            return
        logits = driver.run(batch([Feed([token], pages, start=position, rows=[0])], page_size=16))
