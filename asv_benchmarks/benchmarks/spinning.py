"""A program that generates step by step, beside fifteen that spin and alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar

from benchmarks.engines import WORKLOADS
from benchmarks.harness import ROOT, ROUNDS, SEED, Figure, Goal, Row, in_turns, save, show
from pie.config import ModelConfig
from pie.config.tree import DriverName
from pie.engine import Engine
from pie.events import Event
from pie.programs import load_program

N_SPINNING = 15
N_TOKENS = 256
DRIVERS: tuple[DriverName, ...] = ("cpu", "dummy")

ROW = Row(
    name="spinning",
    title=f"Tokens per second of a Python program that generates step by step, beside {N_SPINNING} that spin",
    driver="cpu and dummy, pie-tiny, all cores",
    path="Engine.launch -> program -> engine -> driver loop in Python -> driver; the launch is timed too",
    peer="the same program alone in the same engine",
)


def generated(engine: Engine) -> float:
    """Tokens per second of one launch that is seen to its end."""
    work: dict[str, Any] = {"step": {"prompt": [1], "tokens": N_TOKENS}}
    start_s = time.perf_counter()
    process = engine.launch(load_program(WORKLOADS["Python"]), input=work, seed=SEED)
    last = None
    while (event := process.next_event()) is not None:
        last = event
    if last != Event.Return(str(N_TOKENS)):
        raise RuntimeError(f"the program ended with {last}")
    return N_TOKENS / (time.perf_counter() - start_s)


def beside(engine: Engine) -> float:
    """The same while others spin."""
    spins = load_program(ROOT / "asv_benchmarks/programs/spin.py")
    spinning = [engine.launch(spins) for _ in range(N_SPINNING)]
    for process in spinning:
        process.next_event()  # each says that it has begun
    try:
        generated(engine)  # while they begin they are not known to spin
        return generated(engine)
    finally:
        for process in spinning:
            process.cancel()
            while process.next_event() is not None:
                pass


def measure() -> Iterator[Figure]:
    """Both, in turns, on each driver."""
    for driver in DRIVERS:
        with Engine() as engine:
            engine.add_model(options=ModelConfig(driver=driver))
            engine.start()
            generated(engine)
            figure = Figure(driver, "tokens/s", *in_turns(lambda: beside(engine), lambda: generated(engine), ROUNDS))
        figure.goals.append(Goal("ratio", 0.5, at_least=True))
        show(f"spinning: {driver}: {figure.median('ratio'):.2f} of {figure.median('peer'):.0f} tokens/s")
        yield figure


class SpinningNeighbours:
    """(Tokens per second beside programs that spin) / (tokens per second alone)."""

    params: ClassVar[list[str]] = list(DRIVERS)
    param_names: ClassVar[list[str]] = ["driver"]
    timeout = 600
    unit = "of the rate alone"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], driver: str) -> float:
        """Median of the rounds."""
        return figures[driver].median("ratio")
