"""Linears against the read bandwidth of the same run: what part of it streaming the weights reaches at 1 and 8 rows.

The yardstick reads the same number of bytes with the same threads and computes nothing. Layer by layer the two take
turns, in changing order, so that both meet the same machine; of each layer the fastest time of each side over the turns
of a round counts, which is the one that nobody else disturbed. The layers together are larger than any cache.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from benchmarks.harness import ROUNDS, Figure, Goal, Row, save, show
from pie.backends.cpu.library import KernelError, Library
from pie.backends.cpu.plan import F32, Plan, PlanOptions
from pie.models.safetensors import Tensor
from pie.models.spec import DtypeName

# Outputs and inputs of the linears of one layer of a model of 0.6 billion parameters (Qwen3-0.6B), and how many layers
# are packed: half a gigabyte, so that no cache holds any of it from one round to the next.
SHAPES = [(4096, 1024), (1024, 2048), (6144, 1024), (1024, 3072)]
N_LAYERS = {"bfloat16": 16, "float32": 8}
N_TURNS = 12
"""Turns of a round, of which the fastest counts."""
CASES: list[tuple[int, DtypeName, str]] = list(itertools.product((1, 8), ("bfloat16", "float32"), ("avx512", "avx2")))

ROW = Row(
    name="linears",
    title="Bandwidth at which the linears of a 0.6B model go through their weights, at 1 and 8 rows",
    driver="cpu",
    path="Plan.linear -> kernels, all cores",
    peer="reading as many bytes with the same threads, in turns, layer by layer",
)


class _Layer:
    """The packed linears of a layer, and an array of as many bytes."""

    def __init__(self, plan: Plan, dtype: DtypeName, random: np.random.Generator) -> None:
        element_bytes = 2 if dtype == "bfloat16" else 4
        self.plan = plan
        self.linears = []
        for n_outputs, n_inputs in SHAPES:
            # Random bytes with small exponents: no sum overflows, and the speed does not depend on the values.
            values = random.integers(0, 256, n_outputs * n_inputs * element_bytes, np.uint8)
            values[element_bytes - 1 :: element_bytes] = 0x3C
            tensor = Tensor("w", Path("w"), dtype, (n_outputs, n_inputs), values)
            self.linears.append((plan.add_linear([tensor]), n_outputs, n_inputs))
        self.n_bytes = sum(n_outputs * n_inputs for n_outputs, n_inputs in SHAPES) * element_bytes
        self.memory = random.integers(0, 1 << 32, self.n_bytes // 4, np.uint32)

    def read(self) -> None:
        """Reads as many bytes as the weights have."""
        self.plan.read_memory(self.memory)

    def apply(self, x: dict[int, F32], y: dict[int, F32]) -> None:
        """Runs every linear once; x and y are buffers by their width."""
        for index, n_outputs, n_inputs in self.linears:
            self.plan.linear(index, x[n_inputs], n_outputs, y=y[n_outputs])


def measure() -> Iterator[Figure]:
    """Gigabytes a second of both, for each case that this CPU can run."""
    for rows, dtype, isa in CASES:
        sizes = dict.fromkeys(PlanOptions.__dataclass_fields__, 2) | {"dtype": dtype, "isa": isa, "n_threads": len(os.sched_getaffinity(0))}
        try:
            plan = Plan(Library(), PlanOptions(**sizes))
        except KernelError as error:
            show(f"linears: {isa} is left out: {error}")
            continue
        random = np.random.default_rng(0)
        layers = [_Layer(plan, dtype, random) for _ in range(N_LAYERS[dtype])]
        widths = {width for shape in SHAPES for width in shape}
        x, y = ({n: random.standard_normal((rows, n), np.float32) for n in widths} for _ in range(2))
        n_gigabytes = sum(layer.n_bytes for layer in layers) / 1e9
        fastest_s = np.array([fastest(layers, x, y) for _ in range(ROUNDS)]).sum(axis=2)
        ours, peer = (n_gigabytes / fastest_s).T.tolist()
        figure = Figure(case(rows, dtype, isa), "GB/s", ours, peer, [Goal("ratio", 0.9, at_least=True)])
        show(f"linears: {figure.case}: {figure.median('ratio'):.2f} of {figure.median('peer'):.1f} GB/s")
        yield figure


def fastest(layers: list[_Layer], x: dict[int, F32], y: dict[int, F32]) -> npt.NDArray[np.float64]:
    """The fastest time of each layer, `[2, len(layers)]` seconds: multiplying, reading."""
    fastest_s = np.full((2, len(layers)), np.inf)
    for turn in range(N_TURNS):
        for layer_idx, layer in enumerate(layers):
            for side in (turn % 2, 1 - turn % 2):
                start_s = time.perf_counter()
                if side:
                    layer.read()
                else:
                    layer.apply(x, y)
                fastest_s[side, layer_idx] = min(fastest_s[side, layer_idx], time.perf_counter() - start_s)
    return fastest_s


def case(rows: int, dtype: str, isa: str) -> str:
    """The name of a case."""
    return f"{rows} rows, {dtype}, {isa}"


class Linears:
    """(Time to read the bytes) / (time to multiply by them)."""

    params: ClassVar[list[str]] = [case(*parts) for parts in CASES]
    param_names: ClassVar[list[str]] = ["case"]
    unit = "of the read bandwidth"
    timeout = 900

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_share_of_bandwidth(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds; not a number where this CPU cannot run the case."""
        return figures[case].median("ratio") if case in figures else math.nan
