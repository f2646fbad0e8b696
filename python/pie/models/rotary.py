"""How fast each pair of elements turns with the position: the formulas of every kind of rotary scaling, in float32.

Models were trained with frequencies that float32 arithmetic gave, so each operation here is one of float32, in the
order in which transformers (`modeling_rope_utils.py`) does it on torch. Frequencies of float64 that are rounded once
differ in a third of the pairs by the last bit: after 8,192 positions that moves logits by 1e-3 of their spread. Powers
are rounded correctly, as the C library's `powf` does it; torch's vectors differ from that in one pair of forty by the
last bit.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.models.spec import LinearScaling, Llama3Scaling, Rotary, YarnScaling

F32: TypeAlias = npt.NDArray[np.float32]


def inverse_frequencies(rotary: Rotary, head_dim: int) -> F32:
    """Radians that each pair of elements turns by per position, float32 [D / 2]."""
    powers = _powers(rotary.theta, head_dim)
    match rotary.scaling:
        case None:
            return _over(1.0, powers)
        case LinearScaling(factor):
            return _over(1.0, powers) / np.float32(factor)
        case Llama3Scaling() as scaling:
            return _llama3(_over(1.0, powers), scaling)
        case YarnScaling() as scaling:
            return _yarn(powers, scaling, rotary.theta)


def _powers(theta: float, head_dim: int) -> F32:
    """`theta ** (2i / D)`. The double is nearly exact, so that rounding it is rounding the power."""
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    base = float(np.float32(theta))
    return np.array([base ** float(exponent) for exponent in exponents], dtype=np.float32)


def _over(number: float, divisors: F32) -> F32:
    """A number over each divisor, as torch divides a number by a tensor: it multiplies by the reciprocals."""
    return np.float32(1) / divisors * np.float32(number)


def amplitude(rotary: Rotary) -> float:
    """What cosines and sines are multiplied by."""
    return rotary.scaling.attention_factor if isinstance(rotary.scaling, YarnScaling) else 1.0


def yarn_attention_factor(factor: float, mscale: float | None, mscale_all_dim: float | None) -> float:
    """The attention factor of a config that gives none (arXiv 2309.00071, section 3.4; the quotient is DeepSeek's)."""

    def scale(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    return scale(mscale) / scale(mscale_all_dim) if mscale and mscale_all_dim else scale(1.0)


def _llama3(plain: F32, scaling: Llama3Scaling) -> F32:
    one, factor = np.float32(1), np.float32(scaling.factor)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    lengths = _over(2 * math.pi, plain)
    kept = (_over(scaling.original_positions, lengths) - np.float32(low)) / np.float32(high - low)
    between = (one - kept) * plain / factor + kept * plain
    is_long = lengths > np.float32(scaling.original_positions / low)
    is_short = lengths < np.float32(scaling.original_positions / high)
    scaled: F32 = np.where(is_long, plain / factor, np.where(is_short, plain, between))
    return scaled


def _yarn(powers: F32, scaling: YarnScaling, theta: float) -> F32:
    n_pairs = len(powers)

    def index(turns: float) -> float:
        """The pair, as a real number, that turns this often over the original length."""
        return n_pairs * math.log(scaling.original_positions / (turns * 2 * math.pi)) / math.log(theta)

    first, last = index(scaling.beta_fast), index(scaling.beta_slow)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    # The end is bounded by the width of a head and not by its pairs, as in the paper's code: the ramp may end behind
    # them.
    first, last = max(first, 0), min(last, 2 * n_pairs - 1)
    width = last - first if last != first else 0.001
    ramp = (np.arange(n_pairs, dtype=np.float32) - np.float32(first)) / np.float32(width)
    one = np.float32(1)
    kept = one - np.clip(ramp, np.float32(0), one)
    slowed: F32 = _over(1.0, np.float32(scaling.factor) * powers) * (one - kept)
    frequencies: F32 = slowed + _over(1.0, powers) * kept
    return frequencies
