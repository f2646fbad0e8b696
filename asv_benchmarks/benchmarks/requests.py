"""Requests by HTTP to a Rust program, beside a bare server of axum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import Figure, Goal, Row, rust_bench, save

CASES = ["one instance", "an instance each"]

ROW = Row(
    name="requests",
    title="Requests by HTTP that a program answers, a second, over 16 connections",
    driver="none",
    path="client -> server -> queue -> Rust program (one instance for all, or one for each) -> client",
    peer="a server of axum alone that answers with the same body on two threads, over connections that stay open too",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/server/benches/requests.rs`."""
    for line in rust_bench("requests", package="pie-server", timeout_s=600):
        goals = [Goal("ours", 10_000.0, at_least=True)] if line["case"] == CASES[0] else []
        yield Figure(line["case"], line["unit"], line["ours"], line["peer"], goals)


class HttpRequests:
    """Requests that are answered in a second."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "requests/s"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_rate(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
