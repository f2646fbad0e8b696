"""Kernels in Triton: linears whose sums no batch reorders, and the two functions that tokens are drawn by.

They run on a GPU, or in Triton's interpreter. Symbols: T tokens, K inputs, N outputs, R rows, V vocabulary, D draws.
"""

# What Triton compiles is not typed.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.errors import OutOfResources

_BLOCK_M, _BLOCK_K = 64, 64
_MANY_OUTPUTS = 8192
_GROUP_M = 8
"""Tiles of tokens that follow each other over the same weights, which then lie in the cache."""
_DRAWING_BLOCK = 1024
_ALIGNED_BYTES = 16
_TIMES = 10
"""That a call is timed."""


# What changes from batch to batch is not compiled for: a step would wait for the compiler, and bits might depend on it.
@triton.jit(do_not_specialize=["n_tokens"])
def _linear(  # noqa: PLR0913, PLR0917, ANN202 - what a kernel is given
    x, weight, bias, y, n_tokens, n_outputs, n_inputs,  # noqa: ANN001 - pointers and sizes
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """A tile of outputs. Its sums go over the inputs in one order, whatever the number of tokens."""
    tile = tl.program_id(0)
    m_tiles, n_tiles = (n_tokens + BLOCK_M - 1) // BLOCK_M, (n_outputs + BLOCK_N - 1) // BLOCK_N
    group = tile // (GROUP_M * n_tiles)
    in_group = tl.minimum(m_tiles - group * GROUP_M, GROUP_M)
    m_tile = group * GROUP_M + (tile % (GROUP_M * n_tiles)) % in_group
    n_tile = (tile % (GROUP_M * n_tiles)) // in_group
    m = m_tile * BLOCK_M + tl.arange(0, BLOCK_M)
    n = n_tile * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.full((BLOCK_M, BLOCK_N), 0.0, dtype=tl.float32)
    for first in range(0, n_inputs, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        inside = k[None, :] < n_inputs
        a = tl.load(x + m[:, None].to(tl.int64) * n_inputs + k[None, :], mask=inside & (m[:, None] < n_tokens), other=0.0)
        b = tl.load(weight + n[:, None].to(tl.int64) * n_inputs + k[None, :], mask=inside & (n[:, None] < n_outputs), other=0.0)
        sums = tl.dot(a, tl.trans(b), sums, input_precision="ieee")
    if HAS_BIAS:
        sums += tl.load(bias + n, mask=n < n_outputs, other=0.0).to(tl.float32)[None, :]
    place = y + m[:, None].to(tl.int64) * n_outputs + n[None, :]
    tl.store(place, sums.to(y.dtype.element_ty), mask=(m[:, None] < n_tokens) & (n[None, :] < n_outputs))


class Tile(NamedTuple):
    """How a linear is computed. Tokens of a tile and inputs of a step are the same for all: they order the sums."""

    n_outputs: int
    n_warps: int
    n_stages: int


_NARROW, _WIDE = Tile(32, 4, 3), Tile(128, 8, 3)
"""Of few outputs where a linear has few, so that all processors have one."""
TILES = (_NARROW, _WIDE, Tile(64, 4, 4), Tile(128, 4, 3))
"""Those that are measured."""
_MEASURED_TOKENS = (1, 64, 70)
"""Of the batches that bits are compared by; the time of the second one counts."""


class Linears:
    """`x W^T + b` of x [T, K] and weight [N, K], summed in float32, rounded to `dtype`, in `out` where that is given.

    The tile follows from the shape of the weight alone.
    """

    def __init__(self, tiles: Sequence[Tile] = TILES) -> None:
        self._tiles = tiles
        self.chosen: dict[tuple[int, int], Tile] = {}
        """By outputs and inputs; others have one by a rule."""

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, out: Tensor | None = None) -> Tensor:
        """See `Linears`."""
        n_outputs, n_inputs = weight.shape
        tile = self.chosen.get((n_outputs, n_inputs)) or by_rule(n_outputs)
        return linear_by(tile, x, weight, bias, dtype, out)

    def choose(self, weights: Sequence[Tensor], seconds: Callable[[Callable[[], object]], float] | None = None) -> None:
        """Measures the tiles for weights of these shapes, and chooses the fastest of those that give the same bits.

        That of the rule is the measure of bits, so that no answer depends on what was measured, on which machine, in
        which run. `seconds` takes the time of a call.
        """
        for weight in weights:
            n_outputs, n_inputs = weight.shape
            if (n_outputs, n_inputs) not in self.chosen:
                self.chosen[n_outputs, n_inputs] = self._fastest(weight, seconds or device_seconds)

    def _fastest(self, weight: Tensor, seconds: Callable[[Callable[[], object]], float]) -> Tile:
        usual = by_rule(len(weight))
        generator = torch.Generator(weight.device).manual_seed(1)
        probes = [torch.randn((n, weight.shape[1]), generator=generator, device=weight.device).to(weight.dtype) for n in _MEASURED_TOKENS]

        def results(tile: Tile) -> list[Tensor]:
            return [linear_by(tile, x, weight, None, torch.float32) for x in probes]

        expected = results(usual)
        times = {usual: seconds(lambda: linear_by(usual, probes[1], weight, None, weight.dtype))}
        for tile in self._tiles:
            if tile in times:
                continue
            try:
                found = results(tile)
            except OutOfResources:
                continue  # the device has less memory for a block than this tile takes
            if all(torch.equal(one, other) for one, other in zip(found, expected, strict=True)):
                times[tile] = seconds(partial(linear_by, tile, probes[1], weight, None, weight.dtype))
        return min(times, key=times.__getitem__)


def by_rule(n_outputs: int) -> Tile:
    """The tile of a linear that nothing was measured for."""
    return _WIDE if n_outputs >= _MANY_OUTPUTS else _NARROW


def linear_by(  # noqa: PLR0913, PLR0917 - a linear, and how
    tile: Tile, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, out: Tensor | None = None
) -> Tensor:
    """See `Linears`."""
    n_tokens, n_outputs = len(x), len(weight)
    y = torch.empty((n_tokens, n_outputs), dtype=dtype, device=x.device) if out is None else out
    grid = (triton.cdiv(n_tokens, _BLOCK_M) * triton.cdiv(n_outputs, tile.n_outputs),)
    _linear[grid](
        _aligned(x), weight, weight if bias is None else bias, y, n_tokens, n_outputs, weight.shape[1],
        HAS_BIAS=bias is not None, BLOCK_M=_BLOCK_M, BLOCK_N=tile.n_outputs, BLOCK_K=_BLOCK_K, GROUP_M=_GROUP_M,
        num_warps=tile.n_warps, num_stages=tile.n_stages, enable_fp_fusion=False,
    )  # fmt: skip
    return y


def _aligned(x: Tensor) -> Tensor:
    """The same at an address that several numbers can be read from at once, as what torch allocates is."""
    x = x.contiguous()
    return x if x.data_ptr() % _ALIGNED_BYTES == 0 else x.clone()


def device_seconds(call: Callable[[], object]) -> float:
    """The time of a call on the device, the least of some."""
    events: Any = torch.cuda.Event
    call()
    found: list[float] = []
    for _ in range(_TIMES):
        start, end = events(enable_timing=True), events(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end) / 1000)
    return min(found)


