"""`flashinfer.merge_state_in_place`."""

from __future__ import annotations

import torch
from torch import Tensor

from pie.backends.cuda.standins.grids import check_rows


def merge_state_in_place(v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Tensor | None = None) -> None:
    """Merges attention over some slots with attention over others, in float32, rounded once.

    `v` and `v_other` are [T, H, D], `s` and `s_other` the logarithms to base 2 of their sums, float32 [T, H]; where
    `mask`, bool [T], is false, nothing is merged, whatever the other one holds.
    """
    check_rows(v)
    top = torch.maximum(s, s_other)
    own, other = torch.exp2(s - top), torch.exp2(s_other - top)
    total = own + other
    merged = ((own / total)[..., None] * v.float() + (other / total)[..., None] * v_other.float()).to(v.dtype)
    sums = torch.log2(total) + top
    v.copy_(merged if mask is None else torch.where(mask[:, None, None], merged, v))
    s.copy_(sums if mask is None else torch.where(mask[:, None], sums, s))
