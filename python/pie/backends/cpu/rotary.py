"""Tables of rotation angles."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.models.spec import Rotary

F32: TypeAlias = npt.NDArray[np.float32]


def rotary_tables(rotary: Rotary, head_dim: int, max_positions: int) -> tuple[F32, F32]:
    """Cosines and sines, float32 [positions, D / 2].

    Angles are rounded to float32, as every implementation that models were trained with does; their cosines are taken in
    float64 and rounded once, so that they are the same on every machine.
    """
    pairs = np.arange(0, head_dim, 2, dtype=np.float64)
    frequencies = (1.0 / rotary.theta ** (pairs / head_dim)).astype(np.float32)
    angles = np.arange(max_positions, dtype=np.float32)[:, None] * frequencies
    exact = angles.astype(np.float64)
    return np.cos(exact).astype(np.float32), np.sin(exact).astype(np.float32)
