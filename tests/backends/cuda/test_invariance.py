"""A row has the same bits in any company, chunking and paging, and whether a graph is replayed or not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.calls import standin_calls
from pie.backends.cuda.share import Parts
from pie.models.loader import load_checkpoint
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.conformance import RowsOf
from support.recording import RecordingDevice, RecordingGraphs

N_SEQS, LENGTH, PAGE_SIZE = 16, 24, 4
N_EACH = LENGTH // PAGE_SIZE


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module", params=["BF16", "F32"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype=request.param)


def opened(folder: Path, graphs: RecordingGraphs | None = None) -> RowsOf:
    options = CudaOptions(device="cpu", page_size=PAGE_SIZE, n_pages=N_SEQS * N_EACH, max_batch_tokens=256, swap_bytes=0, graph_seqs=8)
    return RowsOf(CudaDriver(load_checkpoint(folder), options, parts=Parts(RecordingDevice(), standin_calls(), graphs)))


@pytest.mark.parametrize("has_graphs", [False, True])
def test_mixed_sequences_are_as_alone(folder: Path, *, has_graphs: bool) -> None:
    """Chunks of prompts beside decodes, masks beside none: each row as in its sequence's solo run without a graph."""
    order, numbers = Random(4), np.random.default_rng(5)
    sequences = [numbers.integers(0, 160, order.randint(2, LENGTH)).tolist() for _ in range(N_SEQS)]
    masks = [
        {slot: [slot % 3, 2, 1, slot + 1 - 3 - slot % 3] for slot in range(5, len(tokens), 3)} if n % 2 else {}
        for n, tokens in enumerate(sequences)
    ]
    solo = opened(folder)
    alone = [
        solo.run(batch([Feed(tokens, range(N_EACH), rows=range(len(tokens)), masks=mask)], page_size=PAGE_SIZE)).copy()
        for tokens, mask in zip(sequences, masks, strict=True)
    ]
    graphs = RecordingGraphs() if has_graphs else None
    mixed, pages = opened(folder, graphs), order.sample(range(N_SEQS * N_EACH), N_SEQS * N_EACH)
    done = [0] * N_SEQS
    while unfinished := [seq_idx for seq_idx in range(N_SEQS) if done[seq_idx] < len(sequences[seq_idx])]:
        feeds, wanted, is_decode = [], [], order.random() < 0.6
        for seq_idx in order.sample(unfinished, order.randint(1, len(unfinished))):
            first = done[seq_idx]
            n = min(1 if is_decode or seq_idx % 3 else order.randint(2, 9), len(sequences[seq_idx]) - first)
            mine = {slot - first: runs for slot, runs in masks[seq_idx].items() if first <= slot < first + n}
            rows = [row for row in range(n) if order.random() < 0.8]
            mine_pages = pages[N_EACH * seq_idx : N_EACH * (seq_idx + 1)]
            feeds.append(Feed(sequences[seq_idx][first : first + n], mine_pages, start=first, rows=rows, masks=mine))
            wanted += [alone[seq_idx][first + row] for row in rows]
            done[seq_idx] += n
        assert np.array_equal(mixed.run(batch(feeds, page_size=PAGE_SIZE)), np.array(wanted, np.float32).reshape(-1, 160))
    assert graphs is None or graphs.n_replays > 5
