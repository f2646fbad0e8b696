"""How the cost of a step grows, and what contexts and pages take in memory.

A step costs what its batch costs, however many contexts and pages there are.

`tools/draw_step_cost.py` draws `docs/step-cost.svg` from the figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import Figure, Row, rust_bench, save

ROW = Row(
    name="scale",
    title="A step beside idle contexts and their pages, and the memory of both",
    driver="null (computes nothing)",
    path="the engine's own calls, in Rust: next batch, draw of 64 logits a row, complete",
    peer="none: what counts is that the figures of one width are alike",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/core/benches/store.rs`."""
    for part in ("scale", "memory"):
        for line in rust_bench("store", part, package="pie-core", timeout_s=900):
            yield Figure(line["case"], line["unit"], line["ours"], line["peer"])


class StepBesideMany:
    """Cost of a step, the slowest of all measured by width, in microseconds."""

    params: ClassVar[list[int]] = [1, 64, 512]
    param_names: ClassVar[list[str]] = ["sequences"]
    timeout = 1800
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_slowest(self, figures: dict[str, Figure], width: int) -> float:
        """The largest of the medians."""
        return max(figure.median("ours") for case, figure in figures.items() if case.startswith(f"{width} sequences "))
