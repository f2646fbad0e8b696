"""How fast each pair of elements turns with the position: the formulas of every kind of rotary scaling, in float64."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.models.spec import LinearScaling, Llama3Scaling, Rotary, YarnScaling

F64: TypeAlias = npt.NDArray[np.float64]


def inverse_frequencies(rotary: Rotary, head_dim: int) -> F64:
    """Radians that each pair of elements turns by per position, float64 [D / 2]."""
    plain: F64 = rotary.theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    match rotary.scaling:
        case None:
            return plain
        case LinearScaling(factor):
            return plain / factor
        case Llama3Scaling() as scaling:
            return _llama3(plain, scaling)
        case YarnScaling() as scaling:
            return _yarn(plain, scaling, rotary.theta)


def amplitude(rotary: Rotary) -> float:
    """What cosines and sines are multiplied by."""
    return rotary.scaling.attention_factor if isinstance(rotary.scaling, YarnScaling) else 1.0


def yarn_attention_factor(factor: float, mscale: float | None, mscale_all_dim: float | None) -> float:
    """The attention factor of a config that gives none (arXiv 2309.00071, section 3.4; the quotient is DeepSeek's)."""

    def scale(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    return scale(mscale) / scale(mscale_all_dim) if mscale and mscale_all_dim else scale(1.0)


def _llama3(plain: F64, scaling: Llama3Scaling) -> F64:
    turns = plain * scaling.original_positions / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept: F64 = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return plain * (kept + (1.0 - kept) / scaling.factor)


def _yarn(plain: F64, scaling: YarnScaling, theta: float) -> F64:
    n_pairs = len(plain)

    def index(turns: float) -> float:
        """The pair, as a real number, that turns this often over the original length."""
        return n_pairs * math.log(scaling.original_positions / (turns * 2 * math.pi)) / math.log(theta)

    first, last = index(scaling.beta_fast), index(scaling.beta_slow)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * n_pairs - 1)
    width = last - first if last != first else 0.001
    slowed: F64 = np.clip((np.arange(n_pairs) - first) / width, 0.0, 1.0)
    return plain * ((1.0 - slowed) + slowed / scaling.factor)
