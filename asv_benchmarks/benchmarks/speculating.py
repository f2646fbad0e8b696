"""P15, its half on speculation: n-grams of the engine on a text that copies, and where nothing is accepted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from benchmarks.harness import ROOT, ROUNDS, SEED, Figure, Goal, Row, in_turns, save, show
from pie.config import ModelConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import load_program

N_TOKENS = 400


def runs_of(length: int, n: int) -> list[int]:
    """The shortest circle of `n` digits in which each run of `length` stands once (de Bruijn), by its Lyndon words."""
    circle: list[int] = []
    word = [-1]
    while word:
        word[-1] += 1
        if length % len(word) == 0:
            circle += word
        word = (word * length)[:length]
        while word and word[-1] == n - 1:
            word.pop()
    return circle


PARAGRAPH = "The fox went to the river in the morning, drank some water, and looked at the old boat for a long time. "
COPY, NONE = "a text that copies", "nothing is accepted"
FEW = range(1000, 1010)
"""Ten tokens: whichever three of them stand last, they stood somewhere before, and another one came behind them."""
CASES: dict[str, dict[str, Any]] = {
    COPY: {"text": PARAGRAPH * 5, "temperature": 0.0, "seed": 5},
    NONE: {"ids": [FEW[digit] for digit in runs_of(3, len(FEW))], "mask": [FEW.start, len(FEW)], "temperature": 5.0, "seed": 7},
}
GOALS = {COPY: Goal("ratio", 1 / 2.5), NONE: Goal("ratio", 1 / 0.98)}
PROGRAM = ROOT / "asv_benchmarks/programs/speculating.js"

ROW = Row(
    name="P15",
    title=f"Wall time of {N_TOKENS} tokens with n-gram speculation",
    driver="cpu, pie-tiny, all cores",
    path="the first token -> generation -> driver -> the last token, in one program",
    peer="the same program without speculation, in the same engine",
)


def generate(engine: Engine, case: str, *, speculates: bool) -> float:
    """Milliseconds of a generation."""
    given = CASES[case] | {"tokens": N_TOKENS, "speculation": speculates}
    process = engine.launch(load_program(PROGRAM), input=given, seed=SEED)
    begun = process.next_event(60.0)
    start_s = time.perf_counter()
    last = process.next_event(60.0)
    took_ms = (time.perf_counter() - start_s) * 1e3
    if begun != Event.Stdout("begun") or not isinstance(last, Event.Return):
        raise RuntimeError(f"the program said {begun}, and ended with {last}")
    if json.loads(last.text) + 8 < N_TOKENS:
        raise RuntimeError(f"the program generated {last.text} tokens behind the first")
    return took_ms


def measure() -> Iterator[Figure]:
    """Both cases, with speculation and without in turns."""
    with Engine() as engine:
        model = engine.add_model(options=ModelConfig(driver="cpu", name="default"))
        engine.start()
        for case, goal in GOALS.items():
            generate(engine, case, speculates=True)
            before = model.stats()

            def ours(case: str = case) -> float:
                return generate(engine, case, speculates=True)

            def peer(case: str = case) -> float:
                return generate(engine, case, speculates=False)

            samples = in_turns(ours, peer, ROUNDS)
            after = model.stats()
            n_drafted, n_accepted = (after[name] - before[name] for name in ("n_drafted", "n_drafts_accepted"))
            note = f"{n_accepted} of {n_drafted} drafts accepted, of {ROUNDS * N_TOKENS} tokens"
            figure = Figure(case, "ms", *samples, goals=[goal], note=note)
            show(f"P15: {case}: {figure.median('ours'):.0f} ms, {1 / figure.median('ratio'):.2f}x, {note}")
            yield figure


class Speculating:
    """(Time without speculation) / (time with)."""

    params: ClassVar[list[str]] = list(CASES)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "times as fast"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures both cases once."""
        return save(ROW, measure())

    def track_speed(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return 1 / figures[case].median("ratio")
