"""Attention to what sequences share, once for all: the rows of each are those that it has alone, but for rounding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from pie.backends.base import Capabilities
from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.attention import Planner
from pie.backends.cuda.calls import Calls, standin_calls
from pie.backends.cuda.cascade import Cascade, as_sent, words_of_prefixes
from pie.backends.cuda.prefixes import Lists, Prefixes, Shared
from pie.backends.cuda.share import Parts
from pie.batch import Batch
from pie.models.loader import load_checkpoint
from pie.models.spec import Attention
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.conformance import RowsOf
from support.recording import RecordingDevice, RecordingGraphs

PAGE_SIZE, N_PAGES, N_LAYERS = 4, 96, 2
LIMITS = Capabilities(
    backend="cuda", vocab_size=160, max_positions=512, page_size=PAGE_SIZE, n_pages=N_PAGES, max_batch_tokens=64, host_pages=0,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype="F32")


def planned(planner: Planner, lists: Lists) -> Any:
    """Each sequence with all of its pages."""
    wrapper = planner.wrapper()
    planner.plan(wrapper, *(torch.from_numpy(array.astype(np.int32)) for array in lists))
    return wrapper


def cascaded(planner: Planner, lists: Lists, shared: Shared) -> Cascade:
    own = lists._replace(kv_indptr=shared.own_indptr, kv_indices=shared.own_indices)
    sent = as_sent([torch.from_numpy(words.copy()) for words in words_of_prefixes(shared)], len(shared.has_row))
    prefix = planner.wrapper()
    planner.plan_prefixes(prefix, torch.from_numpy(shared.qo_indptr), torch.from_numpy(shared.kv_indptr), sent.kv_indices)
    return Cascade(planned(planner, own), prefix, planner.merge, sent.rows, sent.row_of_token, sent.has_row)


def random_lists(random: Random) -> Lists:
    """Sequences whose page lists are paths of a tree, some of which compute several tokens."""
    names = count()
    paths = [[next(names) for _ in range(random.randint(1, 4))]]
    for _ in range(random.randint(1, 7)):
        base = random.choice(paths)
        paths.append(base[: random.randint(0, len(base))] + [next(names) for _ in range(random.randint(1, 3))])
    last = [random.randint(1, PAGE_SIZE) for _ in paths]
    n_new = [random.choice([1, 1, random.randint(1, (len(path) - 1) * PAGE_SIZE + slots)]) for path, slots in zip(paths, last, strict=True)]
    arrays = (np.cumsum([0, *n_new]), np.cumsum([0, *map(len, paths)]), np.concatenate([*map(np.array, paths)]), np.array(last))
    return Lists(*(array.astype(np.int32) for array in arrays))


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 5e-6), (torch.bfloat16, 3e-2)])
def test_over_random_trees_of_pages_it_is_attention_to_the_whole(dtype: torch.dtype, error: float) -> None:
    heads = Attention(4, 2, 8, 0.35, head_norms=False)
    options = CudaOptions(device="cpu", deterministic=False)
    device = RecordingDevice()
    planner = Planner(heads, dtype, standin_calls(), device, LIMITS, options)
    torch.manual_seed(3)
    kv = torch.randn(N_PAGES, 2, PAGE_SIZE, 2, 8).to(dtype)
    n_shared = 0
    for seed in range(60):
        lists = random_lists(Random(seed))
        shared = Prefixes.of(heads, LIMITS, dtype.itemsize, 0).find(lists)
        if shared is None:
            continue
        n_shared += 1
        q = torch.randn(int(lists.qo_indptr[-1]), 4, 8).to(dtype)
        with device.computing():
            expected, found = planned(planner, lists).run(q, kv), cascaded(planner, lists, shared).run(q, kv)
        assert found.dtype == dtype
        assert float((found.double() - expected.double()).abs().max()) < error
        # Who shares nothing has the same bits.
        assert torch.equal(found[~torch.from_numpy(shared.has_row)], expected[~torch.from_numpy(shared.has_row)])
    assert n_shared > 25


def test_heads_that_the_merging_kernel_has_no_threads_for_share_nothing() -> None:
    options = CudaOptions(device="cpu", deterministic=False)
    for n_heads, head_dim, can in ((64, 128, True), (65, 128, False), (32, 256, True), (64, 256, False), (128, 64, True)):
        heads = Attention(n_heads, 1, head_dim, 1.0, head_norms=False)
        assert Planner(heads, torch.bfloat16, standin_calls(), RecordingDevice(), LIMITS, options).can_share == can


class Merges:
    """Notes how many tokens each call merges."""

    def __init__(self) -> None:
        self.n_tokens: list[int] = []

    def calls(self) -> Calls:
        plain = standin_calls()

        def noting(v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor) -> None:
            assert not torch.isnan(s_other[mask]).any(), "what no prefix was computed for is merged"
            self.n_tokens.append(int(mask.sum()))
            plain.merge_state_in_place(v, s, v_other, s_other, mask)
            assert torch.isfinite(v).all()

        return replace(plain, merge_state_in_place=noting)


def opened(folder: Path, merges: Merges, graphs: RecordingGraphs | None = None, **more: Any) -> RowsOf:
    """A driver; what is noted while it is opened is forgotten."""
    sizes: dict[str, Any] = {"page_size": PAGE_SIZE, "n_pages": N_PAGES, "max_batch_tokens": 64, "swap_bytes": 0, "graph_seqs": 8}
    options = CudaOptions(**({"device": "cpu", "deterministic": False, "cascade_bytes": 0} | sizes | more))
    driver = CudaDriver(load_checkpoint(folder), options, parts=Parts(RecordingDevice(), merges.calls(), graphs))
    merges.n_tokens.clear()
    return RowsOf(driver)


N_LEAVES = 6
_ROOT, _BRANCHES = [0, 1], ([2, 3], [4, 5])


def pages_of(leaf: int) -> list[int]:
    """A root of two pages, one of two branches of two, and six pages of its own."""
    return [*_ROOT, *_BRANCHES[leaf % 2], *range(6 + 6 * leaf, 12 + 6 * leaf)]


def tree(seed: int, n_steps: int, *, has_masks: bool = False) -> Iterator[tuple[Batch, int]]:
    """The batches of a tree of sequences, and how many tokens of each are computed behind a prefix that others have.

    The root, the branches behind it, chunks of the leaves behind those, then steps of some leaves.
    """
    random = Random(seed)
    text = [random.randrange(160) for _ in range(100)]
    yield batch([Feed(text[:8], _ROOT, rows=[7])], page_size=PAGE_SIZE), 0
    branches = [Feed(text[20 * n : 20 * n + 8], [*_ROOT, *pages], start=8, rows=range(8)) for n, pages in enumerate(_BRANCHES)]
    yield batch(branches, page_size=PAGE_SIZE), 16
    lengths = [16 + random.randint(1, 6) for _ in range(N_LEAVES)]
    feeds = []
    for leaf, length in enumerate(lengths):
        n = length - 16
        masks = {token: [1, 15 + token] for token in range(n)} if has_masks and leaf == 0 else {}
        feeds.append(Feed(text[leaf : leaf + n], pages_of(leaf), start=16, rows=range(n), masks=masks))
    n_merged = sum(lengths[1 if has_masks else 0 :]) - 16 * (N_LEAVES - has_masks)
    yield batch(feeds, page_size=PAGE_SIZE), n_merged
    for _ in range(n_steps):
        live = random.sample(range(N_LEAVES), random.randint(1, N_LEAVES))
        of_branch = [[leaf for leaf in live if leaf % 2 == branch] for branch in range(2)]
        # One that is alone in its branch leaves the other one's sequences theirs; two of two branches share the root.
        n_merged = sum(len(some) for some in of_branch if len(some) > 1)
        n_merged = 2 if list(map(len, of_branch)) == [1, 1] else n_merged
        feeds = [Feed([random.randrange(160)], pages_of(leaf), start=lengths[leaf], rows=[0]) for leaf in live]
        yield batch(feeds, page_size=PAGE_SIZE), n_merged
        for leaf in live:
            lengths[leaf] = min(lengths[leaf] + 1, 39)


@pytest.mark.parametrize("has_graphs", [False, True])
@pytest.mark.parametrize("has_masks", [False, True])
def test_rows_of_a_tree_are_those_where_each_is_read_by_itself(folder: Path, *, has_graphs: bool, has_masks: bool) -> None:
    graphs = RecordingGraphs() if has_graphs else None
    merges, none = Merges(), Merges()
    together = opened(folder, merges, graphs)
    apart = opened(folder, none, RecordingGraphs() if has_graphs else None, cascade_bytes=1 << 50)
    n_merged = 0
    for asked, n_expected in tree(7, 30, has_masks=has_masks):
        merges.n_tokens.clear()
        found, expected = together.run(asked), apart.run(asked)
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)
        assert merges.n_tokens == ([n_expected] * N_LAYERS if n_expected else [])
        n_merged += n_expected
    assert n_merged > 60
    assert none.n_tokens == []
    assert graphs is None or graphs.n_replays == 30
    together.close()
    apart.close()


@pytest.mark.parametrize("has_graphs", [False, True])
def test_where_bits_are_fixed_shared_pages_change_none(folder: Path, *, has_graphs: bool) -> None:
    """And nothing is merged: sums run through the end of a prefix."""
    merges = Merges()
    driver = opened(folder, merges, RecordingGraphs() if has_graphs else None, deterministic=True)
    for asked, _ in tree(7, 1):
        whole = driver.run(asked).copy()
    assert len(whole) == asked.n_seqs > 1
    for seq in range(asked.n_seqs):
        pages = asked.kv_indices[asked.kv_indptr[seq] : asked.kv_indptr[seq + 1]].tolist()
        start = (len(pages) - 1) * PAGE_SIZE + int(asked.kv_last_page_len[seq]) - 1
        alone = driver.run(batch([Feed([int(asked.tokens[seq])], pages, start=start, rows=[0])], page_size=PAGE_SIZE))
        assert np.array_equal(whole[seq], alone[0])
    assert merges.n_tokens == []
    driver.close()


def test_a_graph_that_found_no_room_leaves_each_its_own_reading(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    merges, device = Merges(), RecordingDevice()
    sizes: dict[str, Any] = {"page_size": PAGE_SIZE, "n_pages": N_PAGES, "max_batch_tokens": 64, "swap_bytes": 0, "graph_seqs": 2}
    # Two sizes, and draws of two kinds from each: the graphs of what is shared would be a seventh.
    options = CudaOptions(device="cpu", deterministic=False, cascade_bytes=0, graph_bytes=(5 << 20) + (1 << 18), **sizes)
    graphs = RecordingGraphs(device, bytes_each=1 << 20)
    driver = RowsOf(CudaDriver(load_checkpoint(folder), options, parts=Parts(device, merges.calls(), graphs)))
    merges.n_tokens.clear()
    assert (
        "cuda: decode batches that share prefixes of 2 sequences have no CUDA graph and read them once for each sequence: "
        "graph_bytes allows 5 MiB, and 6 MiB are taken"
    ) in capfd.readouterr().err
    driver.run(batch([Feed(range(8), _ROOT)], page_size=PAGE_SIZE))
    driver.run(batch([Feed([9], [*_ROOT, 40 + seq], start=8, rows=[0]) for seq in range(2)], page_size=PAGE_SIZE))
    assert graphs.n_replays == 1
    assert merges.n_tokens == []
    driver.close()


def test_a_batch_that_shares_waits_for_nothing_but_the_plans_before(folder: Path) -> None:
    """Each plan by the mark of the one before of its kind: own pages, and prefixes."""
    device = RecordingDevice()
    options = CudaOptions(
        device="cpu", page_size=PAGE_SIZE, n_pages=N_PAGES, max_batch_tokens=64, swap_bytes=0, graph_seqs=0, deterministic=False,
        cascade_bytes=0,
    )  # fmt: skip
    driver = CudaDriver(load_checkpoint(folder), options, parts=Parts(device, standin_calls(), None))
    driver.run(batch([Feed(range(8), _ROOT)], page_size=PAGE_SIZE))
    for _ in range(2):
        device.calls.clear()
        driver.launch(batch([Feed([9], [*_ROOT, 40 + seq], start=8, rows=[0]) for seq in range(3)], page_size=PAGE_SIZE))
        kept = [call for call in device.calls if not call.startswith("pinned")]
        print("\n".join(kept))
        assert [call.split()[0] for call in kept] == ["compute:", "host", "mark", "host", "mark", "mark"]
    driver.close()
