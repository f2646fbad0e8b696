"""Sums in a fixed order, by additions of whole tensors: each element is added to by itself, whatever lies beside it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

PIECE = 1 << 21
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
    per_part = max(1, PIECE // weight.shape[1])
    parts = [_products(x, part) for part in torch.split(weight, per_part)]
    y = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    y = (y if bias is None else y + bias.float()).to(dtype)
    return y if out is None else out.copy_(y)


def _products(x: Tensor, weight: Tensor) -> Tensor:
    """`x W^T` of some outputs, float32; each by itself, so that it does not matter which are computed together."""
    matrix = weight.float()
    n_rows = max(1, PIECE // matrix.numel())
    pieces = [paired_sum(x[first : first + n_rows, None, :].float() * matrix) for first in range(0, len(x), n_rows)]
    return torch.cat(pieces) if pieces else matrix.new_zeros(0, len(matrix))


def exponential(x: Tensor) -> Tensor:
    """`exp(x)`, float32, rounded from doubles: vectors and single numbers differ in bits that the rounding drops."""
    return torch.exp(x.double()).float()
