"""The reference back end: right by the float64 decoder, and every field of a batch honoured."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from pie.backends import open_driver
from pie.backends.base import Driver, DriverError, DriverOptions
from pie.backends.cpu import CpuOptions
from pie.batch import Batch
from pie.batch_layout import HEADER_WORDS
from pie.errors import PieError
from pie.models.loader import load_checkpoint
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.decoder import Decoder

TOKENS = np.random.default_rng(5).integers(0, 160, 40).tolist()
PAGES = [7, 2, 9, 4, 0, 1, 3, 5, 6, 8]
OPTIONS = {"page_size": 8, "n_pages": 10, "max_batch_tokens": 64}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype="F32")


@pytest.fixture
def driver(folder: Path) -> Iterator[Driver]:
    opened = open_driver("reference", folder, DriverOptions(**OPTIONS))
    yield opened
    opened.close()


def spread(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / expected.std())


def test_close_to_float64(folder: Path, driver: Driver) -> None:
    expected, _ = Decoder(load_checkpoint(folder)).logits(TOKENS)
    rows = [0, 3, 17, 39]
    logits = driver.run(batch([Feed(TOKENS, PAGES, rows=rows)], page_size=8))
    assert logits.dtype == np.float32
    assert logits.flags.c_contiguous
    assert spread(logits, expected[rows]) < 2e-5


def test_masks_and_positions(folder: Path, driver: Driver) -> None:
    masks = {3: [0, 2], 12: [2, 3, 1, 7], 20: [16, 5], 39: [0, 1, 38, 1], 30: [9, 1, 4, 2, 0, 3]}
    positions = [7, 7, 400, 3, 511, 0, *range(50, 84)]
    visible = np.ones((40, 40), dtype=bool)
    for token, runs in masks.items():
        visible[token] = False
        starts = np.cumsum([0, *runs])
        for start, end in zip(starts[1::2], starts[2::2], strict=True):
            visible[token, start:end] = True
    logits = driver.run(batch([Feed(TOKENS, PAGES, rows=range(40), masks=masks, positions=positions)], page_size=8))
    expected, _ = Decoder(load_checkpoint(folder)).logits(TOKENS, visible=visible, positions=positions)
    assert spread(logits, expected) < 1e-4


def test_what_is_masked_is_not_read(driver: Driver) -> None:
    feed = Feed(TOKENS[20:21], PAGES, start=20, rows=[0], masks={0: [0, 4, 8, 9]})
    driver.run(batch([Feed(TOKENS[:20], PAGES)], page_size=8))
    expected = driver.run(batch([feed], page_size=8))
    driver._kv[:, :, 2, :4] = torch.nan  # slots 8 to 11: the second page's first half
    assert np.array_equal(driver.run(batch([feed], page_size=8)), expected)


def test_pages_are_copied_before_anything_is_computed(driver: Driver) -> None:
    driver.run(batch([Feed(TOKENS[:12], [0, 1])], page_size=8))
    expected = driver.run(batch([Feed(TOKENS[12:13], [0, 1], start=12, rows=[0])], page_size=8))
    feeds = [Feed(TOKENS[12:13], [0, 5], start=12, rows=[0]), Feed(TOKENS[30:31], [0, 1], start=12, rows=[0])]
    logits = driver.run(batch(feeds, page_size=8, copies=[(1, 5)]))
    assert spread(logits[:1], expected) < 1e-5
    assert spread(logits[1:], expected) > 1e-2


def test_a_reread_token_writes_nothing(driver: Driver) -> None:
    expected = driver.run(batch([Feed(TOKENS[:16], [0, 1], rows=[15])], page_size=8))
    reread = Feed(TOKENS[15:16], [0, 1], start=15, rows=[0], reread=True)
    logits = driver.run(batch([reread, reread], page_size=8))
    assert spread(logits, np.repeat(expected, 2, axis=0)) < 1e-5
    before = driver._kv.clone()
    driver.run(batch([Feed([TOKENS[15] ^ 1], [0, 1], start=15, rows=[0], reread=True)], page_size=8))
    assert torch.equal(driver._kv, before)


@pytest.mark.parametrize("seed", range(8))
def test_any_mixture_is_as_on_the_cpu_back_end(folder: Path, library: Path, seed: int) -> None:
    random = Random(seed)
    options = {"page_size": 4, "n_pages": 44, "max_batch_tokens": 256}
    drivers = [
        open_driver("reference", folder, DriverOptions(**options)),
        open_driver("cpu", folder, CpuOptions(**options, library=library)),
    ]
    order, done = random.sample(range(44), 44), [0] * 4
    while unfinished := [seq_idx for seq_idx in range(4) if done[seq_idx] < 40]:
        feeds = []
        for seq_idx in random.sample(unfinished, random.randint(1, len(unfinished))):
            n = min(random.choice([1, 1, random.randint(2, 20)]), 40 - done[seq_idx])
            masks = {idx: [random.randint(0, 3), done[seq_idx] + 40] for idx in range(3, n) if random.random() < 0.3}
            rows = sorted(random.sample(range(n), random.randint(1, min(n, 5))))
            tokens = [(token + seq_idx) % 160 for token in TOKENS[done[seq_idx] : done[seq_idx] + n]]
            feeds.append(
                Feed(
                    tokens, order[seq_idx * 11 : seq_idx * 11 + 11], start=done[seq_idx], rows=rows, masks=clipped(masks, done[seq_idx] + n)
                )
            )
            done[seq_idx] += n
        arena = batch(feeds, page_size=4)
        found, expected = (driver.run(arena) for driver in drivers)
        assert spread(found, expected) < 1e-4


def clipped(masks: dict[int, list[int]], length: int) -> dict[int, list[int]]:
    """Rows that end with the slots."""
    return {token: [forbidden, min(allowed, length - forbidden)] for token, (forbidden, allowed) in masks.items()}


def test_a_refused_batch_changes_nothing(driver: Driver) -> None:
    driver.run(batch([Feed(TOKENS[:12], [0, 1])], page_size=8))
    before = driver._kv.clone()
    damaged = batch([Feed(TOKENS[:12], [0, 1])], page_size=8).words.copy()
    damaged[HEADER_WORDS + 24] = 9  # qo_indptr[0]: the arrays begin with tokens and positions
    bad = {
        "token 160 is not below 160": batch([Feed([*TOKENS[:3], 160], [0, 1], rows=[0])], page_size=8),
        "position 512 is not below 512": batch([Feed(TOKENS[:1], [0], positions=[512])], page_size=8),
        "page index 10 is not below 10": batch([Feed(TOKENS[:12], [0, 10])], page_size=8),
        "row_token 3 is not below 3": batch([Feed(TOKENS[:3], [0], rows=[3])], page_size=8),
        "page copied to 12 is not below 10": batch([Feed(TOKENS[:3], [0])], page_size=8, copies=[(0, 12)]),
        "copied or swapped in to twice, or copied from and to": batch([Feed(TOKENS[:3], [0])], page_size=8, copies=[(4, 5), (5, 6)]),
        "the batch has pages of 16 tokens, the driver of 8": batch([Feed(TOKENS[:12], [0])], page_size=16),
        "65 tokens and 0 rows in a batch; the driver takes 64": batch([Feed([1] * 65, PAGES)], page_size=8),
        "page 1 is written by sequence 0 and used by sequence 1": batch(
            [Feed(TOKENS[:12], [0, 1]), Feed(TOKENS[:1], [1, 2], start=8)], page_size=8, copies=[(0, 5)]
        ),
        "page 0 is written by sequence 0 and by 1": batch([Feed(TOKENS[:4], [0]), Feed(TOKENS[:4], [0])], page_size=8),
        "qo_indptr does not rise from 0 to 12": Batch(damaged),
    }
    for message, arena in bad.items():
        with pytest.raises(DriverError, match=message):
            driver.run(arena)
    assert torch.equal(driver._kv, before)


def test_options_and_names_are_checked(folder: Path) -> None:
    for options, message in (
        (CpuOptions(isa="avx2"), "the back end reference has no option isa: it has none of its own; leave isa out"),
        (DriverOptions(dtype="bfloat16"), "has float32 weights, which are not rounded"),
        (DriverOptions(page_size=0), "page_size is 0"),
    ):
        with pytest.raises(PieError, match=message) as caught:
            open_driver("reference", folder, options)
        assert caught.value.code == "invalid-argument"
    with pytest.raises(PieError, match="the back end 'tpu' is unknown; choose one of cpu, cuda, reference"):
        open_driver("tpu", folder)
    with pytest.raises(PieError, match="the back end cpu has no option stream: its own options are n_threads, isa, library; leave"):
        open_driver("cpu", folder, own={"stream": 1})


def test_a_closed_driver_says_so(driver: Driver) -> None:
    driver.close()
    driver.close()
    with pytest.raises(DriverError, match="closed"):
        driver.run(batch([Feed([1], [0], rows=[0])], page_size=8))


def test_torch_is_named_where_it_is_missing(folder: Path) -> None:
    """A process in which torch cannot be imported: the cpu back end never asks for it, the reference says what to
    install.
    """
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\nfrom pie.backends import open_driver\nfrom pie.errors import PieError\n"
        "open_driver('cpu', Path(sys.argv[1])).close()\n"
        "try:\n    open_driver('reference', Path(sys.argv[1]))\nexcept PieError as error:\n    print(error.code, error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert (
        done.stdout.strip()
        == "invalid-config the reference back end needs torch, which is not installed: pip install 'pie-engine[reference]'"
    )
