"""What a step costs more where the driver has a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar

from benchmarks.engines import Generations, NullDriver
from benchmarks.harness import Figure, Goal, Row, in_turns, save, show
from pie.backends import open_driver
from pie.backends.base import Driver, DriverOptions
from pie.config import EMBEDDED_FOLDER
from pie.isolation.driver import IsolatedDriver

VOCAB_SIZE = 4096
NULL, TINY = "null driver", "pie-tiny"
STEPS = {(1, NULL): 1000, (64, NULL): 400, (1, TINY): 400, (512, TINY): 40}
"""Tokens that each program generates, by the number of programs and the driver."""
GOALS = {
    (1, NULL): Goal("difference", 10.0),
    (1, TINY): Goal("difference", 10.0),
    (512, TINY): Goal("ratio", 1.02),
}
CASES = [f"{width} sequences, {kind}" for width, kind in STEPS]

ROW = Row(
    name="isolation",
    title="A step where the driver has a process of its own",
    driver="null (computes nothing), and cpu with pie-tiny on all cores",
    path="driver loop in Python -> shared memory -> the process of the driver, and back",
    peer="the same driver in the process of the engine",
)


def measure() -> Iterator[Figure]:
    """Microseconds a step, of programs that the engine steps."""
    for width, kind in STEPS:
        yield _figure(width, kind)


def _figure(width: int, kind: str) -> Figure:
    n_tokens = STEPS[width, kind]
    n_pages = width * (n_tokens // 16 + 2)
    null = partial(NullDriver, VOCAB_SIZE, n_pages, width)
    tiny = partial(open_driver, "cpu", EMBEDDED_FOLDER, DriverOptions(n_pages=n_pages, max_batch_tokens=width))
    opening: Callable[[], Driver] = null if kind == NULL else tiny
    drivers = [IsolatedDriver(opening, VOCAB_SIZE), opening()]
    try:
        with Generations(drivers[0], width) as isolated, Generations(drivers[1], width) as together:

            def step_us(engine: Generations) -> float:
                return 1e6 * engine.run("Rust", width, "collect", n_tokens) / n_tokens

            for engine in (isolated, together):
                step_us(engine)
            ours, peer = in_turns(partial(step_us, isolated), partial(step_us, together))
    finally:
        for driver in drivers:
            driver.close()
    goal = GOALS.get((width, kind))
    figure = Figure(f"{width} sequences, {kind}", "us/step", ours, peer, goals=[goal] if goal else [])
    more, times = figure.median("difference"), figure.median("ratio")
    show(f"isolation {figure.case}: {figure.median('ours'):.1f} us, {more:.1f} us more, {times:.3f} times")
    return figure


class IsolatedStep:
    """Time of a step with the driver in a process of its own, in microseconds."""

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
