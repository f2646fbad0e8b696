"""Decode batches by graphs: the same tokens as without, whatever is asked; and no memory of the device is taken."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from oracle.sampler import Sampler
from pie.backends.base import Drawn, FailedSequencesError
from pie.backends.cuda import CudaDriver, CudaOptions, decoding
from pie.backends.cuda.calls import standin_calls
from pie.backends.cuda.graphs import GraphRecorder
from pie.backends.cuda.share import Parts
from pie.models.loader import load_checkpoint
from support.arenas import Draw, Feed, batch
from support.checkpoints import write_checkpoint
from support.recording import RecordingDevice, RecordingGraphs

PAGE_SIZE, N_SEQS, N_EACH = 4, 6, 8
SAMPLERS = [
    Sampler(),
    Sampler(temperature=0.7),
    Sampler(temperature=1.0, top_k=1),
    Sampler(temperature=1.2, top_k=20),
    Sampler(temperature=1.0, top_p=0.8),
    Sampler(temperature=1.0, min_p=0.1),
]
DRAWS = {"greedy": SAMPLERS[:1], "random": [*SAMPLERS[:3], SAMPLERS[5]], "of every kind": SAMPLERS}


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype="F32")


def opened(folder: Path, graphs: Any, *, deterministic: bool = True) -> CudaDriver:
    options = CudaOptions(
        device="cpu", page_size=PAGE_SIZE, n_pages=N_SEQS * N_EACH, max_batch_tokens=64, swap_bytes=0, graph_seqs=N_SEQS,
        deterministic=deterministic,
    )  # fmt: skip
    return CudaDriver(load_checkpoint(folder), options, parts=Parts(RecordingDevice(), standin_calls(), graphs))


def steps(samplers: list[Sampler], n_steps: int, seed: int = 3) -> list[Any]:
    """Prompts, then batches in which sequences come and go; each follows the one before where it can."""
    random, length = Random(seed), [3] * N_SEQS
    pages = [range(N_EACH * seq, N_EACH * (seq + 1)) for seq in range(N_SEQS)]
    chosen = [random.choice(samplers) for _ in range(N_SEQS)]

    def draws(seq: int) -> list[Draw]:
        return [Draw(chosen[seq], seed=seq * 77)]

    made = [batch([Feed([5, 6, seq], pages[seq], rows=[2], draws=draws(seq)) for seq in range(N_SEQS)], page_size=PAGE_SIZE, batch_id=1)]
    before = list(range(N_SEQS))
    for step in range(n_steps):
        live = sorted(random.sample(range(N_SEQS), random.randint(1, N_SEQS)))
        feeds = []
        for seq in live:
            follows = before.index(seq) if seq in before else None
            feeds.append(
                Feed([0 if follows is not None else 9], pages[seq], start=length[seq], rows=[0], draws=draws(seq), follows=follows)
            )
            length[seq] += 1
        made.append(batch(feeds, page_size=PAGE_SIZE, batch_id=step + 2, before=step + 1))
        before = live
    return made


def tokens(driver: CudaDriver, batches: list[Any]) -> list[list[int]]:
    """Two batches under way."""
    answers, found = [], []
    for asked in batches:
        answers.append(driver.launch(asked))
        if len(answers) == 2:
            found.append(answers.pop(0)().tokens.tolist())
    return [*found, answers.pop()().tokens.tolist()]


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_the_tokens_are_those_without_graphs(folder: Path, kind: str, *, deterministic: bool) -> None:
    graphs, batches = RecordingGraphs(), steps(DRAWS[kind], 24)
    found = tokens(opened(folder, graphs, deterministic=deterministic), batches)
    assert found == tokens(opened(folder, None, deterministic=deterministic), batches)
    assert graphs.n_replays >= 24 * (1 if kind == "greedy" else 2) - 10
    if kind != "greedy":
        assert found != tokens(opened(folder, None), steps(SAMPLERS[:1], 24))


@pytest.mark.parametrize("most", [0, 2 * 160])
def test_a_graph_sorts_few_rows_in_vain(folder: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Where more of its rows have neither top-k nor top-p, tokens are drawn beside the graph, and are the same ones."""
    monkeypatch.setattr(decoding, "MAX_SORTED_IN_VAIN", most)
    batches = [
        batch(
            [Feed([9], range(N_EACH * seq, N_EACH * (seq + 1)), rows=[0], draws=[Draw(SAMPLERS[3 if seq < n_filtered else 1], seed=seq)])
             for seq in range(4)],
            page_size=PAGE_SIZE,
            batch_id=1,
        )
        for n_filtered in range(5)
    ]  # fmt: skip
    graphs = RecordingGraphs()
    with_graphs, without = opened(folder, graphs), opened(folder, None)
    n_replays = []
    for asked in batches:
        n_before = graphs.n_replays
        assert with_graphs.run(asked).tokens.tolist() == without.run(asked).tokens.tolist()
        n_replays.append(graphs.n_replays - n_before)
    assert n_replays == [2, 1, 2 if most else 1, 2 if most else 1, 2]


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_driver_that_is_closed_gives_all_its_memory_back(folder: Path, *, deterministic: bool) -> None:
    """At once, and not when the garbage is collected: the next model asks what is free."""
    driver = opened(folder, RecordingGraphs(), deterministic=deterministic)
    driver.run(steps(SAMPLERS, 1)[0])
    assert driver._launcher is not None
    pages = weakref.ref(driver._launcher.step.pool.kv)
    gc.collect()
    gc.disable()
    try:
        driver.close()
        assert pages() is None
    finally:
        gc.enable()


