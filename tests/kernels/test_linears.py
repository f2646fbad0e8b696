"""Linears: right, and each row the same bits in any company, on any number of threads and instruction set."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from pie.backends.cpu.library import Library
from pie.backends.cpu.plan import Plan, PlanOptions
from pie.models.safetensors import Tensor
from support.kernels import isas

SHAPES = [(64, 64), (96, 130), (1000, 256), (256, 1024)]


def linear(library: Path, dtype: str, shape: tuple[int, int], *, isa: str = "auto", n_threads: int = 1) -> tuple[Plan, int, np.ndarray]:
    """A plan with one linear; returns the weights as float64."""
    random = np.random.default_rng(sum(shape))
    weights = (random.standard_normal(shape) * 0.1).astype(np.float32)
    words = weights.view(np.uint32) & 0xFFFF0000
    if dtype == "bfloat16":
        data, weights = (words >> 16).astype(np.uint16), words.view(np.float32)
    else:
        data = weights
    tensor = Tensor("w", Path("w"), dtype, shape, np.frombuffer(data.tobytes(), np.uint8))
    sizes = dict.fromkeys(PlanOptions.__dataclass_fields__, 2) | {"dtype": dtype, "isa": isa, "n_threads": n_threads}
    plan = Plan(Library(library), PlanOptions(**sizes))
    return plan, plan.add_linear([tensor]), weights.astype(np.float64)


def inputs(n_rows: int, width: int) -> np.ndarray:
    """Rows that bfloat16 holds exactly."""
    x = np.random.default_rng(width).standard_normal((n_rows, width)).astype(np.float32)
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_close_to_float64(library: Path, dtype: str, shape: tuple[int, int]) -> None:
    plan, index, weights = linear(library, dtype, shape)
    x = inputs(9, shape[1])
    y = plan.linear(index, x, shape[0])
    assert np.abs(y - x @ weights.T).max() < 2e-5 * np.abs(x @ weights.T).max() * shape[1] ** 0.5


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_does_not_depend_on_its_batch(library: Path, dtype: str, n_threads: int, shape: tuple[int, int]) -> None:
    plan, index, _ = linear(library, dtype, shape, n_threads=n_threads)
    x = inputs(512, shape[1])
    whole = plan.linear(index, x, shape[0])
    for n_rows in [*range(1, 65), 100, 511]:
        rows = np.random.default_rng(n_rows).choice(512, n_rows, replace=False)
        assert np.array_equal(plan.linear(index, x[rows], shape[0]), whole[rows]), n_rows


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_instruction_sets_and_threads_agree(library: Path, dtype: str, shape: tuple[int, int]) -> None:
    x = inputs(40, shape[1])
    found = []
    for isa, n_threads in [("auto", min(3, 1 + (os.cpu_count() or 1))), *itertools.product(isas(library), (1, 2))]:
        plan, index, _ = linear(library, dtype, shape, isa=isa, n_threads=n_threads)
        found.append(plan.linear(index, x, shape[0]).tobytes())
    assert len(set(found)) == 1


def test_inputs_are_rounded_to_nearest_even(library: Path) -> None:
    plan, index, _ = linear(library, "bfloat16", (64, 64))
    x = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32)
    bits = x.view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    assert np.array_equal(plan.linear(index, x, 64), plan.linear(index, rounded, 64))
