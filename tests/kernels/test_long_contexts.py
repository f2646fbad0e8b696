"""Contexts of thousands of slots and heads of odd widths, against float64: what every kernel sums goes to the very
end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pie.backends.cpu import CpuDriver, CpuOptions
from pie.models.loader import load_checkpoint
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.decoder import Decoder

LENGTH, CHUNK = 2_600, 512
# No width is a multiple of sixteen, and pages end in the middle of a group of sixteen slots.
SHAPES = {
    "odd": (
        {"head_dim": 10, "hidden_size": 30, "intermediate_size": 22, "vocab_size": 37, "num_attention_heads": 3, "num_key_value_heads": 1},
        7,
    ),
    "above two vectors": (
        {"head_dim": 34, "hidden_size": 18, "intermediate_size": 50, "vocab_size": 67, "num_attention_heads": 2, "num_key_value_heads": 2},
        24,
    ),
}


@pytest.mark.parametrize(("shape", "isa"), [*((shape, "auto") for shape in SHAPES), ("odd", "portable")])
def test_a_long_context_is_close_to_float64(tmp_path: Path, library: Path, shape: str, isa: str) -> None:
    changes, page_size = SHAPES[shape]
    folder = write_checkpoint(tmp_path, dtype="F32", num_hidden_layers=1, max_position_embeddings=8192, **changes)
    checkpoint = load_checkpoint(folder)
    n_pages = -(-LENGTH // page_size)
    options = CpuOptions(page_size=page_size, n_pages=n_pages, max_batch_tokens=CHUNK, n_threads=2, isa=isa, library=library)
    driver, decoder = CpuDriver(checkpoint, options), Decoder(checkpoint)
    random = np.random.default_rng(8)
    tokens = random.integers(0, changes["vocab_size"], LENGTH).tolist()
    pages = random.permutation(n_pages).tolist()
    found = []
    for start in range(0, LENGTH, CHUNK):
        piece = tokens[start : start + CHUNK]
        found.append(driver.run(batch([Feed(piece, pages, start=start, rows=range(len(piece)))], page_size=page_size)))
    expected = decoder.logits(tokens)[0]
    difference = np.abs(np.concatenate(found) - expected).max(axis=1) / expected.std()
    assert difference.max() < 2e-5, int(difference.argmax())
    driver.close()


def test_the_last_of_many_slots_counts(tmp_path: Path, library: Path) -> None:
    """One slot far back that alone is seen beside the own one: its value is what comes out."""
    folder = write_checkpoint(tmp_path, dtype="F32", num_hidden_layers=1, max_position_embeddings=8192, **SHAPES["odd"][0])
    checkpoint = load_checkpoint(folder)
    n_pages = -(-LENGTH // 7)
    driver = CpuDriver(checkpoint, CpuOptions(page_size=7, n_pages=n_pages, max_batch_tokens=CHUNK, n_threads=1, library=library))
    decoder = Decoder(checkpoint)
    tokens = np.random.default_rng(9).integers(0, 37, LENGTH).tolist()
    for start in range(0, LENGTH - 1, CHUNK):
        driver.run(batch([Feed(tokens[start : start + CHUNK][: LENGTH - 1 - start], range(n_pages), start=start)], page_size=7))
    for slot in (0, 15, 16, 511, 512, 2_047, 2_048, 2_049, LENGTH - 2):
        runs = [slot, 1, LENGTH - 2 - slot, 1]
        last = Feed(tokens[-1:], range(n_pages), start=LENGTH - 1, rows=[0], masks={0: runs})
        logits = driver.run(batch([last], page_size=7))[0]
        seen = decoder.logits([tokens[slot], tokens[-1]], positions=[slot, LENGTH - 1])[0][1]
        assert np.abs(logits - seen).max() / seen.std() < 2e-5, slot
    driver.close()
