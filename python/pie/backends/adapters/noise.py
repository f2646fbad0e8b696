"""The noise by which adapters are perturbed, with numpy; `rust/kernels/src/noise.rs` says what it is.

Both give the same bits: integers, a conversion without rounding, and one product in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

F32: TypeAlias = npt.NDArray[np.float32]
U64: TypeAlias = npt.NDArray[np.uint64]

Noise: TypeAlias = Callable[[int, int, int], F32]
"""`(seed, stream, n)`: the first `n` numbers of a stream under a seed of 64 bits, float32 [n]."""

_SCALE = np.float32(0.003382937)
_TWICE_MEAN = 1020
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_BLOCKS_AT_ONCE = 1 << 16


def noise(seed: int, stream: int, n: int) -> F32:
    """The first `n` numbers of a stream under a seed."""
    out = np.empty(n, np.float32)
    for first in range(0, -(-n // 4), _BLOCKS_AT_ONCE):
        n_blocks = min(_BLOCKS_AT_ONCE, -(-n // 4) - first)
        words = _philox(seed, stream, first, n_blocks)
        sums = sum((words >> np.uint64(shift)) & np.uint64(0xFF) for shift in (0, 8, 16, 24))
        numbers = (2 * np.asarray(sums).astype(np.int32) - _TWICE_MEAN).astype(np.float32) * _SCALE
        end = min(n, 4 * (first + n_blocks))
        out[4 * first : end] = numbers[: end - 4 * first]
    return out


def _philox(seed: int, stream: int, first: int, n_blocks: int) -> U64:
    """The words of the blocks from `first` on, [4 * n_blocks]."""
    numbers = np.arange(first, first + n_blocks, dtype=np.uint64)
    counter = [numbers & _LOW, numbers >> _HALF, np.full(n_blocks, stream, np.uint64), np.zeros(n_blocks, np.uint64)]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(_ROUNDS):
        # Two factors of 32 bits: the product fits 64.
        left, right = counter[0] * _FACTORS[0], counter[2] * _FACTORS[1]
        counter = [
            (right >> _HALF) ^ counter[1] ^ np.uint64(key[0]),
            right & _LOW,
            (left >> _HALF) ^ counter[3] ^ np.uint64(key[1]),
            left & _LOW,
        ]
        key = [(word + step) & 0xFFFFFFFF for word, step in zip(key, _KEY_STEPS, strict=True)]
    return np.stack(counter, axis=1).reshape(-1)
