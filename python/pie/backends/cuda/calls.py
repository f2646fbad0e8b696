"""The calls that a step makes: FlashInfer's, xgrammar's and the kernels of `kernels`, or their stand-ins in torch.

Both have the same parameters, so that what runs on a GPU is what is tested without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pie.backends.cuda import standins
from pie.backends.cuda.sampling import Arithmetic, TorchArithmetic


@dataclass(frozen=True)
class Calls:
    """Every function that a step calls beside plain operations of torch, by the library's name."""

    rmsnorm: Callable[..., Tensor]
    fused_add_rmsnorm: Callable[..., None]
    silu_and_mul: Callable[..., Tensor]
    apply_rope_with_cos_sin_cache_inplace: Callable[..., None]
    append_paged_kv_cache: Callable[..., None]
    merge_state_in_place: Callable[..., None]
    attention: Callable[..., Any]
    """`BatchPrefillWithPagedKVCacheWrapper`."""
    apply_token_bitmask_inplace: Callable[..., None]
    linear: Callable[..., Tensor]
    """`linear(x, weight, bias, dtype, out=None)`: `x W^T + b` of x [T, K], weight [N, K] and bias [N] or None.

    It is rounded to the dtype once, and lies in `out` where that is given.
    """
    choose_linears: Callable[[Sequence[Tensor]], None]
    """Chooses how linears with weights of these shapes are computed, where that is chosen; no bit depends on it."""
    arithmetic: Arithmetic


def standin_calls() -> Calls:
    """The stand-ins, on any device."""
    return Calls(
        rmsnorm=standins.rmsnorm,
        fused_add_rmsnorm=standins.fused_add_rmsnorm,
        silu_and_mul=standins.silu_and_mul,
        apply_rope_with_cos_sin_cache_inplace=standins.apply_rope_with_cos_sin_cache_inplace,
        append_paged_kv_cache=standins.append_paged_kv_cache,
        merge_state_in_place=standins.merge_state_in_place,
        attention=standins.BatchPrefillWithPagedKVCacheWrapper,
        apply_token_bitmask_inplace=standins.apply_token_bitmask_inplace,
        linear=standins.linear,
        choose_linears=choose_nothing,
        arithmetic=TorchArithmetic(),
    )


def library_calls(*, deterministic: bool) -> Calls:
    """FlashInfer, xgrammar and the Triton kernels of this back end, on a CUDA device."""
    # Each is installed with the extra `cuda` alone, and takes seconds to import.
    import flashinfer  # noqa: PLC0415
    import xgrammar  # noqa: PLC0415

    from pie.backends.cuda import kernels  # noqa: PLC0415

    # Where cuBLAS spreads a sum over several blocks, it would add their parts as 16 bits.
    matmul: Any = torch.backends.cuda.matmul
    matmul.allow_bf16_reduced_precision_reduction = matmul.allow_fp16_reduced_precision_reduction = False
    linears = kernels.Linears()
    return Calls(
        rmsnorm=flashinfer.rmsnorm,
        fused_add_rmsnorm=flashinfer.fused_add_rmsnorm,
        silu_and_mul=flashinfer.silu_and_mul,
        apply_rope_with_cos_sin_cache_inplace=flashinfer.apply_rope_with_cos_sin_cache_inplace,
        append_paged_kv_cache=flashinfer.append_paged_kv_cache,
        merge_state_in_place=flashinfer.merge_state_in_place,
        attention=flashinfer.BatchPrefillWithPagedKVCacheWrapper,
        apply_token_bitmask_inplace=xgrammar.apply_token_bitmask_inplace,
        linear=linears if deterministic else fastest_linear,
        choose_linears=linears.choose if deterministic else choose_nothing,
        arithmetic=kernels.KernelArithmetic(),
    )


def fastest_linear(x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, out: Tensor | None = None) -> Tensor:
    """By cuBLAS, which orders its sums by the shape of the batch: never where no batch may change a bit."""
    if dtype == x.dtype:
        y = torch.nn.functional.linear(x, weight, bias)
        return y if out is None else out.copy_(y)
    # Its sums are in float32. A linear of 16 bits would round them, and what is added to them or drawn from is wanted
    # whole.
    wide: Any = torch.mm
    whole: Tensor = wide(x, weight.t(), out_dtype=dtype) if out is None else wide(x, weight.t(), out_dtype=dtype, out=out)
    return whole if bias is None else whole.add_(bias.to(dtype))


def choose_nothing(weights: Sequence[Tensor]) -> None:
    """Where there is one way, or the library chooses."""
