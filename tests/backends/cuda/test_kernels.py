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
from triton.runtime import interpreter

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


@pytest.fixture(autouse=True)
def _sums_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the interpreter a product is that of numpy's BLAS, whose bits depend on the place of a row on some processors.

    A GPU computes each place of a tile alike.
    """

    def create_dot(_: Any, a: Any, b: Any, d: Any, *_how: Any) -> Any:
        total = d.data.copy()
        for k in range(a.data.shape[1]):
            total += a.data[:, k : k + 1].astype(total.dtype) * b.data[k : k + 1].astype(total.dtype)
        return interpreter.TensorHandle(total, d.dtype.scalar)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", create_dot)


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
        y = interpreted.Linears()(x, weight, added, torch.float32)
        assert torch.allclose(y.double(), expected + (0 if added is None else added.double()), rtol=1e-5, atol=1e-4)


def test_a_row_of_a_linear_does_not_depend_on_the_others(interpreted: ModuleType) -> None:
    torch.manual_seed(5)
    x, weight = torch.randn(130, 96), torch.randn(48, 96)
    linear = interpreted.Linears()
    whole = linear(x, weight, None, torch.float32)
    for first, end in ((0, 1), (129, 130), (60, 70), (1, 129)):
        assert torch.equal(linear(x[first:end], weight, None, torch.float32), whole[first:end])


def test_every_tile_gives_the_same_bits(interpreted: ModuleType) -> None:
    torch.manual_seed(6)
    x, weight = torch.randn(70, 200), torch.randn(150, 200)
    first, *others = [interpreted.linear_by(tile, x, weight, None, torch.float32) for tile in interpreted.TILES]
    assert others
    assert all(torch.equal(first, other) for other in others)


def test_the_fastest_tile_of_those_with_the_same_bits_is_chosen(interpreted: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that the test has; one tile would give other bits, another one does not fit into a block."""
    usual, wide, other_bits, too_large = interpreted.TILES
    times = {usual: 3.0, wide: 2.0, other_bits: 1.0}
    linear_by, ran = interpreted.linear_by, []

    def by(tile: Any, x: torch.Tensor, *how: Any) -> torch.Tensor:
        ran.append(tile)
        if tile == too_large:
            raise interpreted.OutOfResources(200_000, 100_000, "shared memory")
        y = linear_by(tile, x, *how)
        return torch.nextafter(y, y + 1) if tile == other_bits and len(x) > 64 else y

    def seconds(call: Any) -> float:
        call()
        return times[ran[-1]]

    monkeypatch.setattr(interpreted, "linear_by", by)
    linears = interpreted.Linears()
    weights = [torch.randn(48, 96), torch.randn(48, 96), torch.randn(20, 96)]
    linears.choose(weights, seconds)
    assert linears.chosen == {(48, 96): wide, (20, 96): wide}
    ran.clear()
    linears(torch.randn(2, 96), weights[0], None, torch.float32)
    linears(torch.randn(2, 30), torch.randn(48, 30), None, torch.float32)  # which nothing was measured for
    assert ran == [wide, usual]
    # Where the rule's is the fastest it stays.
    times[usual] = 0.5
    again = interpreted.Linears()
    again.choose(weights, seconds)
    assert set(again.chosen.values()) == {usual}


def test_nothing_is_compiled_anew_for_what_changes_with_each_batch() -> None:
    """Neither for a number of tokens or draws nor for where a part of the rows begins: a step would wait for it."""
    fixed = {
        kernel.__name__: [
            parameter.name for parameter in kernel.params if parameter.do_not_specialize or parameter.do_not_specialize_on_alignment
        ]
        for kernel in (kernels._linear, kernels._weights, kernels._random_bits)
    }
    assert fixed == {"_linear": ["n_tokens"], "_weights": ["top", "temperature"], "_random_bits": ["n_draws"]}
    x = torch.arange(40.0)
    assert kernels._aligned(x) is x
    shifted = kernels._aligned(x[1:33].view(4, 8))
    assert shifted.data_ptr() % 16 == 0
    assert shifted.flatten().tolist() == list(range(1, 33))


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
