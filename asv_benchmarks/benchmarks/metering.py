"""P10: what interruption and limits cost a computing program.

The rows also show how exactly they stop one, and what its neighbours notice.
"""

from __future__ import annotations

import statistics
from typing import ClassVar

from benchmarks.harness import ROUNDS, Figure, Goal, Row, rust_bench, save

KERNELS = ("sort", "hash", "matrix")
CASES = [*(f"kernel {name}" for name in KERNELS), "mean of the kernels", "beyond the limit", "p99 of a neighbour"]
GOALS = {
    **{f"kernel {name}": [Goal("ratio", 1.15)] for name in KERNELS},
    "beyond the limit": [Goal("ours", 10.0)],
    "p99 of a neighbour": [Goal("ratio", 1.05)],
}
NOTES = {
    "beyond the limit": "processor time of a spinning program past limits.cpu_s = 0.2",
    "p99 of a neighbour": "answers of an echoing program; ours beside a program that spins until it is stopped, the peer alone",
}

ROW = Row(
    name="P10",
    title="Metering: kernels in Rust with interruption and limits, a runaway program and its neighbours",
    driver="none",
    path="Host::launch in Rust; entry of the program to its answer",
    peer="the same call of the same component on bare wasmtime, without interruption and limits; where noted, the same alone",
)


def measure() -> list[Figure]:
    """The samples of `rust/host/benches/metering.rs`, and the mean of the kernels by round."""
    lines = rust_bench("metering", "--rounds", str(2 * ROUNDS), timeout_s=600)
    figures = {
        line["case"]: Figure(line["case"], line["unit"], line["ours"], line["peer"], GOALS[line["case"]], NOTES.get(line["case"], ""))
        for line in lines
    }
    ratios = zip(*(figures[f"kernel {name}"].samples("ratio") for name in KERNELS), strict=True)
    mean = Figure("mean of the kernels", "ratio", [statistics.mean(by_kernel) for by_kernel in ratios], goals=[Goal("ours", 1.05)])
    return [(figures | {mean.case: mean})[case] for case in CASES]


class Metering:
    """Ratios to the unmetered peer; for the runaway program, milliseconds beyond its limit."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_metering(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        figure = figures[case]
        return figure.median("ratio" if figure.peer else "ours")
