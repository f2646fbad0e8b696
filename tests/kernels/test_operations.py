"""Each operation of a plan against float64, and masks, copies and re-reading."""

from pathlib import Path

import numpy as np
import pytest

from pie.backends.base import DriverError
from pie.backends.cpu import CpuDriver, CpuOptions
from pie.models.loader import load_checkpoint
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.decoder import Decoder

SHAPES = {
    "plain": {},
    "one head": {"num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 64, "tie_word_embeddings": True},
    "no groups": {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 24, "hidden_size": 50, "intermediate_size": 34},
    "wide": {"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "hidden_size": 128, "vocab_size": 131},
}
TOKENS = np.random.default_rng(5).integers(0, 131, 40).tolist()
PAGES = [7, 2, 9, 4, 0, 1, 3, 5, 6, 8]


def open_random(tmp_path: Path, library: Path, *, dtype: str = "F32", page_size: int = 8, **changes: object) -> tuple[CpuDriver, Decoder]:
    """A random model on the kernels and in float64."""
    checkpoint = load_checkpoint(write_checkpoint(tmp_path / "model", dtype=dtype, **changes))
    options = CpuOptions(page_size=page_size, n_pages=10, max_batch_tokens=64, n_threads=2, library=library)
    return CpuDriver(checkpoint, options), Decoder(checkpoint)


def spread(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference in units of the expected values' spread."""
    return float(np.abs(found - expected).max() / expected.std())


@pytest.mark.parametrize("shape", SHAPES)
def test_every_operation_is_close_to_float64(tmp_path: Path, library: Path, shape: str) -> None:
    driver, decoder = open_random(tmp_path, library, num_hidden_layers=1, **SHAPES[shape])
    logits = driver.run(batch([Feed(TOKENS, PAGES, rows=range(40))], page_size=8))
    expected, states = decoder.logits(TOKENS)
    # With one layer no buffer is used twice: those of tokens come first, then those of wanted rows, then the qkv rows.
    found = [driver.plan.read(buffer, width) for buffer, (width, _, _) in enumerate(driver.program.buffers)]
    pairs = {
        "embedding": (found[0], states.embedded),
        "norm": (found[1], states.normed),
        "attention": (found[2], states.attended),
        "linear and residual": (found[5], states.hidden),
        "final norm": (found[6], states.final),
        "selected rows": (found[7], states.attended),
        "gate and up": (found[8], states.gate_up),
        "swiglu": (found[9], states.activated),
        "head norms and rotation": (found[10], states.qkv),
        "logits": (logits, expected),
    }
    assert {name: spread(*pair) for name, pair in pairs.items() if spread(*pair) > 2e-5} == {}


@pytest.mark.parametrize("shape", SHAPES)
def test_bfloat16_is_as_close_as_its_rounding(tmp_path: Path, library: Path, shape: str) -> None:
    driver, decoder = open_random(tmp_path, library, dtype="BF16", **SHAPES[shape])
    logits = driver.run(batch([Feed(TOKENS, PAGES, rows=range(40))], page_size=8))
    assert spread(logits, decoder.logits(TOKENS)[0]) < 0.2
    assert np.abs(logits - decoder.logits(TOKENS)[0]).mean() / logits.std() < 0.02


def test_attention_rows_restrict_what_a_token_sees(tmp_path: Path, library: Path) -> None:
    driver, decoder = open_random(tmp_path, library)
    masks = {3: [0, 2], 12: [2, 3, 1, 7], 20: [16, 5], 39: [0, 1, 38, 1], 25: [0, 40], 30: [9, 1, 4, 2, 0, 3]}
    visible = np.ones((40, 40), dtype=bool)
    for token, runs in masks.items():
        visible[token] = False
        slot = 0
        for forbidden, allowed in zip(runs[::2], runs[1::2], strict=True):
            visible[token, slot + forbidden : slot + forbidden + allowed] = True
            slot += forbidden + allowed
    logits = driver.run(batch([Feed(TOKENS, PAGES, rows=range(40), masks=masks)], page_size=8))
    assert spread(logits, decoder.logits(TOKENS, visible=visible)[0]) < 2e-5


def test_masked_slots_are_not_read(tmp_path: Path, library: Path) -> None:
    driver, _ = open_random(tmp_path, library)
    prefix, feed = Feed(TOKENS[:20], PAGES), Feed(TOKENS[20:21], PAGES, start=20, rows=[0], masks={0: [0, 4, 8, 9]})
    driver.run(batch([prefix], page_size=8))
    expected = driver.run(batch([feed], page_size=8))
    # Slots 4 to 11 now hold other keys and values.
    driver.run(batch([Feed(TOKENS[30:38], PAGES, start=4)], page_size=8))
    assert np.array_equal(driver.run(batch([feed], page_size=8)), expected)


def test_positions_are_free(tmp_path: Path, library: Path) -> None:
    driver, decoder = open_random(tmp_path, library)
    positions = [7, 7, 400, 3, 511, 0, *range(50, 84)]
    logits = driver.run(batch([Feed(TOKENS, PAGES, rows=range(40), positions=positions)], page_size=8))
    assert spread(logits, decoder.logits(TOKENS, positions=positions)[0]) < 1e-4


def test_pages_are_copied_before_anything_is_computed(tmp_path: Path, library: Path) -> None:
    driver, _ = open_random(tmp_path, library)
    driver.run(batch([Feed(TOKENS[:12], [0, 1])], page_size=8))
    expected = driver.run(batch([Feed(TOKENS[12:13], [0, 1], start=12, rows=[0])], page_size=8))
    feeds = [Feed(TOKENS[12:13], [0, 5], start=12, rows=[0]), Feed(TOKENS[30:31], [0, 1], start=12, rows=[0])]
    logits = driver.run(batch(feeds, page_size=8, copies=[(1, 5)]))
    assert np.array_equal(logits[:1], expected)
    assert not np.array_equal(logits[1:], expected)


def test_a_reread_token_gives_its_row_again_and_writes_nothing(tmp_path: Path, library: Path) -> None:
    driver, _ = open_random(tmp_path, library)
    expected = driver.run(batch([Feed(TOKENS[:16], [0, 1], rows=[15])], page_size=8))
    reread = Feed(TOKENS[15:16], [0, 1], start=15, rows=[0], reread=True)
    logits = driver.run(batch([reread, reread], page_size=8))
    assert np.array_equal(logits, np.repeat(expected, 2, axis=0))
    # Another token at that slot, not written: what follows sees the stored one.
    driver.run(batch([Feed([TOKENS[15] ^ 1], [0, 1], start=15, rows=[0], reread=True)], page_size=8))
    after = driver.run(batch([Feed(TOKENS[16:17], [0, 1, 2], start=16, rows=[0])], page_size=8))
    assert np.array_equal(after, driver.run(batch([Feed(TOKENS[:17], [3, 4, 5], rows=[16])], page_size=8)))


def test_a_refused_batch_changes_nothing(tmp_path: Path, library: Path) -> None:
    driver, _ = open_random(tmp_path, library)
    driver.run(batch([Feed(TOKENS[:12], [0, 1])], page_size=8))
    last = batch([Feed(TOKENS[12:13], [0, 1], start=12, rows=[0])], page_size=8)
    expected = driver.run(last)
    bad = {
        "token 160 is not below 160": batch([Feed([*TOKENS[:3], 160], [0, 1], rows=[0])], page_size=8),
        "position 512 is not below 512": batch([Feed(TOKENS[:1], [0], positions=[512])], page_size=8),
        "page index in kv_indices 10 is not below 10": batch([Feed(TOKENS[:12], [0, 10])], page_size=8),
        "the batch has pages of 16 tokens, the plan of 8": batch([Feed(TOKENS[:12], [0])], page_size=16),
        "65 tokens in a batch; the plan takes 64": batch([Feed([1] * 65, PAGES)], page_size=8),
        "page 1 is written by sequence 0 and used by sequence 1": batch(
            [Feed(TOKENS[:12], [0, 1]), Feed(TOKENS[:1], [1, 2], start=8)], page_size=8, copies=[(0, 1)]
        ),
    }
    for message, arena in bad.items():
        with pytest.raises(DriverError, match=message):
            driver.run(arena)
    assert np.array_equal(driver.run(last), expected)
