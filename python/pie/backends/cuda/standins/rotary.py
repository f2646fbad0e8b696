"""`flashinfer.apply_rope_with_cos_sin_cache_inplace`."""

from __future__ import annotations

import torch
from torch import Tensor

from pie.backends.cuda.standins.grids import check_rows


def apply_rope_with_cos_sin_cache_inplace(
    positions: Tensor, query: Tensor, key: Tensor, head_size: int, cos_sin_cache: Tensor, is_neox: bool = True
) -> None:
    """Turns the halves of each head against each other, in float32.

    `positions` is [T], `query` [T, H * D], `key` [T, G * D], `cos_sin_cache` float32 [positions, D]: cosines, then
    sines.
    """
    if not is_neox:
        raise NotImplementedError("heads are rotated by halves")
    check_rows(positions)
    cos, sin = cos_sin_cache[positions.long()][:, None, :].chunk(2, dim=-1)
    for heads in (query, key):
        x = heads.reshape(len(heads), -1, head_size).float()
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
        heads.copy_(turned.flatten(-2))
