"""Linears against the read bandwidth of the same run: what part of it streaming the weights reaches at 1 and 8 rows.

The yardstick reads the same number of bytes with the same threads and computes nothing. Layer by layer the two take turns, in
changing order, so that both meet the same machine; of each layer the fastest time of each side over all rounds counts, which is the
one that nobody else disturbed. The layers together are larger than any cache.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from pie.backends.cpu.library import KernelError, Library
from pie.backends.cpu.plan import F32, Plan, PlanOptions
from pie.models.safetensors import Tensor
from pie.models.spec import DtypeName

# Outputs and inputs of the linears of one layer of a model of 0.6 billion parameters (Qwen3-0.6B), and how many layers are packed:
# half a gigabyte, so that no cache holds any of it from one round to the next.
SHAPES = [(4096, 1024), (1024, 2048), (6144, 1024), (1024, 3072)]
N_LAYERS = {"bfloat16": 16, "float32": 8}
N_ROUNDS = 60


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


class Linears:
    """The linears of the layers, one after the other, as in a step."""

    params: ClassVar[list[list[str]]] = [["1", "8"], ["bfloat16", "float32"], ["avx512", "avx2"]]
    param_names: ClassVar[list[str]] = ["rows", "dtype", "isa"]
    unit = "of the read bandwidth"
    timeout = 300

    def setup(self, rows: str, dtype: DtypeName, isa: str) -> None:
        """Packs the weights; an instruction set that this CPU lacks is left out."""
        sizes = dict.fromkeys(PlanOptions.__dataclass_fields__, 2) | {"dtype": dtype, "isa": isa, "n_threads": len(os.sched_getaffinity(0))}
        try:
            plan = Plan(Library(), PlanOptions(**sizes))
        except KernelError as error:
            raise NotImplementedError(str(error)) from error
        random = np.random.default_rng(0)
        self.layers = [_Layer(plan, dtype, random) for _ in range(N_LAYERS[dtype])]
        widths = {width for shape in SHAPES for width in shape}
        self.x, self.y = ({n: random.standard_normal((int(rows), n), np.float32) for n in widths} for _ in range(2))

    def track_share_of_bandwidth(self, rows: str, dtype: DtypeName, isa: str) -> float:
        """(Time to read the bytes) / (time to multiply by them), from the fastest times of each layer."""
        fastest_s = np.full((2, len(self.layers)), np.inf)
        for round_idx in range(N_ROUNDS):
            for layer_idx, layer in enumerate(self.layers):
                for side in (round_idx % 2, 1 - round_idx % 2):
                    start_s = time.perf_counter()
                    if side:
                        layer.apply(self.x, self.y)
                    else:
                        layer.read()
                    fastest_s[side, layer_idx] = min(fastest_s[side, layer_idx], time.perf_counter() - start_s)
        read_s, apply_s = fastest_s
        print(
            f"{rows} rows, {dtype}, {isa}: {read_s.sum() / apply_s.sum():.3f} "
            f"(of the layers: min {(read_s / apply_s).min():.3f}, max {(read_s / apply_s).max():.3f}) "
            f"of {sum(layer.n_bytes for layer in self.layers) / read_s.sum() / 1e9:.1f} GB/s",
            file=sys.stderr,
        )
        return float(read_s.sum() / apply_s.sum())