# A part of the rows may begin anywhere in these.
@triton.jit(do_not_specialize_on_alignment=["top", "temperature"])
def _weights(logits, top, temperature, constants, out, n_tokens, BLOCK: tl.constexpr):  # noqa: PLR0913, PLR0917, ANN001, ANN202, N803
    """The weights of a part of a row. Constants are loaded: in the text of a kernel they would be of 32 bits."""
    row = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = token < n_tokens
    logit = tl.load(logits + row * n_tokens + token, mask=inside, other=0.0).to(tl.float64)
    x = (logit - tl.load(top + row).to(tl.float64)) / tl.load(temperature + row).to(tl.float64)
    least, log2_e, rounder, ln2_high, ln2_low, whole = (
        tl.load(constants), tl.load(constants + 1), tl.load(constants + 2), tl.load(constants + 3), tl.load(constants + 4),
        tl.load(constants + 5),
    )  # fmt: skip
    x = tl.where(x > least, x, least)
    n = (x * log2_e + rounder) - rounder
    rest = (x - n * ln2_high) - n * ln2_low
    total = rest * 0.0
    for index in tl.static_range(14):
        total = total * rest + tl.load(constants + 6 + index)
    total = total * ((n.to(tl.int64) + 1065) << 52).to(tl.float64, bitcast=True)
    weight = (total + whole).to(tl.int64, bitcast=True) - whole.to(tl.int64, bitcast=True)
    tl.store(out + row * n_tokens + token, weight, mask=inside)


