"""Attention masks: packed, for the tokens that have them, which are computed apart from all others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from pie.backends.base import Capabilities
from pie.backends.checks import check, mask_of
from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.attention import Planner
from pie.backends.cuda.calls import standin_calls
from pie.backends.cuda.pieces import Pieces, cut
from pie.backends.cuda.share import Parts
from pie.batch import Batch
from pie.errors import PieError
from pie.models.loader import load_checkpoint
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint
from support.recording import RecordingDevice
from support.waiting import Waits

PAGE_SIZE = 4
LIMITS = Capabilities(
    backend="cuda", vocab_size=160, max_positions=64, page_size=PAGE_SIZE, n_pages=64, max_batch_tokens=64, host_pages=0, masks=True,
    positions=True, follows=True,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype="F32")


def random_batch(random: Random) -> Batch:
    """Some sequences, some of whose tokens have masks."""
    feeds = []
    for seq in range(random.randint(1, 4)):
        start, n = random.randint(0, 9), random.randint(1, 9)
        share = random.choice([0.0, 0.3, 1.0])
        masks = {token: random_mask(random, start + token, start + n) for token in range(n) if random.random() < share}
        feeds.append(Feed([1] * n, range(16 * seq, 16 * seq + 16), start=start, masks=masks))
    return batch(feeds, page_size=PAGE_SIZE)


def random_mask(random: Random, own: int, length: int) -> list[int]:
    """Runs over the slots of a sequence, one of which the token in the slot `own` may see."""
    hidden = random.randint(0, min(3, own))
    shown = random.randint(1, length - hidden)
    rest = length - hidden - shown
    runs = [hidden, shown, 1, rest - 1] if rest > 1 else [hidden, shown]
    if random.random() < 0.5:
        # A run in two parts, with none of the other kind in between.
        at = random.randrange(len(runs))
        part = random.randint(0, runs[at])
        runs[at : at + 1] = [part, 0, runs[at] - part]
    return runs


def seen_slots(asked: Batch, some: Pieces) -> dict[int, list[tuple[int, int]]]:
    """What each token of the pieces sees: pages and slots within them."""
    tokens = np.arange(asked.n_tokens) if some.tokens is None else some.tokens
    found, n_done = {}, 0
    for piece, (first, end) in enumerate(zip(some.qo_indptr[:-1], some.qo_indptr[1:], strict=True)):
        pages = some.kv_indices[some.kv_indptr[piece] : some.kv_indptr[piece + 1]]
        length, n = (len(pages) - 1) * PAGE_SIZE + int(some.kv_last_page_len[piece]), end - first
        visible = np.arange(length) <= np.arange(length - n, length)[:, None]
        if some.masks is not None:
            packed = some.masks.bits[some.masks.starts[piece] : some.masks.starts[piece + 1]]
            visible = np.unpackbits(packed, bitorder="little")[: n * length].reshape(n, length).astype(bool)
        for row, token in enumerate(tokens[n_done : n_done + n].tolist()):
            found[token] = [(int(pages[slot // PAGE_SIZE]), slot % PAGE_SIZE) for slot in np.flatnonzero(visible[row]).tolist()]
        n_done += n
    return found


@pytest.mark.parametrize("n_most", [None, 1, 4])
def test_each_token_is_in_one_piece_and_sees_what_it_shall(n_most: int | None) -> None:
    for seed in range(100):
        asked = random_batch(Random(seed))
        spans = check(asked, LIMITS)
        causal, masked = cut(asked, spans, n_most)
        of_causal, of_masked = ({} if some is None else seen_slots(asked, some) for some in (causal, masked))
        assert set(of_causal) == set(range(asked.n_tokens)) - set(of_masked)
        for some in (causal, masked):
            assert some is None or n_most is None or np.diff(some.qo_indptr).max() <= n_most
        for seq in range(asked.n_seqs):
            first, end = asked.qo_indptr[seq : seq + 2].tolist()
            pages = asked.kv_indices[asked.kv_indptr[seq] : asked.kv_indptr[seq + 1]].tolist()
            for token in range(first, end):
                own = int(spans.first_slot[seq]) + token - first
                runs, slots = mask_of(asked, token), range(own + 1)
                if runs:
                    allowed = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
                    slots = [slot for slot in slots if slot < len(allowed) and allowed[slot]]
                # A mask that hides nothing is none.
                seen = (of_masked if len(slots) <= own else of_causal)[token]
                assert seen == [(pages[slot // PAGE_SIZE], slot % PAGE_SIZE) for slot in slots]


@pytest.mark.parametrize("n_most", [None, 1, 4])
def test_a_mask_that_hides_nothing_is_none(n_most: int | None) -> None:
    """Whether it ends at the token's own slot or behind it, in one run or several: the pieces are those without it."""
    for seed in range(50):
        random = Random(seed)
        feeds, without = [], []
        for seq in range(random.randint(1, 3)):
            start, n = random.randint(0, 9), random.randint(1, 9)
            pages = range(16 * seq, 16 * seq + 16)
            hiding = {token: [1, start + token] for token in range(n) if start + token > 1 and random.random() < 0.3}
            ends = {token: random.randint(start + token + 1, start + n) for token in range(n) if random.random() < 0.7}
            seen = {token: random.choice([[0, end], [0, 1, 0, end - 1], [0, 0, 0, end]]) for token, end in ends.items()}
            feeds.append(Feed([1] * n, pages, start=start, masks=seen | hiding))
            without.append(Feed([1] * n, pages, start=start, masks=hiding))
        asked, plain = (batch(some, page_size=PAGE_SIZE) for some in (feeds, without))
        for some, other in zip(cut(asked, check(asked, LIMITS), n_most), cut(plain, check(plain, LIMITS), n_most), strict=True):
            assert (some is None) == (other is None)
            if some is not None and other is not None:
                assert seen_slots(asked, some) == seen_slots(plain, other)
                assert some.qo_indptr.tolist() == other.qo_indptr.tolist()


