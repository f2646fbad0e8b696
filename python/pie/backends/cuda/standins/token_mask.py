"""`xgrammar.apply_token_bitmask_inplace`."""

from __future__ import annotations

import torch
from torch import Tensor

BITS = 32


def apply_token_bitmask_inplace(
    logits: Tensor, bitmask: Tensor, *, vocab_size: int | None = None, indices: list[int] | None = None
) -> None:
    """Puts minus infinity where the bit of a token is 0.

    `logits` is float32 [R, V], `bitmask` int32 [R, V / 32], token t in bit t % 32 of word t / 32; `indices` are the
    rows that masks are applied to.
    """
    if bitmask.dtype != torch.int32 or (indices is None and len(bitmask) != len(logits)):
        raise ValueError(f"bitmask must be of type int32, a row for each of logits, not {bitmask.dtype} {list(bitmask.shape)}")
    n_tokens = logits.shape[1] if vocab_size is None else vocab_size
    rows = torch.arange(len(logits)) if indices is None else torch.tensor(indices)
    rows = rows.to(logits.device)
    bits = torch.arange(BITS, device=logits.device)
    allowed = ((bitmask[rows][:, :, None] >> bits) & 1).flatten(1)[:, :n_tokens] == 1
    logits[rows] = torch.where(allowed, logits[rows], -torch.inf)
