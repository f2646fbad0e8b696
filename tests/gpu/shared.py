"""What attention saves where many sequences share a prefix, against a kernel made for that."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from gpu.place import SHAPE_06B, SMALL, Place, Row, judged
from gpu.speed import decode_steps, pages_of_each, run_steps
from pie.backends.base import Capabilities
from pie.backends.cuda.attention import Planner
from pie.backends.cuda.cascade import Cascade, as_sent, words_of_prefixes
from pie.backends.cuda.graphs import GraphRecorder
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.prefixes import Lists, Prefixes
from pie.models.loader import read_config
from pie.models.spec import Attention
from support.arenas import Feed, batch
from support.conformance import RowsOf

PAGE_SIZE = 16
LEAST = 0.9
ROUNDS = 5


def shared(place: Place) -> Iterator[Row]:
    """G5: one token of many sequences behind one prefix: what the driver's attention saves, and FlashInfer's cascade.

    Saved is what it takes where each sequence has the prefix in pages of its own. Then the same of whole steps.
    """
    heads = read_config(place.model(*(("shape-06b", SHAPE_06B) if place.is_gpu else ("small", SMALL)))).attention
    for n_seqs, n_prefix in ((64, 512), (256, 64), (8, 2048)) if place.is_gpu else ((3, 2),):
        yield from _attention(place, heads, n_seqs, n_prefix)
    yield from _rows(place)
    yield from _finding(heads)
    yield from _steps(place)


def _attention(place: Place, heads: Attention, n_seqs: int, n_prefix: int) -> Iterator[Row]:
    """Of a layer, as replays of a graph: launches from Python would be much of what is measured."""
    device, n_own = torch.device(place.device), 4 if place.is_gpu else 1
    n_pages = n_seqs * (n_prefix + n_own)
    kv = torch.randn((n_pages, 2, PAGE_SIZE, heads.n_kv_heads, heads.head_dim), device=device, dtype=torch.bfloat16)
    q = torch.randn((n_seqs, heads.n_heads, heads.head_dim), device=device).bfloat16()
    own = torch.arange(n_seqs * n_own).view(n_seqs, n_own)
    prefix = n_seqs * n_own + torch.arange(n_prefix)
    prefixes = n_seqs * n_own + torch.arange(n_seqs * n_prefix).view(n_seqs, n_prefix)
    alike = torch.cat([prefix.expand(n_seqs, n_prefix), own], dim=1)
    clock = _on_device if place.is_gpu else _here
    fixed, free = (_planner(place, heads, deterministic=deterministic) for deterministic in (True, False))
    with place.torch_device().computing():
        flat, merged = _flat(free, q, kv, alike), _merged(free, heads, q, kv, alike)
        error = float((flat().float() - merged().float()).abs().max())
        apart, together = clock(_flat(free, q, kv, torch.cat([prefixes, own], dim=1))), clock(merged)
        read_by_each = clock(flat), clock(_flat(fixed, q, kv, alike))
        name = f"attention of {n_seqs} sequences behind {n_prefix * PAGE_SIZE} tokens"
        yield judged(f"{name}: largest difference from each by itself", f"{error:.1e}", is_right=error < 2e-2)
        yield (name, f"{1e6 * apart:.0f} us apart, {1e6 * together:.0f} us where they share them", "")
        found = " / ".join(f"{1e6 * seconds:.0f} us" for seconds in read_by_each)
        yield (f"{name}: shared pages, read by each, free and fixed bits", found, "")
        if not place.is_gpu:
            yield (f"{name}: share of the cascade's saving", "there is no device", "not run")
            return
        cascade = clock(_cascade(heads, q, kv, prefix, own))
    ours = (apart - together) / (apart - cascade)
    yield judged(f"{name}: share of the cascade's saving", f"{ours:.2f} (it takes {1e6 * cascade:.0f} us)", is_right=ours >= LEAST)


def _rows(place: Place) -> Iterator[Row]:
    """Rows of a driver whose sequences share prefixes, by graphs and without, against one that reads each by itself.

    Three trees of two sequences, and a seventh one: a graph of eight has rows that no prefix is computed for.
    """
    model, n_steps = place.model("small", SMALL), 20 if place.is_gpu else 2
    prompts = [[(7 * token + tree) % 160 for token in range(32)] for tree in range(3)]
    pages = [[*range(2 * (seq % 3), 2 * (seq % 3) + 2), *range(6 + 3 * seq, 9 + 3 * seq)] for seq in range(7)]
    pages[6] = [28, 29, *range(24, 27)]
    begin = [Feed(prompt, [2 * tree, 2 * tree + 1]) for tree, prompt in enumerate(prompts)] + [Feed(prompts[0][::-1], [28, 29])]
    batches = [batch(begin, page_size=PAGE_SIZE)]
    for step in range(n_steps):
        feeds = [Feed([(seq + 3 * step) % 160], mine, start=32 + step, rows=[0]) for seq, mine in enumerate(pages)]
        batches.append(batch(feeds, page_size=PAGE_SIZE))
    for graph_seqs in (0, 8):
        sizes = {"n_pages": 30, "max_batch_tokens": 256, "graph_seqs": graph_seqs, "deterministic": False}
        drivers = [RowsOf(place.driver(model, cascade_bytes=least, **sizes)) for least in (0, 1 << 50)]
        ours, theirs = (np.concatenate([driver.run(asked).copy() for asked in batches]) for driver in drivers)
        for driver in drivers:
            driver.close()
        error = float(np.abs(ours - theirs).max() / theirs.std())
        what = f"rows of sequences that share, graphs up to {graph_seqs}: largest difference from each by itself"
        yield judged(what, f"{error:.1e} of the spread", is_right=error < 0.1)


def _planner(place: Place, heads: Attention, *, deterministic: bool) -> Planner:
    limits = Capabilities(backend="cuda", vocab_size=1, max_positions=1, page_size=PAGE_SIZE, n_pages=1, max_batch_tokens=1)
    options = replace(CudaOptions(device=place.device), deterministic=deterministic)
    return Planner(heads, torch.bfloat16, place.calls(deterministic=deterministic), place.torch_device(), limits, options)


def _flat(planner: Planner, q: torch.Tensor, kv: torch.Tensor, pages: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Each sequence with all of its pages."""
    n_seqs, n_each = pages.shape
    counting = torch.arange(n_seqs + 1, dtype=torch.int32)
    wrapper = planner.wrapper()
    planner.plan(wrapper, counting, counting * n_each, pages.flatten().int().to(q.device), torch.full((n_seqs,), PAGE_SIZE).int())
    return lambda: wrapper.run(q, kv)


