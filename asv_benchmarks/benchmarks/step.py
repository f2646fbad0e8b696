"""P11: what the host costs in one step, with a driver that answers at once."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import ClassVar

from benchmarks.engines import Generations, NullDriver, byte_model
from benchmarks.harness import ROUNDS, Figure, Goal, Row, save, show
from pie.config import EMBEDDED_FOLDER

WIDTHS = {1: 1000, 64: 400, 512: 200}
"""Tokens that each program generates, by the number of programs."""
GOALS_US = {1: 10.0, 64: 25.0, 512: 80.0}
BYTES, TINY = "256 logits a row", "4,096 logits a row"
CASES = [f"{width} sequences, {rows}" for rows in (BYTES, TINY) for width in WIDTHS]

ROW = Row(
    name="P11",
    title="Host cost of one step, engine-stepped Rust programs, the Rust-Python hop included",
    driver="null (computes nothing)",
    path="driver loop in Python -> engine: complete (sampling, folding), next batch -> driver",
    peer="none: the goal is a time",
)


def measure() -> list[Figure]:
    """The time between the end of one run of the driver and the beginning of the next: the median over the steps of a round."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocab_size = byte_model(folder)
        small = [_figure(width, vocab_size, folder, BYTES, [Goal("ours", GOALS_US[width])]) for width in WIDTHS]
    return [*small, *(_figure(width, 4096, EMBEDDED_FOLDER, TINY, []) for width in WIDTHS)]


def _figure(width: int, vocab_size: int, folder: Path, rows: str, goals: list[Goal]) -> Figure:
    n_tokens, samples = WIDTHS[width], []
    driver = NullDriver(vocab_size, n_pages=width * (n_tokens // 16 + 2), max_batch_tokens=width)
    with Generations(driver, width, folder) as engine:
        for _ in range(ROUNDS + 1):
            engine.run("Rust", width, "collect", n_tokens)
            noted = engine.driver
            if len(noted.started_s) != n_tokens:
                raise RuntimeError(f"{n_tokens} steps of {width} sequences took {len(noted.started_s)} batches")
            gaps = [begin - end for begin, end in zip(noted.started_s[1:], noted.ended_s[:-1], strict=True)]
            samples.append(1e6 * statistics.median(gaps))
    figure = Figure(f"{width} sequences, {rows}", "us/step", samples[1:], goals=goals)
    show(f"P11 {figure.case}: {figure.median('ours'):.1f} us")
    return figure


class StepCost:
    """Host cost of one step by width, in microseconds."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_step(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
