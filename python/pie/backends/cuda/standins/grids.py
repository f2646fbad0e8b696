"""What a kernel of a library refuses before it runs."""

from __future__ import annotations

from torch import Tensor


def check_rows(x: Tensor) -> None:
    """Raises RuntimeError where there is no row.

    The libraries launch a block for each row, or for some, and a grid without a block is a mistake in CUDA.
    """
    if not len(x):
        raise RuntimeError("CUDA error: invalid configuration argument (a kernel without rows)")