def _merged(planner: Planner, heads: Attention, q: torch.Tensor, kv: torch.Tensor, pages: torch.Tensor) -> Callable[[], torch.Tensor]:
    """As the driver computes it: what they share is found in their page lists, and read once."""
    lists = _lists(pages.numpy())
    found = Prefixes(heads, PAGE_SIZE, int(pages.max()) + 1, 2, 0).find(lists)
    assert found is not None
    sent = as_sent([torch.from_numpy(words.copy()).to(q.device) for words in words_of_prefixes(found)], len(q))
    own, prefix = planner.wrapper(), planner.wrapper()
    qo, own_indptr, last = (torch.from_numpy(words.astype(np.int32)) for words in (lists[0], found.own_indptr, lists[3]))
    planner.plan(own, qo, own_indptr, torch.from_numpy(found.own_indices).to(q.device), last)
    planner.plan_prefixes(prefix, torch.from_numpy(found.qo_indptr), torch.from_numpy(found.kv_indptr), sent.kv_indices)
    merged = Cascade(own, prefix, planner.merge, sent.rows, sent.row_of_token, sent.has_row)
    return lambda: merged.run(q, kv)


def _lists(pages: np.ndarray) -> Lists:
    """Of sequences whose pages are all full."""
    n_seqs, n_each = pages.shape
    counting = np.arange(n_seqs + 1, dtype=np.uint32)
    return Lists(counting, counting * np.uint32(n_each), pages.reshape(-1).astype(np.uint32), np.full(n_seqs, PAGE_SIZE, np.uint32))


