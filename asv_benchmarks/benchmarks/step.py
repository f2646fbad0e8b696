"""P11: what the host costs in one step, with a driver that answers at once."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from benchmarks.engines import Device, Generations, NullDriver, byte_model, shown_parts
from benchmarks.harness import ROUNDS, Figure, Goal, Row, save, show
from pie.backends.base import Driver
from pie.config import EMBEDDED_FOLDER

WIDTHS = {1: 1000, 64: 400, 512: 200}
"""Tokens that each program generates, by the number of programs."""
GOALS_US = {1: 5.0, 64: 20.0, 512: 60.0}
BYTES, TINY = "256 logits a row", "4,096 logits a row"
DEVICE_S = 0.001
DEVICE = "a device of 1 ms"
CASES = [f"{width} sequences, {kind}" for kind in (BYTES, TINY, DEVICE) for width in WIDTHS]

ROW = Row(
    name="P11",
    title="Host cost of one step, engine-stepped Rust programs, the Rust-Python hop included",
    driver="null (computes nothing)",
    path="driver loop in Python -> engine: complete (sampling, folding), next batch -> driver",
    peer="none: the goal is a time; with a device, one that is not given the next batch while it runs one",
)


def measure() -> list[Figure]:
    """The time between the end of one run of the driver, or its device, and the beginning of the next.

    Of each round the median counts.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocab_size = byte_model(folder)
        small = [_alone(width, BYTES, vocab_size, folder, GOALS_US[width]) for width in WIDTHS]
        beside = [_beside(width, vocab_size, folder) for width in WIDTHS]
    tiny = [_alone(width, TINY, 4096, EMBEDDED_FOLDER, None) for width in WIDTHS]
    return [*small, *tiny, *beside]


def _alone(width: int, kind: str, vocab_size: int, folder: Path, goal: float | None) -> Figure:
    """What a step costs where the driver answers at once, and what that is made of."""
    gaps = _gaps(width, _null(width, vocab_size), folder)
    with Generations(_null(width, vocab_size), width, folder) as engine:
        engine.run("Rust", width, "collect", WIDTHS[width])
        note = shown_parts(engine.parts("Rust", width, "collect", WIDTHS[width]), WIDTHS[width], "step")
    show(f"P11 {width} sequences, {kind}: {note}")
    return replace(_figure(width, kind, gaps, goal=goal), note=note)


def _beside(width: int, vocab_size: int, folder: Path) -> Figure:
    """What the device waits for the host."""
    ours, peer = (_gaps(width, Device(_null(width, vocab_size), DEVICE_S, follows=follows), folder) for follows in (True, False))
    return _figure(width, DEVICE, ours, peer, goal=GOALS_US[width])


def _null(width: int, vocab_size: int) -> NullDriver:
    return NullDriver(vocab_size, n_pages=width * (WIDTHS[width] // 16 + 2), max_batch_tokens=width)


def _figure(width: int, kind: str, ours: list[float], peer: list[float] | None = None, goal: float | None = None) -> Figure:
    goals = [] if goal is None else [Goal("ours", goal)]
    figure = Figure(f"{width} sequences, {kind}", "us/step", ours, peer or [], goals=goals)
    show(f"P11 {figure.case}: {figure.median('ours'):.1f} us")
    return figure


def _gaps(width: int, driver: Driver, folder: Path) -> list[float]:
    """Microseconds between two batches, by round."""
    n_tokens, samples = WIDTHS[width], []
    with Generations(driver, width, folder) as engine:
        for _ in range(ROUNDS + 1):
            engine.run("Rust", width, "collect", n_tokens)
            noted = engine.driver
            if len(noted.started_s) != n_tokens:
                raise RuntimeError(f"{n_tokens} steps of {width} sequences took {len(noted.started_s)} batches")
            gaps = [begin - end for begin, end in zip(noted.started_s[1:], noted.ended_s[:-1], strict=True)]
            samples.append(1e6 * statistics.median(gaps))
    return samples[1:]


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
