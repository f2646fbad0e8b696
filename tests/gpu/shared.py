"""What attention saves where many sequences share a prefix, against a kernel made for that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from gpu.place import SHAPE_06B, SMALL, Place, Row, judged
from pie.backends.base import Capabilities
from pie.backends.cuda.attention import Planner
from pie.backends.cuda.options import CudaOptions
from pie.models.loader import read_config
from pie.models.spec import Attention

PAGE_SIZE = 16
LEAST = 0.9


def shared(place: Place) -> Iterator[Row]:
    """G5: one token of many sequences behind one prefix: what the driver's attention saves, and FlashInfer's cascade.

    Saved is what it takes where each sequence has the prefix in pages of its own.
    """
    n_seqs, n_prefix, n_own = (64, 512, 4) if place.is_gpu else (3, 2, 1)
    heads = read_config(place.model(*(("shape-06b", SHAPE_06B) if place.is_gpu else ("small", SMALL)))).attention
    device = torch.device(place.device)
    n_pages = n_seqs * (n_prefix + n_own)
    kv = torch.randn((n_pages, 2, PAGE_SIZE, heads.n_kv_heads, heads.head_dim), device=device).bfloat16()
    q = torch.randn((n_seqs, heads.n_heads, heads.head_dim), device=device).bfloat16()
    own = torch.arange(n_seqs * n_own).view(n_seqs, n_own)
    prefix = n_seqs * n_own + torch.arange(n_prefix)
    prefixes = n_seqs * n_own + torch.arange(n_seqs * n_prefix).view(n_seqs, n_prefix)
    clock = _on_device if place.is_gpu else _here
    for deterministic in (True, False):
        planner = _planner(place, heads, deterministic=deterministic)
        apart, together = (
            clock(_flat(planner, q, kv, torch.cat([pages, own], dim=1))) for pages in (prefixes, prefix.expand(n_seqs, n_prefix))
        )
        name = f"attention of {n_seqs} sequences behind {n_prefix * PAGE_SIZE} tokens, deterministic = {str(deterministic).lower()}"
        yield (name, f"{1e6 * apart:.0f} us apart, {1e6 * together:.0f} us where they share them", "")
        if not place.is_gpu:
            yield (f"{name}: share of the cascade's saving", "there is no device", "not run")
            continue
        cascade = clock(_cascade(heads, q, kv, prefix, own))
        ours = (apart - together) / (apart - cascade)
        yield judged(f"{name}: share of the cascade's saving", f"{ours:.2f} (it takes {1e6 * cascade:.0f} us)", is_right=ours >= LEAST)


def _planner(place: Place, heads: Attention, *, deterministic: bool) -> Planner:
    limits = Capabilities(backend="cuda", vocab_size=1, max_positions=1, page_size=PAGE_SIZE, n_pages=1, max_batch_tokens=1)
    options = replace(CudaOptions(device=place.device), deterministic=deterministic)
    return Planner(heads, torch.bfloat16, place.calls(deterministic=deterministic), place.torch_device(), limits, options)


def _flat(planner: Planner, q: torch.Tensor, kv: torch.Tensor, pages: torch.Tensor) -> Callable[[], object]:
    """As the driver computes it: each sequence with all of its pages."""
    n_seqs, n_each = pages.shape
    counting = torch.arange(n_seqs + 1, dtype=torch.int32)
    wrapper = planner.wrapper()
    planner.plan(wrapper, counting, counting * n_each, pages.flatten().int().to(q.device), torch.full((n_seqs,), PAGE_SIZE).int())
    return lambda: wrapper.run(q, kv)


def _cascade(heads: Attention, q: torch.Tensor, kv: torch.Tensor, prefix: torch.Tensor, own: torch.Tensor) -> Callable[[], object]:
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


def _on_device(call: Callable[[], object]) -> float:
    from pie.backends.cuda.kernels import device_seconds

    return device_seconds(call)


def _here(call: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    call()
    return time.perf_counter() - start_s
