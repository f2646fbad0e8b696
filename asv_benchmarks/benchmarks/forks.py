"""P16: forks, and the pages of a tree of branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import Figure, Goal, Row, rust_bench, save

GOALS = {
    "fork of 1,000 tokens": [Goal("ours", 1.0)],
    "fork of 32,000 tokens": [Goal("ours", 1.0)],
    "a tree of 64 branches behind 1,024 tokens": [Goal("ratio", 1.02)],
}
NOTES = {
    "fork of 1,000 tokens": "llama.cpp's seq_cp is not among the peers that are installed: not run",
    "fork of 32,000 tokens": "beside a fork of 1,000 tokens",
    "a tree of 64 branches behind 1,024 tokens": "beside the pages of all different tokens, each branch of 66",
}

ROW = Row(
    name="P16",
    title="Forks, and the pages of a tree",
    driver="null (computes nothing)",
    path="the engine's own calls, in Rust",
    peer="the same of a short context; the ideal number of pages",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/core/benches/store.rs`."""
    for line in rust_bench("store", "forks", package="pie-core", timeout_s=300):
        case = line["case"]
        yield Figure(case, line["unit"], line["ours"], line["peer"], GOALS[case], NOTES[case])


class Forks:
    """Time of a fork, and pages of a tree."""

    params: ClassVar[list[str]] = list(GOALS)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 300

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_fork(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
