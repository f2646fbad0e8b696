"""What the market for pages costs where pages are not short: nothing that can be measured."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import ClassVar

from benchmarks.engines import Generations, NullDriver, byte_model
from benchmarks.harness import ROUNDS, Figure, Goal, Row, in_turns, save, show

N_TOKENS = {1: 1000, 64: 400}
"""Tokens that each program generates, by the number of programs."""
OFF = {"credits": 0, "page_price": 0}
"""Settings with which nobody has anything to bid, and pages cost nothing."""
CASES = [f"{width} sequences" for width in N_TOKENS]

ROW = Row(
    name="market",
    title="A step of engine-stepped Rust programs with the market for pages, where there are pages for all",
    driver="null (computes nothing)",
    path="the end of one batch to the beginning of the next, by the median",
    peer="the same programs in an engine in which nobody has credits and pages cost none",
)


def measure() -> list[Figure]:
    """The time of a step with the market, and without."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocab_size = byte_model(folder)
        return [_figure(width, vocab_size, folder) for width in N_TOKENS]


def _null(width: int, vocab_size: int) -> NullDriver:
    return NullDriver(vocab_size, n_pages=width * (N_TOKENS[width] // 16 + 2), max_batch_tokens=width)


def _figure(width: int, vocab_size: int, folder: Path) -> Figure:
    with (
        Generations(_null(width, vocab_size), width, folder) as ours,
        Generations(_null(width, vocab_size), width, folder, settings=OFF) as peer,
    ):

        def gap_us(engine: Generations) -> float:
            engine.run("Rust", width, "collect", N_TOKENS[width])
            noted = engine.driver
            gaps = (begin - end for begin, end in zip(noted.started_s[1:], noted.ended_s[:-1], strict=True))
            return 1e6 * statistics.median(gaps)

        gap_us(ours)
        gap_us(peer)
        samples = in_turns(lambda: gap_us(ours), lambda: gap_us(peer), ROUNDS)
    figure = Figure(f"{width} sequences", "us/step", *samples, goals=[Goal("ratio", 1.01)])
    show(f"market: {figure.case}: {figure.median('ours'):.2f} us, {figure.median('ratio'):.3f} of without")
    return figure


class Market:
    """(Time of a step with the market) / (time without)."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "of the time without"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ratio")
