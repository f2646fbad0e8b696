"""The sampler of `rust/core/src/sampling` on tensors: the same token for the same logits, bit for bit.

Every operation on doubles is one of IEEE, made by itself: a product that is fused with a sum is rounded once where the
rule rounds twice. Everything behind the weights is whole numbers, so that no order of summation matters. Symbols: R
rows, V vocabulary, D draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pie.backends.cuda.sampler_words import MIN_P, POSITION, SEED_HIGH, SEED_LOW, TEMPERATURE, TOP_K, TOP_P

NOTHING = -1
"""In place of a token, int32: a logit of its row is not finite, or the mask allows none. It is the NOT_FINITE of a
batch's answer.
"""
MAX_VOCABULARY = 1 << 20
"""Sums of as many weights stay below 2^62, so that signed words hold them."""

_ONE = 1 << 42
"""The weight of the most probable token."""
_INVERSE_FACTORIALS = [1.0 / math.factorial(n) for n in range(13, -1, -1)]
_LN2_HIGH, _LN2_LOW = 6.931471803691238e-1, 1.9082149292705877e-10
_ROUNDER = 1.5 * 2.0**52
"""Adding and subtracting it rounds to a whole number, ties to even."""
_WHOLE = 2.0**52
"""Adding it leaves a whole number below 2^52 in the low bits."""
_WHOLE_BITS = (1023 + 52) << 52
_LEAST = -40.0
"""Below it a weight is 0."""
_WORD = 0xFFFFFFFF
CHUNK = 1 << 22
"""Elements [rows, V] that are worked on at once: their weights and ranks take some hundred bytes each."""


class Arithmetic(Protocol):
    """The two functions that a device has kernels of its own for."""

    def weights(self, logits: Tensor, top: Tensor, temperature: Tensor) -> Tensor:
        """`round(2^42 * exp((logit - top) / temperature))`, int64 [R, V], of float32 [R, V], [R] and [R]."""

    def random_bits(self, keys: Tensor) -> Tensor:
        """The first two words of Philox blocks, int64 [D, 2], low one first, for `keys` as in `Draws`."""


@dataclass(frozen=True, eq=False)
class Draws:
    """How tokens are drawn from N of the R rows, on the device; D of them in all, row by row."""

    row: Tensor
    """Which rows, int64 [N]."""
    temperature: Tensor
    """float32 [N], above 0."""
    top_k: Tensor
    """int64 [N]; 0: all."""
    top_p: Tensor
    """float32 [N]; 1: all."""
    min_p: Tensor
    """float32 [N]; 0: all."""
    keys: Tensor
    """int64 [D, 5]: the two words of the seed, low one first, position, slot, draw."""
    n_draws: Sequence[int]
    """Draws from each row, at least one; they add up to D."""
    is_filtered: bool
    """Whether any has top-k or top-p, for which tokens are ranked."""
    owner: Tensor | None = None
    """Which of the N rows each draw is from, int64 [D]; None: each has one."""
    nth: Tensor | None = None
    """Which draw of its row each is, int64 [D]; None: each row has one."""

    @classmethod
    def of(  # noqa: PLR0913 - what a batch says of its rows
        cls,
        row: Tensor,
        sampler: Tensor,
        slot: Tensor,
        n_draws: Sequence[int],
        *,
        is_filtered: bool,
        owner: Tensor | None = None,
        nth: Tensor | None = None,
    ) -> Draws:
        """By the words of a batch, int32: `sampler` [N, SAMPLER_WORDS] and `slot` [N]."""
        temperature, top_p, min_p = (sampler[:, column].contiguous().view(torch.float32) for column in (TEMPERATURE, TOP_P, MIN_P))
        words = [column.long() & _WORD for column in (*(sampler[:, column] for column in (SEED_LOW, SEED_HIGH, POSITION)), slot)]
        if owner is not None:
            words = [column[owner] for column in words]
        keys = torch.stack([*words, torch.zeros_like(words[0]) if nth is None else nth], dim=1)
        top_k = sampler[:, TOP_K].long() & _WORD
        return cls(row, temperature, top_k, top_p, min_p, keys, n_draws, is_filtered, owner, nth)


def drawable(logits: Tensor, masked: Tensor) -> Tensor:
    """Which rows have finite logits alone and a token that is allowed, bool [R].

    `masked` are the logits with minus infinity where a token is forbidden.
    """
    finite = logits.isfinite().all(dim=1)
    return finite if masked is logits else finite & (masked.amax(dim=1) > -torch.inf)


def greatest(masked: Tensor, is_drawable: Tensor) -> Tensor:
    """The tokens with the greatest logit, the lowest ids among equals, int32 [R]; NOTHING where none can be drawn."""
    return torch.where(is_drawable, masked.argmax(dim=1), NOTHING).to(torch.int32)


def draw(masked: Tensor, is_drawable: Tensor, draws: Draws, arithmetic: Arithmetic) -> Tensor:
    """The tokens that are drawn, int32 [D]; NOTHING where none can be.

    `masked` is float32 [R, V], minus infinity where a token is forbidden; `is_drawable` bool [R].
    """
    per_chunk = max(1, CHUNK // max(masked.shape[1], *draws.n_draws, 1))
    bits, n_done, drawn = arithmetic.random_bits(draws.keys), 0, []
    for first in range(0, len(draws.row), per_chunk):
        chunk = slice(first, first + per_chunk)
        of_chunk = slice(n_done, n_done + sum(draws.n_draws[chunk]))
        drawn.append(_draw(masked, is_drawable, draws, chunk, of_chunk, bits[of_chunk], arithmetic))
        n_done = of_chunk.stop
    return torch.cat(drawn) if drawn else torch.empty(0, dtype=torch.int32, device=masked.device)


def _draw(  # noqa: PLR0913, PLR0917 - the rows, the draws, which of them, and by what
    masked: Tensor, is_drawable: Tensor, draws: Draws, chunk: slice, of_chunk: slice, bits: Tensor, arithmetic: Arithmetic
) -> Tensor:
    """The draws `of_chunk`, which are those from the rows of `chunk`."""
    rows, can_draw = masked[draws.row[chunk]], is_drawable[draws.row[chunk]]
    # A row that nothing is drawn from may hold anything; what is computed of it has to stay within the vocabulary.
    # Zeros lose their sign, so that a sort does not tell them apart.
    rows = torch.where(can_draw[:, None], rows, 0.0) + 0.0
    best = rows.argmax(dim=1)
    top = rows.gather(1, best[:, None])[:, 0]
    weights = arithmetic.weights(rows, top, draws.temperature[chunk])
    if draws.is_filtered:
        weights = _ranked(rows, weights, draws.top_k[chunk], draws.top_p[chunk])
    least = torch.ceil(draws.min_p[chunk].double() * float(_ONE)).to(torch.int64)
    sums = torch.where(weights >= least[:, None], weights, 0).cumsum(dim=1)
    if draws.owner is None or draws.nth is None:
        found = torch.searchsorted(sums, _share(bits, sums[:, -1])[:, None], right=True)[:, 0]
    else:
        # How many draws a row has is known to the host alone: what the device would have to say is waited for.
        owner, nth = draws.owner[of_chunk] - chunk.start, draws.nth[of_chunk]
        shares = sums.new_zeros((len(rows), max(draws.n_draws[chunk])))
        shares[owner, nth] = _share(bits, sums[:, -1][owner])
        found = torch.searchsorted(sums, shares, right=True)[owner, nth]
        can_draw, best = can_draw[owner], best[owner]
    # Nothing is left of a row whose least is above all its weights.
    return torch.where(can_draw, torch.where(found < masked.shape[1], found, best), NOTHING).to(torch.int32)


def _ranked(rows: Tensor, weights: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """The weights of those that top-k and top-p leave, 0 for all others."""
    order = torch.sort(rows, dim=1, descending=True, stable=True).indices
    by_rank = weights.gather(1, order)
    ranks = torch.arange(rows.shape[1], device=rows.device)
    is_kept = (ranks < top_k[:, None]) | (top_k == 0)[:, None]
    by_rank = torch.where(is_kept, by_rank, 0)
    sums = by_rank.cumsum(dim=1)
    total = sums[:, -1]
    wanted = torch.minimum(torch.ceil(top_p.double() * total.double()).to(torch.int64), total)
    # The fewest whose weights reach what is wanted, the first at least: those before which less is reached.
    reached = sums - by_rank
    is_nucleus = (reached < wanted[:, None]) | (ranks == 0) | (top_p >= 1.0)[:, None]
    return torch.zeros_like(weights).scatter_(1, order, torch.where(is_nucleus, by_rank, 0))


def _share(bits: Tensor, total: Tensor) -> Tensor:
    """`floor(bits * total / 2^64)` for `bits` [D, 2] and `total` below 2^62, [D] or one, by limbs of 16 bits."""
    low, high = bits[:, 0], bits[:, 1]
    left = [low & 0xFFFF, low >> 16, high & 0xFFFF, high >> 16]
    right = [(total >> shift) & 0xFFFF for shift in (0, 16, 32, 48)]
    columns = [sum(left[i] * right[n - i] for i in range(max(0, n - 3), min(n, 3) + 1)) for n in range(7)]
    carry = torch.zeros_like(low)
    for column in columns[:4]:
        carry = (carry + column) >> 16
    return carry + columns[4] + (columns[5] << 16) + (columns[6] << 32)


class TorchArithmetic:
    """Both functions by operations of torch, one by one."""

    def weights(self, logits: Tensor, top: Tensor, temperature: Tensor) -> Tensor:
        """See `Arithmetic`."""
        x = (logits.double() - top.double()[:, None]) / temperature.double()[:, None]
        x = torch.where(x > _LEAST, x, _LEAST)
        n = x * math.log2(math.e) + _ROUNDER - _ROUNDER
        rest = x - n * _LN2_HIGH - n * _LN2_LOW
        total = torch.zeros_like(x)
        for coefficient in _INVERSE_FACTORIALS:
            total = total * rest + coefficient
        # 2^(n + 42), by the bits of its exponent.
        total = total * ((n.to(torch.int64) + (42 + 1023)) << 52).view(torch.float64)
        return (total + _WHOLE).view(torch.int64) - _WHOLE_BITS

    def random_bits(self, keys: Tensor) -> Tensor:
        """See `Arithmetic`. Signed words wrap as unsigned ones do, and a shift is masked."""
        key_0, key_1, a, b, c = keys.unbind(dim=1)
        d = torch.zeros_like(a)
        for _ in range(10):
            left, right = a * 0xD2511F53, c * 0xCD9E8D57
            a, b, c, d = ((right >> 32) & _WORD) ^ b ^ key_0, right & _WORD, ((left >> 32) & _WORD) ^ d ^ key_1, left & _WORD
            key_0, key_1 = (key_0 + 0x9E3779B9) & _WORD, (key_1 + 0xBB67AE85) & _WORD
        return torch.stack([a, b], dim=1)
