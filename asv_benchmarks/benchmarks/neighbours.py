"""A short generation of one user, beside programs of another that take all they can get, and alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from benchmarks.engines import WORKLOADS
from benchmarks.harness import ROOT, ROUNDS, SEED, Figure, Goal, Row, in_turns, save, show
from pie.config import ModelConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import load_program

N_TOKENS = 12
PROMPT = [1, 5, 7, 9, 11, 300, 301, 302, 303, 304, 305, 306]
N_TRIES = 20
"""Launches of a round; the time of the round is that which all but one take at most."""
PAUSE_S = 0.03
"""Between two launches: the others are not to know that somebody comes back."""
WARM_UP_S = 1.0
GREEDY = ROOT / "asv_benchmarks/programs/greedy.js"
PREFILL = {"prefill": {"contexts": 8, "prompt": 2000}}
GENERATE = {"generate": {"contexts": 60, "prompt": 8, "tokens": 200}}
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "1 that prefills 8 x 2,000 tokens": (1, PREFILL),
    "16 that prefill 8 x 2,000 tokens": (16, PREFILL),
    "16 that generate in 60 contexts": (16, GENERATE),
}

ROW = Row(
    name="neighbours",
    title=f"A launch that generates {N_TOKENS} tokens beside programs of another user, the slowest but one of {N_TRIES}",
    driver="cpu, pie-tiny, all cores",
    path="Engine.launch -> program -> engine -> driver loop in Python -> driver -> return value",
    peer="the same launches with nobody beside them, in the same engine",
)


def slowest_but_one(engine: Engine) -> float:
    """Milliseconds of the slowest launch but one."""
    program, times_ms = load_program(WORKLOADS["JavaScript"]), []
    for _ in range(N_TRIES):
        time.sleep(PAUSE_S)
        start_s = time.perf_counter()
        process = engine.launch(program, input={"collect": {"prompt": PROMPT, "tokens": N_TOKENS}}, seed=SEED, username="one")
        last = None
        while (event := process.next_event()) is not None:
            last = event
        if last != Event.Return(str(N_TOKENS)):
            raise RuntimeError(f"the program ended with {last}")
        times_ms.append((time.perf_counter() - start_s) * 1e3)
    return sorted(times_ms)[-2]


@contextmanager
def neighbours(engine: Engine, n_processes: int, work: dict[str, Any]) -> Iterator[None]:
    """So many programs of another user at work."""
    program = load_program(GREEDY)
    processes = [engine.launch(program, input={"salt": salt, **work}, username="other") for salt in range(n_processes)]
    for process in processes:
        process.next_event()  # each says that it has begun
    time.sleep(WARM_UP_S)
    try:
        yield
        if any(process.ended for process in processes):
            raise RuntimeError("a neighbour ended, which none does by itself")
    finally:
        for process in processes:
            process.cancel()
        for process in processes:
            while process.next_event() is not None:
                pass


def measure() -> Iterator[Figure]:
    """Every case, in turns with nobody."""
    with Engine() as engine:
        engine.add_model(options=ModelConfig(driver="cpu", name="default"))
        engine.start()
        slowest_but_one(engine)
        for case, (n_processes, work) in CASES.items():

            def beside(n_processes: int = n_processes, work: dict[str, Any] = work) -> float:
                with neighbours(engine, n_processes, work):
                    return slowest_but_one(engine)

            figure = Figure(case, "ms", *in_turns(beside, lambda: slowest_but_one(engine), ROUNDS), goals=[Goal("ratio", 3.0)])
            show(f"neighbours: {case}: {figure.median('ours'):.0f} ms, {figure.median('ratio'):.2f} of alone")
            yield figure


class Neighbours:
    """(Time of a short generation beside another user's programs) / (time alone)."""

    params: ClassVar[list[str]] = list(CASES)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "of the time alone"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ratio")
