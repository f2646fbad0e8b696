"""The Triton kernels: right in Triton's interpreter, and compiled for GPUs, which needs none."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from pie.backends.cuda import kernels
from pie.backends.cuda.calls import standin_calls
from pie.backends.cuda.sampling import TorchArithmetic
from support.device_draws import drawn_by
from support.random_rows import random_rows

CAPABILITIES = [80, 90]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Iterator[None]:
    """Kernels are compiled anew each time."""
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(tmp_path)
        yield


@pytest.fixture(scope="module")
def interpreted() -> ModuleType:
    """The kernels once more, for the interpreter: what Triton does with a function is decided where it is defined."""
    spec = importlib.util.spec_from_file_location("interpreted_kernels", kernels.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.interpret = True
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize(("n_tokens", "n_inputs", "n_outputs"), [(1, 64, 32), (3, 80, 40), (70, 200, 100)])
def test_a_linear_is_right(interpreted: ModuleType, dtype: torch.dtype, n_tokens: int, n_inputs: int, n_outputs: int) -> None:
    torch.manual_seed(n_tokens)
    x, weight, bias = (
        torch.randn(n_tokens, n_inputs).to(dtype),
        torch.randn(n_outputs, n_inputs).to(dtype),
        torch.randn(n_outputs).to(dtype),
    )
    expected = x.double() @ weight.double().T
    for added in (None, bias):
        y = interpreted.linear(x, weight, added, torch.float32)
        assert torch.allclose(y.double(), expected + (0 if added is None else added.double()), rtol=1e-5, atol=1e-4)


def test_a_row_of_a_linear_does_not_depend_on_the_others(interpreted: ModuleType) -> None:
    torch.manual_seed(5)
    x, weight = torch.randn(130, 96), torch.randn(48, 96)
    whole = interpreted.linear(x, weight, None, torch.float32)
    for first, end in ((0, 1), (129, 130), (60, 70), (1, 129)):
        assert torch.equal(interpreted.linear(x[first:end], weight, None, torch.float32), whole[first:end])


@pytest.mark.parametrize("seed", range(4))
def test_weights_and_random_bits_are_those_of_torch(interpreted: ModuleType, seed: int) -> None:
    torch.manual_seed(seed)
    ours, theirs = interpreted.KernelArithmetic(), TorchArithmetic()
    logits = torch.randn(6, 1500) * torch.tensor([1e-3, 1.0, 5.0, 30.0, 1e30, 1.0])[:, None]
    logits[5, ::3] = -torch.inf
    top, temperature = logits.amax(dim=1), torch.tensor([1.0, 0.7, 2.0, 1e-3, 1e29, 1e30])
    assert torch.equal(ours.weights(logits, top, temperature), theirs.weights(logits, top, temperature))
    keys = torch.randint(0, 1 << 32, (1100, 5))
    assert torch.equal(ours.random_bits(keys), theirs.random_bits(keys))


def test_tokens_are_drawn_by_the_kernels_as_by_the_engine(interpreted: ModuleType) -> None:
    rows = random_rows(11, 60, 160)
    assert drawn_by(replace(standin_calls(), arithmetic=interpreted.KernelArithmetic()), rows)[0] == rows.expected()


def compiled(kernel: Any, types: dict[str, str], constants: dict[str, Any], capability: int) -> str:
    """The assembly of a kernel for GPUs of that compute capability, with the option that every launch has."""
    signature = types | dict.fromkeys(constants, "constexpr")
    source = ASTSource(
        fn=kernel, signature=signature, constexprs={(kernel.arg_names.index(name),): value for name, value in constants.items()}
    )
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"enable_fp_fusion": False}).asm["ptx"]


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_the_kernels_compile_and_no_product_of_the_weights_is_fused(capability: int) -> None:
    pointers = {"logits": "*fp32", "top": "*fp32", "temperature": "*fp32", "constants": "*fp64", "out": "*i64", "n_tokens": "i32"}
    weights = compiled(kernels._weights, pointers, {"BLOCK": 1024}, capability)
    assert "mul.f64" in weights or "mul.rn.f64" in weights
    assert "fma" not in re.sub(r"//.*", "", weights)
    # Otherwise the assembler may fuse them.
    assert not re.search(r"\b(mul|add|sub)\.f64", weights)
    compiled(kernels._random_bits, {"keys": "*i64", "out": "*i64", "n_draws": "i32"}, {"BLOCK": 1024}, capability)


@pytest.mark.parametrize(("capability", "block_n"), [(80, 32), (90, 128)])
def test_the_linear_compiles(capability: int, block_n: int) -> None:
    types = {"x": "*bf16", "weight": "*bf16", "bias": "*bf16", "y": "*fp32"} | dict.fromkeys(["n_tokens", "n_outputs", "n_inputs"], "i32")
    sizes = {"HAS_BIAS": True, "BLOCK_M": 64, "BLOCK_N": block_n, "BLOCK_K": 64, "GROUP_M": 8}
    assert "mma" in compiled(kernels._linear, types, sizes, capability)