def _cascade(heads: Attention, q: torch.Tensor, kv: torch.Tensor, prefix: torch.Tensor, own: torch.Tensor) -> Callable[[], torch.Tensor]:
    """FlashInfer's cascade: the prefix once for all, then what each sequence has of its own."""
    import flashinfer

    n_seqs, n_own = own.shape
    workspace = torch.zeros(256 << 20, dtype=torch.uint8, device=q.device)
    wrapper: Any = flashinfer.MultiLevelCascadeAttentionWrapper(2, workspace, "NHD")
    counting = torch.arange(n_seqs + 1, dtype=torch.int32, device=q.device)
    of_all = torch.tensor([0, n_seqs], dtype=torch.int32, device=q.device)
    full = torch.full((n_seqs,), PAGE_SIZE, dtype=torch.int32, device=q.device)
    wrapper.plan(
        [of_all, counting],
        [torch.tensor([0, len(prefix)], dtype=torch.int32, device=q.device), counting * n_own],
        [prefix.int().to(q.device), own.flatten().int().to(q.device)],
        [full[:1], full],
        heads.n_heads, heads.n_kv_heads, heads.head_dim, PAGE_SIZE,
        causal=False, sm_scale=heads.scale, q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16,
    )  # fmt: skip
    return lambda: wrapper.run(q, kv)


def _finding(heads: Attention) -> Iterator[Row]:
    """What the host takes to find what 512 sequences share, of whom every sixteenth has a page more in each step."""
    n_seqs, n_prefix, n_steps = 512, 64, 40
    n_each = n_prefix + n_steps // PAGE_SIZE + 2
    finding = Prefixes(heads, PAGE_SIZE, n_seqs * n_each, 2, 0)
    pages, seqs = np.arange(n_seqs * n_each, dtype=np.uint32).reshape(n_seqs, n_each), np.arange(n_seqs)
    pages[:, :n_prefix] = pages[0, :n_prefix]
    times = []
    for step in range(n_steps):
        n_own = 1 + (step + seqs % PAGE_SIZE) // PAGE_SIZE
        is_used = np.arange(n_each) < n_prefix + n_own[:, None]
        ends = np.concatenate([[0], np.cumsum(n_prefix + n_own)]).astype(np.uint32)
        lists = Lists(np.arange(n_seqs + 1, dtype=np.uint32), ends, pages[is_used], np.ones(n_seqs, np.uint32))
        start_s = time.perf_counter()
        found = finding.find(lists)
        times.append(time.perf_counter() - start_s)
        assert found is not None
    yield (f"finding what {n_seqs} sequences share", f"{1e6 * times[0]:.0f} us at first, {1e6 * statistics.median(times):.0f} us then", "")


def _steps(place: Place) -> Iterator[Row]:
    """Whole steps of the driver with free bits, where the prefix is shared, and where each has its own."""
    model = place.model("shape-06b", SHAPE_06B) if place.is_gpu else place.model("small", SMALL)
    n_seqs, prompt, n_steps = (64, 2048, 100) if place.is_gpu else (3, 32, 3)
    n_pages = n_seqs * pages_of_each(n_steps, prompt)
    sizes = {"n_pages": n_pages, "max_batch_tokens": 512, "graph_seqs": n_seqs, "graph_bytes": 4 << 30}
    driver = place.driver(model, deterministic=False, cascade_bytes=(32 << 20) if place.is_gpu else 0, **sizes)
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS if place.is_gpu else 1):
        for is_shared, found in times.items():
            steps = decode_steps(n_seqs, n_steps, prompt=prompt, is_shared=is_shared)
            start_s = time.perf_counter()
            run_steps(driver, steps)
            found.append((time.perf_counter() - start_s) / n_steps)
    driver.close()
    apart, together = (1e6 * statistics.median(found) for found in times.values())
    name = f"a step of {n_seqs} sequences behind {prompt} tokens"
    yield (name, f"{apart:.0f} us apart, {together:.0f} us where they share them", "" if place.is_gpu else "not run on a GPU")


def _on_device(call: Callable[[], object]) -> float:
    from pie.backends.cuda.kernels import device_seconds

    for _ in range(2):
        call()
    torch.cuda.synchronize()
    replay, _ = GraphRecorder(torch.device("cuda", torch.cuda.current_device())).record(call)
    return device_seconds(replay)


def _here(call: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    call()
    return time.perf_counter() - start_s
