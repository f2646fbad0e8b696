"""`flashinfer.silu_and_mul`."""

from __future__ import annotations

from torch import Tensor

from pie.backends.cuda.standins.grids import check_rows
from pie.backends.cuda.standins.sums import exponential


def silu_and_mul(input: Tensor) -> Tensor:  # noqa: A002 - FlashInfer's name
    """`silu(a) * b` of the halves a and b of the last axis, in float32, rounded once."""
    check_rows(input)
    gate, up = (half.contiguous().float() for half in input.chunk(2, dim=-1))
    return (gate / (exponential(-gate) + 1.0) * up).to(input.dtype)
