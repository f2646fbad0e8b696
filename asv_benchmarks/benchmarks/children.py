"""Starting and awaiting a child, beside the launch of the same program by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import ROOT, Figure, Goal, Row, in_turns, save, show
from pie._engine import Process
from pie.config import ModelConfig
from pie.engine import Engine, Program
from pie.events import Event
from pie.programs import Component, Source

PARENT = Component(ROOT / "build/programs/children.wasm")
CHILDREN: dict[str, tuple[Program, int]] = {
    "Rust": (PARENT, 500),
    "JavaScript": (Source("javascript", (("main.js", b"export function main() { return 0; }\n"),), "main.js"), 200),
    "Python": (Source("python", (("main.py", b"def main(input):\n    return 0\n"),), "main.py"), 100),
}
"""What is started, and how often in a round."""

ROW = Row(
    name="children",
    title="Starting a child and awaiting its end, one after the other",
    driver="none",
    path="runtime.spawn in a Rust program -> process of its own -> its value in the parent",
    peer="Engine.launch of the same program with the same input -> its last event, in the same engine",
)


def measure() -> Iterator[Figure]:
    """Microseconds of one."""
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy"))
    with engine:
        for case, (program, n) in CHILDREN.items():
            yield _figure(engine, case, program, n)


def _figure(engine: Engine, case: str, program: Program, n: int) -> Figure:
    def spawned() -> float:
        work = {"spawn": {"program": "child", "n": n}}
        return _value(engine.launch(PARENT, input=work, programs={"child": program})) / n / 1e3

    def launched() -> float:
        began = time.perf_counter()
        for _ in range(n):
            _value(engine.launch(program, input="nothing"))
        return (time.perf_counter() - began) / n * 1e6

    spawned()
    launched()
    figure = Figure(case, "us", *in_turns(spawned, launched), goals=[Goal("ratio", 2.0)])
    show(f"children: {case}: {figure.median('ours'):.4g} us")
    return figure


def _value(process: Process) -> int:
    while not isinstance(event := process.next_event(300.0), Event.Return):
        assert isinstance(event, Event.Stderr), event
    return int(event.value)


class Children:
    """Time of one child, in microseconds."""

    params: ClassVar[list[str]] = list(CHILDREN)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_child(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
