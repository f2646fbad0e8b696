"""The twenty questions of the README: forks that answer at once, beside one after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import ROOT, SEED, Figure, Row, in_turns, save, show
from pie.config import ModelConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import Component, Source, load_program

PROGRAM = ROOT / "examples/python/questions.py"
AT_ONCE = "return await asyncio.gather(*asked)"
IN_TURN = "return [await answer for answer in asked]"
CASES = ["twenty answers"]

ROW = Row(
    name="questions",
    title="Twenty questions, each in a fork of one context",
    driver="cpu, pie-tiny (bfloat16), all cores, without the prefix cache",
    path="Engine.launch of examples/python/questions.py -> its return value",
    peer="the same program, which awaits one answer after the other",
)


def in_turn() -> Source:
    """The program that answers one question after the other."""
    text = PROGRAM.read_text(encoding="utf-8")
    if AT_ONCE not in text:
        raise RuntimeError(f"{PROGRAM} has no line {AT_ONCE!r}; write here what it has in its place")
    return Source("python", (("main.py", text.replace(AT_ONCE, IN_TURN).encode()),), "main.py")


def answered(engine: Engine, program: Component | Source, answers: list[list[str]]) -> float:
    """Milliseconds from the launch to the return value, which joins the answers."""
    began = time.perf_counter()
    process = engine.launch(program, seed=SEED)
    last = None
    while (event := process.next_event()) is not None:
        last = event
    spent_ms = (time.perf_counter() - began) * 1e3
    if not isinstance(last, Event.Return):
        raise RuntimeError(f"the program ended with {last}")
    answers.append(json.loads(last.text))
    return spent_ms


def measure() -> Iterator[Figure]:
    """Both in turns; their answers have to be the same."""
    answers: list[list[str]] = []
    ours, peer = load_program(PROGRAM), in_turn()
    with Engine() as engine:
        engine.add_model(options=ModelConfig(driver="cpu", prefix_cache=False))
        engine.start()
        for program in (ours, peer):
            answered(engine, program, answers)
        samples = in_turns(lambda: answered(engine, ours, answers), lambda: answered(engine, peer, answers))
    if any(given != answers[0] for given in answers):
        raise RuntimeError("forks that answer at once gave other answers than one after the other")
    figure = Figure(CASES[0], "ms", *samples)
    show(f"questions: {figure.median('ours'):.3g} ms at once, {figure.median('peer'):.3g} ms in turn")
    yield figure


class Questions:
    """Milliseconds until all twenty answers are there."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 300
    unit = "ms"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_questions(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