@triton.jit(do_not_specialize=["n_draws"])
def _random_bits(keys, out, n_draws, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202, N803
    """Philox4x32-10 of a part of the keys."""
    draw = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = draw < n_draws
    key_0 = tl.load(keys + 5 * draw, mask=inside, other=0).to(tl.uint32)
    key_1 = tl.load(keys + 5 * draw + 1, mask=inside, other=0).to(tl.uint32)
    a = tl.load(keys + 5 * draw + 2, mask=inside, other=0).to(tl.uint32)
    b = tl.load(keys + 5 * draw + 3, mask=inside, other=0).to(tl.uint32)
    c = tl.load(keys + 5 * draw + 4, mask=inside, other=0).to(tl.uint32)
    d = c ^ c
    for _ in tl.static_range(10):
        left, right = a.to(tl.uint64) * 0xD2511F53, c.to(tl.uint64) * 0xCD9E8D57
        a, c = (right >> 32).to(tl.uint32) ^ b ^ key_0, (left >> 32).to(tl.uint32) ^ d ^ key_1
        b, d = right.to(tl.uint32), left.to(tl.uint32)
        key_0, key_1 = key_0 + 0x9E3779B9, key_1 + 0xBB67AE85
    tl.store(out + 2 * draw, a.to(tl.int64), mask=inside)
    tl.store(out + 2 * draw + 1, b.to(tl.int64), mask=inside)


class KernelArithmetic:
    """Both functions by kernels; see `pie.backends.cuda.sampling.Arithmetic`."""

    def __init__(self) -> None:
        self._constants: dict[torch.device, Tensor] = {}

    def weights(self, logits: Tensor, top: Tensor, temperature: Tensor) -> Tensor:
        """See `Arithmetic`. No product is fused with a sum."""
        out = torch.empty(logits.shape, dtype=torch.int64, device=logits.device)
        grid = (len(logits), triton.cdiv(logits.shape[1], _DRAWING_BLOCK))
        constants = self._constants.get(logits.device)
        if constants is None:
            constants = self._constants[logits.device] = torch.tensor(_CONSTANTS, dtype=torch.float64).to(logits.device)
        _weights[grid](logits.contiguous(), top, temperature, constants, out, logits.shape[1], BLOCK=_DRAWING_BLOCK, enable_fp_fusion=False)
        return out

    def random_bits(self, keys: Tensor) -> Tensor:
        """See `Arithmetic`."""
        out = torch.empty((len(keys), 2), dtype=torch.int64, device=keys.device)
        _random_bits[(triton.cdiv(len(keys), _DRAWING_BLOCK),)](
            keys.contiguous(), out, len(keys), BLOCK=_DRAWING_BLOCK, enable_fp_fusion=False
        )
        return out


_CONSTANTS = [
    -40.0,
    math.log2(math.e),
    1.5 * 2.0**52,
    6.931471803691238e-1,
    1.9082149292705877e-10,
    2.0**52,
    *(1.0 / math.factorial(n) for n in range(13, -1, -1)),
]
"""Of the weights, as `pie.backends.cuda.sampling` has them: the least distance, log2 e, the rounder, ln 2 in two parts,
what leaves a whole number in the low bits, the inverse factorials.
"""
