"""Which linears a model has, and that none rounds twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pie.backends.cuda import kernels
from pie.backends.cuda.calls import choose_nothing, fastest_linear, library_calls


@pytest.fixture
def _libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Packages that hold the names that are called, and the settings of torch as they are without this back end."""
    names = {
        "flashinfer": (
            "rmsnorm", "fused_add_rmsnorm", "silu_and_mul", "apply_rope_with_cos_sin_cache_inplace", "append_paged_kv_cache",
            "merge_state_in_place", "BatchPrefillWithPagedKVCacheWrapper",
        ),
        "xgrammar": ("apply_token_bitmask_inplace",),
    }  # fmt: skip
    for package, functions in names.items():
        module = ModuleType(package)
        for function in functions:
            setattr(module, function, object())
        monkeypatch.setitem(sys.modules, package, module)
    matmul = torch.backends.cuda.matmul
    before = [getattr(matmul, setting) for setting in SETTINGS]
    for setting in SETTINGS:
        setattr(matmul, setting, True)
    yield
    for setting, value in zip(SETTINGS, before, strict=True):
        setattr(matmul, setting, value)


SETTINGS = ("allow_bf16_reduced_precision_reduction", "allow_fp16_reduced_precision_reduction")


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.usefixtures("_libraries")
def test_cublas_is_called_only_where_bits_may_depend_on_the_batch(*, deterministic: bool) -> None:
    calls = library_calls(deterministic=deterministic)
    assert isinstance(calls.linear, kernels.Linears) == deterministic
    assert (calls.linear is fastest_linear) == (not deterministic)
    assert (calls.choose_linears is choose_nothing) == (not deterministic)
    # In both, for what a split sum of cuBLAS is rounded to is a setting of the whole process.
    assert [getattr(torch.backends.cuda.matmul, setting) for setting in SETTINGS] == [False, False]


def test_what_is_wanted_in_float32_is_not_rounded_to_the_dtype_of_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits, and the parts that ranks add."""
    given: list[Any] = []
    mm = torch.mm

    def noting(x: torch.Tensor, weight: torch.Tensor, **how: Any) -> torch.Tensor:
        given.append((x.dtype, weight.dtype, how["out_dtype"], how.get("out")))
        made = mm(x.double(), weight.double()).to(how["out_dtype"])
        return made if how.get("out") is None else how["out"].copy_(made)

    monkeypatch.setattr(torch, "mm", noting)
    torch.manual_seed(2)
    x, weight, bias = (torch.randn(*shape).bfloat16() for shape in ((5, 64), (9, 64), (9,)))
    exact = x.double() @ weight.double().T
    assert torch.allclose(fastest_linear(x, weight, None, torch.float32).double(), exact, atol=1e-6)
    assert torch.allclose(fastest_linear(x, weight, bias, torch.float32).double(), exact + bias.double(), atol=1e-5)
    out = torch.zeros(5, 9)
    assert fastest_linear(x, weight, None, torch.float32, out) is out
    assert torch.allclose(out.double(), exact, atol=1e-6)
    assert [one[:3] for one in given] == [(torch.bfloat16, torch.bfloat16, torch.float32)] * 3
    # Nor is anything widened where nothing is asked for.
    assert fastest_linear(x, weight, bias, torch.bfloat16).dtype == torch.bfloat16
    assert len(given) == 3


def test_torch_has_that_product_on_a_gpu() -> None:
    """By tensors of a GPU that hold nothing, of which torch computes shapes and types alone."""
    with FakeTensorMode():
        x, weight = (torch.empty(shape, dtype=torch.bfloat16, device="cuda") for shape in ((5, 64), (9, 64)))
        y = fastest_linear(x, weight, None, torch.float32)
        out = torch.empty((5, 9), dtype=torch.float32, device="cuda")
        assert (y.dtype, y.device.type, tuple(y.shape)) == (torch.float32, "cuda", (5, 9))
        assert fastest_linear(x, weight, None, torch.float32, out) is out