class Noting(standin_calls().attention):  # type: ignore[misc]
    """Notes what it plans: how many tokens, and how many bytes of masks."""

    plans: ClassVar[list[tuple[int, int]]] = []

    def plan(self, qo_indptr: torch.Tensor, *arrays: Any, packed_custom_mask: torch.Tensor | None = None, **how: Any) -> None:
        self.plans.append((int(qo_indptr[-1]), 0 if packed_custom_mask is None else len(packed_custom_mask)))
        super().plan(qo_indptr, *arrays, packed_custom_mask=packed_custom_mask, **how)


def opened(folder: Path, **more: Any) -> CudaDriver:
    options = CudaOptions(device="cpu", page_size=PAGE_SIZE, n_pages=64, max_batch_tokens=64, swap_bytes=0, **more)
    calls = replace(standin_calls(), attention=Noting)
    return CudaDriver(load_checkpoint(folder), options, parts=Parts(RecordingDevice(), calls, None))


@pytest.mark.parametrize("deterministic", [True, False])
def test_tokens_without_masks_have_none_beside_one_that_has(folder: Path, *, deterministic: bool) -> None:
    driver = opened(folder, deterministic=deterministic)
    Noting.plans.clear()
    feeds = [Feed(range(20), range(5)), Feed([3, 4, 5], [8], masks={1: [1, 1]}), Feed([7], [9], rows=[0])]
    driver.run(batch(feeds, page_size=PAGE_SIZE))
    # 23 tokens by causality alone; one over two slots, whose bits fit a byte.
    assert Noting.plans == [(23, 0), (1, 1)]
    driver.close()


def test_the_host_waits_for_nothing_where_tokens_have_masks(folder: Path) -> None:
    """Nor where rows and hidden states are wanted. What attention is planned by is on the host, as is its stand-in."""
    driver = opened(folder)
    noted = Waits()
    feeds = [Feed([3, 4, 5], [8], masks={1: [1, 1]}, rows=[0, 1, 2], embeds=[1]), Feed([7, 8], [9], rows=[1])]
    asked = batch(feeds, page_size=PAGE_SIZE)
    asked.words.setflags(write=True)
    asked.row_keep[0] = 1

    class Nothing(Noting):
        def _cut(self, *arrays: Any) -> list[Any]:
            with torch.utils._python_dispatch._disable_current_modes():
                return super()._cut(*arrays)

        def plan(self, *arrays: Any, **how: Any) -> None:
            with torch.utils._python_dispatch._disable_current_modes():
                super().plan(*arrays, **how)

        def _visible(self, *arrays: Any) -> torch.Tensor:
            with torch.utils._python_dispatch._disable_current_modes():
                return super()._visible(*arrays)

    for wrapper in (driver._launcher.step._causal, driver._launcher.step._masked):
        wrapper.library.__class__ = Nothing
    with noted:
        answer = driver.launch(asked)
    assert len(answer().logits) == 2
    assert noted.n_operations > 50
    assert noted.found == []
    driver.close()


def test_masks_that_are_kept_in_another_way_are_told_before_anything_is_computed(folder: Path) -> None:
    class Other:
        def __init__(self, *_: Any, **_how: Any) -> None:
            """Has no place for the beginnings of masks."""

    calls, spec = replace(standin_calls(), attention=Other), load_checkpoint(folder).spec
    planner = Planner(spec.attention, torch.float32, calls, RecordingDevice(), LIMITS, CudaOptions(device="cpu"))
    with pytest.raises(PieError, match="flashinfer-python keeps attention masks in another way") as caught:
        planner.wrapper()
    print(caught.value.message)
    assert caught.value.code == "invalid-config"
