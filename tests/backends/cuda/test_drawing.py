"""What is drawn on the device is what the engine draws from the same row, bit for bit: random rows of every kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pie.backends.cuda.calls import standin_calls
from support.device_draws import drawn_by
from support.random_rows import random_rows


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
