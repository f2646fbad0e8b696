"""Sums in a fixed order, by additions of whole tensors: each element is added to by itself, whatever lies beside it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

_PIECE = 1 << 21
"""Products that are held at once."""


def paired_sum(x: Tensor) -> Tensor:
    """The sum of the last axis: neighbours are added, then neighbours of those, and so on.

    Zeros behind the last element change no bit of it.
    """
    length = x.shape[-1]
    x = pad(x, (0, (1 << max(0, length - 1).bit_length()) - length))
    while x.shape[-1] > 1:
        x = x[..., 0::2] + x[..., 1::2]
    return x[..., 0]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, out: Tensor | None = None) -> Tensor:
    """`x W^T + b` of x [T, K] and weight [N, K], in float32, rounded once to `dtype` [T, N], in `out` if given."""
    matrix = weight.float()
    n_rows = max(1, _PIECE // matrix.numel())
    pieces = [paired_sum(x[first : first + n_rows, None, :].float() * matrix) for first in range(0, len(x), n_rows)]
    y = torch.cat(pieces) if pieces else matrix.new_zeros(0, len(matrix))
    y = (y if bias is None else y + bias.float()).to(dtype)
    return y if out is None else out.copy_(y)


def exponential(x: Tensor) -> Tensor:
    """`exp(x)`, float32, rounded from doubles: vectors and single numbers differ in bits that the rounding drops."""
    return torch.exp(x.double()).float()
