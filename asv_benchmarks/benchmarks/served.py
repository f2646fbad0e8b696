"""Launches over the wire: a thousand from fifty connections at once, and one after another from one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import Figure, Row, rust_bench, save

CASES = ["answer p50", "answer p99", "end p50", "end p99", "all"]

ROW = Row(
    name="launches",
    title="1,000 launches from 50 connections: times to the answer, to the program's return value, and of all together",
    driver="none",
    path="WebSocket client in Rust -> server -> instance of an installed Rust component -> its return value",
    peer="the same launches one after another from one connection",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/server/benches/launches.rs`."""
    for line in rust_bench("launches", package="pie-server", timeout_s=600):
        yield Figure(line["case"], line["unit"], line["ours"], line["peer"])


class ServedLaunches:
    """Times of launches over the wire, in milliseconds."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "ms"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_time(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
