"""P6: a call over WIT, and the launch of a minimal component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import ROUNDS, Figure, Goal, Row, rust_bench, save

GOALS = {
    "a getter over WIT": [Goal("ratio", 1.3), Goal("ours", 1000.0)],
    "an awaited call that is resolved": [Goal("ratio", 1.3), Goal("ours", 1000.0)],
    "launch to entry, a minimal component": [Goal("ratio", 5.0)],
}

ROW = Row(
    name="P6",
    title="A synchronous call over WIT, one that may be suspended and is not, and the launch of a minimal component",
    driver="none",
    path="component in text form -> host, counted and bounded",
    peer="the same component on bare wasmtime: pooled, without interruption, limits and counting; synchronous but for the awaited call",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/host/benches/calls.rs`."""
    for line in rust_bench("calls", "--rounds", str(3 * ROUNDS), timeout_s=300):
        yield Figure(line["case"], line["unit"], line["ours"], line["peer"], GOALS[line["case"]])


class Calls:
    """Time of one call, and of one launch."""

    params: ClassVar[list[str]] = list(GOALS)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 300

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_call(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
