"""A row of logits has the same bits in any company, chunking, paging, on any threads and instruction set."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from pie.backends.cpu import CpuDriver, CpuOptions
from pie.models.loader import load_checkpoint
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.kernels import isas

N_PAGES = 96
N_SEQS = 6
LENGTH = 70
SPOTTY = {slot: [slot % 5, 3, slot % 4, slot + 1 - 3 - slot % 5 - slot % 4] for slot in range(17, LENGTH, 2)}
"""Masks of every second token, of two runs each."""
SCATTERED = [(7 * slot + slot // 9) % 300 for slot in range(LENGTH)]
"""Positions that repeat, jump and go back."""
SEQUENCES = [np.random.default_rng(seed).integers(0, 160, LENGTH).tolist() for seed in range(N_SEQS)]


def feed(seq_idx: int, pages: Sequence[int], start: int = 0, end: int = LENGTH, rows: Sequence[int] | None = None) -> Feed:
    """Slots of a sequence, every row wanted unless `rows` says which.

    Odd ones have masks, every third one scattered positions.
    """
    return Feed(
        SEQUENCES[seq_idx][start:end],
        pages,
        start=start,
        rows=range(end - start) if rows is None else rows,
        masks={slot - start: runs for slot, runs in SPOTTY.items() if start <= slot < end} if seq_idx % 2 else {},
        positions=SCATTERED[start:end] if seq_idx % 3 == 2 else None,
    )


@pytest.fixture(scope="module", params=["BF16", "F32"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype=request.param)


def open_driver(folder: Path, library: Path, *, page_size: int = 16, isa: str = "auto", n_threads: int = 2) -> CpuDriver:
    options = CpuOptions(page_size=page_size, n_pages=N_PAGES, max_batch_tokens=512, isa=isa, n_threads=n_threads, library=library)
    return CpuDriver(load_checkpoint(folder), options)


@pytest.fixture(scope="module")
def alone(folder: Path, library: Path) -> list[np.ndarray]:
    """All rows of each sequence, alone and whole."""
    driver = open_driver(folder, library)
    return [driver.run(batch([feed(seq_idx, range(10))], page_size=16)) for seq_idx in range(N_SEQS)]


@pytest.mark.parametrize("page_size", [1, 3, 4, 16, 24, 32, 128])
def test_page_sizes(folder: Path, library: Path, alone: list[np.ndarray], page_size: int) -> None:
    driver = open_driver(folder, library, page_size=page_size)
    pages = np.random.default_rng(page_size).permutation(N_PAGES)[: -(-LENGTH // page_size)].tolist()
    for seq_idx in (0, 1, 5):
        assert np.array_equal(driver.run(batch([feed(seq_idx, pages)], page_size=page_size)), alone[seq_idx])


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_instruction_sets_and_threads(folder: Path, library: Path, alone: list[np.ndarray], n_threads: int) -> None:
    for isa in isas(library):
        driver = open_driver(folder, library, isa=isa, n_threads=n_threads)
        assert driver.plan.isa() == isa
        for seq_idx in (0, 1, 5):
            assert np.array_equal(driver.run(batch([feed(seq_idx, range(9))], page_size=16)), alone[seq_idx]), isa


@pytest.mark.parametrize("chunk", [1, 7, 16, 33])
def test_chunks(folder: Path, library: Path, alone: list[np.ndarray], chunk: int) -> None:
    driver = open_driver(folder, library)
    for seq_idx in (1, 2, 5):
        for start in range(0, LENGTH, chunk):
            end = min(start + chunk, LENGTH)
            assert np.array_equal(driver.run(batch([feed(seq_idx, range(9), start, end)], page_size=16)), alone[seq_idx][start:end])


@pytest.mark.parametrize("seed", range(24))
def test_any_mixture_of_sequences(folder: Path, library: Path, alone: list[np.ndarray], seed: int) -> None:
    """Sequences advance by chunks of any size, some in each batch, over pages in any order, with any rows wanted."""
    random = Random(seed)
    page_size = random.choice([4, 16, 17])
    driver = open_driver(folder, library, page_size=page_size, n_threads=1 + seed % 2)
    n_each = -(-LENGTH // page_size)
    n_seqs = min(N_SEQS, N_PAGES // n_each)
    order = random.sample(range(N_PAGES), N_PAGES)
    done = [0] * n_seqs
    while unfinished := [seq_idx for seq_idx in range(n_seqs) if done[seq_idx] < LENGTH]:
        feeds, wanted = [], []
        for seq_idx in random.sample(unfinished, random.randint(1, len(unfinished))):
            n = min(random.choice([1, 1, 1, random.randint(2, 40)]), LENGTH - done[seq_idx])
            rows = sorted(random.sample(range(n), random.randint(0, min(n, 5))))
            pages = order[seq_idx * n_each : (seq_idx + 1) * n_each]
            feeds.append(feed(seq_idx, pages, done[seq_idx], done[seq_idx] + n, rows))
            wanted += [alone[seq_idx][done[seq_idx] + row] for row in rows]
            done[seq_idx] += n
        logits = driver.run(batch(feeds, page_size=page_size))
        assert np.array_equal(logits, np.array(wanted, np.float32).reshape(-1, 160))


def test_sixty_four_mixed_sequences(folder: Path, library: Path) -> None:
    """Chunks of prompts beside decodes, up to 64 sequences in a batch: each row as in its sequence's solo run, on each
    instruction set.
    """
    n_seqs, found = 64, {}
    random = np.random.default_rng(64)
    sequences = [random.integers(0, 160, random.integers(2, 31)).tolist() for _ in range(n_seqs)]
    for isa in isas(library):
        options = CpuOptions(page_size=8, n_pages=4 * n_seqs, isa=isa, n_threads=2, library=library)
        solo, mixed = (CpuDriver(load_checkpoint(folder), options) for _ in range(2))
        alone = [solo.run(batch([Feed(tokens, range(4), rows=range(len(tokens)))], page_size=8)) for tokens in sequences]
        order, turn = Random(isa), 0
        pages = order.sample(range(4 * n_seqs), 4 * n_seqs)
        done, n_rows = [0] * n_seqs, 0
        while unfinished := [seq_idx for seq_idx in range(n_seqs) if done[seq_idx] < len(sequences[seq_idx])]:
            feeds, wanted = [], []
            for seq_idx in order.sample(unfinished, len(unfinished)):
                # Even sequences take their prompt in chunks, odd ones token by token.
                n = min(1 if seq_idx % 2 else order.randint(2, 9), len(sequences[seq_idx]) - done[seq_idx])
                tokens = sequences[seq_idx][done[seq_idx] : done[seq_idx] + n]
                feeds.append(Feed(tokens, pages[4 * seq_idx : 4 * seq_idx + 4], start=done[seq_idx], rows=range(n)))
                wanted.append(alone[seq_idx][done[seq_idx] : done[seq_idx] + n])
                done[seq_idx] += n
            assert np.array_equal(mixed.run(batch(feeds, page_size=8)), np.concatenate(wanted)), (isa, turn)
            turn, n_rows = turn + 1, n_rows + sum(map(len, wanted))
        print(f"{isa}: {n_rows} rows of {n_seqs} mixed sequences in {turn} batches equal their solo runs bit for bit")
        found[isa] = np.concatenate(alone).tobytes()
        solo.close()
        mixed.close()
    assert len(set(found.values())) == 1, "instruction sets differ"


def test_two_drivers_share_nothing(folder: Path, library: Path, alone: list[np.ndarray]) -> None:
    drivers = [open_driver(folder, library) for _ in range(2)]
    for start in range(0, LENGTH, 35):
        for driver, seq_idx in zip(drivers, (3, 4), strict=True):
            rows = driver.run(batch([feed(seq_idx, range(9), start, start + 35)], page_size=16))
            assert np.array_equal(rows, alone[seq_idx][start : start + 35])
    drivers[0].close()
    assert drivers[1].run(batch([Feed([1], [50], rows=[0])], page_size=16)).shape == (1, 160)
