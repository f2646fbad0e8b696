"""Starting and awaiting a child, beside the launch of the same program by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import ROUNDS, Figure, Goal, Row, rust_bench, save

CASES = ["Rust", "JavaScript", "Python"]
"""The language of the child."""

ROW = Row(
    name="children",
    title="Starting a child and awaiting its end, one after the other",
    driver="none",
    path="runtime.spawn in a Rust program -> process of its own -> its value in the parent",
    peer="Host::launch of the same program with the same input, in Rust -> its last event, in the same host",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/host/benches/children.rs`: microseconds of one."""
    for line in rust_bench("children", "--rounds", str(ROUNDS), timeout_s=900):
        yield Figure(line["case"], line["unit"], line["ours"], line["peer"], [Goal("ratio", 2.0)])


class Children:
    """Time of one child, in microseconds."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 1000
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_child(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
