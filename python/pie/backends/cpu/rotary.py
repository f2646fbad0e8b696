"""Tables of rotation angles."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.models.rotary import amplitude, inverse_frequencies
from pie.models.spec import Rotary

F32: TypeAlias = npt.NDArray[np.float32]


def rotary_tables(rotary: Rotary, head_dim: int, max_positions: int) -> tuple[F32, F32]:
    """Cosines and sines, float32 [positions, D / 2].

    Angles are rounded to float32, as every implementation that models were trained with does; their cosines are taken
    in float64 and rounded once, so that they are the same on every machine.
    """
    frequencies = inverse_frequencies(rotary, head_dim)
    angles = np.arange(max_positions, dtype=np.float32)[:, None] * frequencies
    exact, scale = angles.astype(np.float64), amplitude(rotary)
    return (scale * np.cos(exact)).astype(np.float32), (scale * np.sin(exact)).astype(np.float32)
