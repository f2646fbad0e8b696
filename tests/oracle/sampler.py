"""The sampler: which token is drawn from a row of logits, bit for bit.

Weights are whole numbers, round(2^42 exp(x)) with exp from a polynomial in fixed order, so that sums are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@dataclass(frozen=True)
class Sampler:
    """A method: 0 or 1 switch a filter off."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """One block of Philox4x32-10."""
    (a, b, c, d), (k0, k1) = counter, key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> 32) ^ b ^ k0, right & 0xFFFFFFFF, (left >> 32) ^ d ^ k1, left & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def weights(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """round(2^42 exp(x)) for x <= 0."""
    x = np.maximum(x, -40.0)
    n = np.rint(x * math.log2(math.e))
    rest = (x - n * _LN2_HIGH) - n * _LN2_LOW
    total = np.zeros_like(x)
    for power in range(13, -1, -1):
        total = total * rest + 1.0 / math.factorial(power)
    return np.rint(np.ldexp(total, n.astype(np.int64) + 42)).astype(np.int64)


def draw(logits: npt.NDArray[np.float32], sampler: Sampler, seed: int, position: int, *, slot: int = 0, index: int = 0) -> int:
    """The token drawn from a row of logits, float32 [V]."""
    order = sorted(range(len(logits)), key=lambda token: (-float(logits[token]), token))
    temperature = float(np.float32(sampler.temperature))
    if temperature == 0.0 or sampler.top_k == 1:
        return order[0]
    weight = weights((logits.astype(np.float64) - np.float64(logits[order[0]])) / temperature).tolist()
    if sampler.top_k:
        order = order[: sampler.top_k]
    if np.float32(sampler.top_p) < 1.0:
        wanted = math.ceil(float(np.float32(sampler.top_p)) * float(sum(weight[token] for token in order)))
        total = 0
        for n, token in enumerate(order, 1):
            total += weight[token]
            if total >= wanted:
                order = order[:n]
                break
    least = math.ceil(float(np.float32(sampler.min_p)) * 2.0**42)
    kept = sorted(token for token in order if weight[token] >= least)
    block = philox((position, slot, index, 0), (seed & 0xFFFFFFFF, seed >> 32))
    target = ((block[0] | block[1] << 32) * sum(weight[token] for token in kept)) >> 64
    for token in kept:
        target -= weight[token]
        if target < 0:
            return token
    raise AssertionError("the random number lies below the total")
