"""`flashinfer.rmsnorm` and `flashinfer.fused_add_rmsnorm`."""

from __future__ import annotations

import torch
from torch import Tensor

from pie.backends.cuda.standins.grids import check_rows
from pie.backends.cuda.standins.sums import paired_sum


def rmsnorm(input: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:  # noqa: A002 - FlashInfer's name
    """The RMS norm of the last axis, in float32, rounded once."""
    check_rows(input)
    x = input.float()
    mean = paired_sum(x * x) / x.shape[-1]
    return (x * torch.rsqrt(mean + eps)[..., None] * weight.float()).to(input.dtype)


def fused_add_rmsnorm(input: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-6) -> None:  # noqa: A002
    """Adds `input` to `residual`, and puts the norm of that into `input`."""
    check_rows(input)
    residual.add_(input)
    input.copy_(rmsnorm(residual, weight, eps))
