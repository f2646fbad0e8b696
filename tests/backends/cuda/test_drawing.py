"""What is drawn on the device is what the engine draws from the same row, bit for bit: random rows of every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oracle.sampler import Sampler
from pie.backends.cuda.calls import standin_calls
from pie.backends.cuda.device import HostDevice
from pie.backends.cuda.drawing import Drawing
from pie.backends.cuda.rows import check_rows
from pie.backends.cuda.staging import Staging
from support.arenas import Draw, Feed, batch
from support.device_draws import drawn_by
from support.random_rows import RandomRows, random_rows
from support.waiting import Waits


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("seed", range(40))
def test_random_rows_are_drawn_from_as_by_the_engine(seed: int) -> None:
    rows = random_rows(seed, 100, [2, 33, 160, 300, 1000][seed % 5])
    tokens, firsts = drawn_by(standin_calls(), rows)
    expected = rows.expected()
    assert tokens == expected
    ends = np.cumsum(rows.n_draws)
    assert firsts == [expected[end - n] if n else -1 for end, n in zip(ends.tolist(), rows.n_draws, strict=True)]


def test_a_vocabulary_of_real_size() -> None:
    rows = random_rows(77, 12, 151_936)
    assert drawn_by(standin_calls(), rows)[0] == rows.expected()


def test_rows_with_top_k_or_top_p_alone_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of eight that are drawn from at random; the others cost what they would without those."""
    seen_by_sort, sort = [], torch.sort
    monkeypatch.setattr(torch, "sort", lambda rows, **how: seen_by_sort.append(len(rows)) or sort(rows, **how))
    samplers = [Sampler(temperature=1.0, top_k=5), Sampler(temperature=1.0, top_p=0.5), *[Sampler(temperature=1.0)] * 6]
    draws = [Draw(how, seed=seq, mask=[3, 20] if seq in {1, 2} else ()) for seq, how in enumerate(samplers)]
    rows = RandomRows(np.random.default_rng(1).standard_normal((8, 70)).astype(np.float32), draws, [1] * 8)
    assert drawn_by(standin_calls(), rows)[0] == rows.expected()
    assert seen_by_sort == [1, 1]


def test_rows_with_masks_alone_are_copied_and_masked() -> None:
    """One of six, which is drawn from at random; the logits of all stay as they are."""
    vocab_size, seen = 70, []
    plain = standin_calls()

    def masking(logits: torch.Tensor, bitmask: torch.Tensor, **how: Any) -> None:
        seen.append((tuple(logits.shape), tuple(bitmask.shape)))
        plain.apply_token_bitmask_inplace(logits, bitmask, **how)

    draws = [Draw(Sampler(temperature=1.0), seed=seq, mask=[3, 2] if seq == 4 else ()) for seq in range(6)]
    asked = batch([Feed([1], [seq], rows=[0], draws=[draw]) for seq, draw in enumerate(draws)], page_size=4)
    logits = torch.randn(6, vocab_size, generator=torch.Generator().manual_seed(1))
    before = logits.clone()
    drawing = Drawing(replace(plain, apply_token_bitmask_inplace=masking), Staging(HostDevice(), 64), vocab_size)
    with torch.inference_mode():
        tokens = drawing.draw(asked, check_rows(asked, vocab_size), logits).tokens.tolist()
    assert seen == [((1, vocab_size), (1, 3))]
    assert tokens[4] in {3, 4}
    assert torch.equal(logits, before)
    without = batch([Feed([1], [seq], rows=[0], draws=[replace(draw, mask=())]) for seq, draw in enumerate(draws)], page_size=4)
    with torch.inference_mode():
        expected = drawing.draw(without, check_rows(without, vocab_size), logits).tokens.tolist()
    assert [token for seq, token in enumerate(tokens) if seq != 4] == [token for seq, token in enumerate(expected) if seq != 4]


def test_the_host_waits_for_nothing_that_is_drawn() -> None:
    """Many draws from a row, masks, all samplers: how many there are is known to the host from the beginning."""
    most = []
    for seed in range(6):
        rows = random_rows(seed, 60, 160)
        most.append(max(rows.n_draws))
        noted, asked = Waits(), rows.arena()
        drawing = Drawing(standin_calls(), Staging(HostDevice(), 1 << 16), 160)
        checked, logits = check_rows(asked, 160), torch.from_numpy(rows.logits)
        with torch.inference_mode(), noted:
            drawn = drawing.draw(asked, checked, logits)
        assert noted.n_operations > 50
        assert noted.found == []
        assert drawn.tokens.tolist() == rows.expected()
    assert min(most) == 1 < max(most)


def test_what_waits_is_noticed() -> None:
    x, noted = torch.arange(3), Waits()
    with noted:
        x.sum().item()
        x.repeat_interleave(x)
        x[x > 1]
        torch.tensor([1, 2])
    assert len(noted.found) >= 4, noted.found