def test_what_a_graph_reads_is_kept_while_it_may_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no longer. What is captured says where its inputs lie, so that others must not get that memory."""
    replayed = []

    class Graph:
        def replay(self) -> None:
            replayed.append(self)

    standins = {
        "graph_pool_handle": lambda: None,
        "Stream": lambda _device: None,
        "CUDAGraph": Graph,
        "graph": lambda *_args, **_how: nullcontext(),
    }
    for name, standin in standins.items():
        monkeypatch.setattr(torch.cuda, name, standin)
    rows = torch.arange(3)
    kept = weakref.ref(rows)
    launch, (output,) = GraphRecorder(None).record(partial(lambda read: (read + 1,), rows))
    assert output.tolist() == [1, 2, 3]
    del rows
    launch()
    assert len(replayed) == 1
    assert kept() is not None
    del launch
    assert kept() is None


def test_rows_that_ask_for_more_are_drawn_from_beside_a_graph(folder: Path) -> None:
    """Token masks, rows that are kept, many draws, states: the forward is a graph's, the same words come back."""
    pages = [range(N_EACH * seq, N_EACH * (seq + 1)) for seq in range(N_SEQS)]
    prompts = batch([Feed([5, 6, seq], pages[seq], rows=[2]) for seq in range(4)], page_size=PAGE_SIZE, batch_id=1)
    feeds = [
        Feed([0], pages[0], start=3, rows=[0], draws=[Draw(mask=[3, 40])], follows=0),
        Feed([8], pages[1], start=3, rows=[0, 0], draws=[Draw(), Draw(SAMPLERS[1], slot=1)]),
        Feed([8], pages[2], start=3, rows=[0], embeds=[0]),
        Feed([8], pages[3], start=3),
    ]
    asked = batch(feeds, page_size=PAGE_SIZE, batch_id=2, before=1)
    asked.words.setflags(write=True)
    asked.row_keep[1] = 1
    answers: list[list[Drawn]] = []
    graphs = RecordingGraphs()
    for driver in (opened(folder, graphs), opened(folder, None)):
        launched = [driver.launch(prompts), driver.launch(asked)]
        answers.append([answer() for answer in launched])
    assert graphs.n_replays == 1
    for with_graph, without in zip(*answers, strict=True):
        assert with_graph.tokens.tolist() == without.tokens.tolist()
        assert np.array_equal(with_graph.logits, without.logits)


def test_what_follows_a_row_without_a_token_fails_alone(folder: Path) -> None:
    """A mask that allows nothing, before a plain batch."""
    driver = opened(folder, RecordingGraphs())
    pages = [range(N_EACH * seq, N_EACH * (seq + 1)) for seq in range(2)]
    nothing = Draw(mask=[160])
    prompts = [Feed([5, 6], pages[0], rows=[1], draws=[nothing]), Feed([5, 6], pages[1], rows=[1])]
    feeds = [Feed([0], pages[seq], start=2, rows=[0], follows=seq) for seq in range(2)]
    answers = [
        driver.launch(batch(prompts, page_size=PAGE_SIZE, batch_id=1)),
        driver.launch(batch(feeds, page_size=PAGE_SIZE, batch_id=2, before=1)),
    ]
    answers[0]()
    with pytest.raises(FailedSequencesError) as caught:
        answers[1]()
    assert caught.value.reasons == {0: "row 0 of the batch before, which it follows, has no token to draw"}


class Allocations(TorchDispatchMode):
    """Notes each operation whose result lies in memory that none of its arguments has."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.n_operations = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self.n_operations += 1
        places = {value.untyped_storage().data_ptr() for value in (*args, *(kwargs or {}).values()) if isinstance(value, torch.Tensor)}
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() not in places:
                self.found.append(str(function))
        return result


class NoReplays(RecordingGraphs):
    """Replays nothing: what a graph does takes no memory."""

    def record(self, body: Any) -> Any:
        outputs = body()
        return lambda: None, outputs


@pytest.mark.parametrize(("samplers", "most"), [(SAMPLERS[:1], 12), (SAMPLERS, 12)])
def test_a_decode_step_takes_no_memory_of_the_device(folder: Path, samplers: list[Sampler], most: int) -> None:
    driver = opened(folder, NoReplays())
    batches = steps(samplers, 24)
    tokens(driver, batches)
    prompts, *decodes = batches
    driver.run(prompts)
    noted = Allocations()
    with noted:
        for asked in decodes:
            driver.run(asked)
    print(f"{noted.n_operations / len(decodes):.1f} operations of torch a step")
    assert noted.found == []
    assert 0 < noted.n_operations <= most * len(decodes)


def test_the_allocations_of_a_step_without_a_graph_are_noticed(folder: Path) -> None:
    driver = opened(folder, None)
    prompts, *decodes = steps(SAMPLERS[:1], 2)
    driver.run(prompts)
    noted = Allocations()
    with noted:
        driver.run(decodes[0])
    assert noted.found
