"""P5: what an inferlet's token costs beyond the bare loop of the same driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from benchmarks.engines import Generations, shown_parts
from benchmarks.harness import Figure, Goal, Row, in_turns, save, show
from pie.backends.base import Driver
from pie.backends.cpu import CpuOptions, open_driver
from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.config import EMBEDDED_FOLDER

WIDTHS = {1: 256, 64: 48, 512: 12}
"""Tokens that each program generates, by the number of programs."""
ENGINE_GOALS_US = {1: 5.0, 512: 20.0}
GUEST_GOALS_US = {"Rust": 60.0, "JavaScript": 150.0, "Python": 300.0}
"""At one program."""
LANGUAGES = ("Rust", "JavaScript", "Python")

ROW = Row(
    name="P5",
    title="Tax: a token of an inferlet beyond one of the bare loop",
    driver="cpu, pie-tiny (bfloat16), all cores",
    path="program -> engine -> driver loop in Python -> driver, from the first batch to the end of the last",
    peer="the bare loop of the same driver over the same batches: run, then argmax with numpy",
)
DUMMY_ROW = replace(ROW, name="P5 on the dummy driver", driver="dummy (hashes of tokens, 4,096 logits a row)")


@dataclass(frozen=True)
class Case:
    """So many programs of a language."""

    width: int
    language: str
    mode: str

    @property
    def name(self) -> str:
        """What the table calls it."""
        who = "engine-stepped" if self.mode == "collect" else "guest-stepped"
        return f"{self.width} x {self.language}, {who}"

    @property
    def goals(self) -> list[Goal]:
        """The goals that the case has."""
        bound = ENGINE_GOALS_US.get(self.width) if self.mode == "collect" else GUEST_GOALS_US[self.language] if self.width == 1 else None
        return [] if bound is None else [Goal("difference", bound)]


CASES = [Case(width, language, mode) for width in WIDTHS for mode in ("collect", "step") for language in LANGUAGES]


def on_pie_tiny(n_pages: int, width: int) -> Driver:
    """The cpu back end."""
    return open_driver(EMBEDDED_FOLDER, CpuOptions(n_pages=n_pages, max_batch_tokens=width))


def on_dummy(n_pages: int, _width: int) -> Driver:
    """The dummy driver, in the same loop in Python."""
    return DummyDriver("default", vocab_size=4096, n_pages=n_pages)


def measure(make: Callable[[int, int], Driver]) -> Iterator[Figure]:
    """Time per token of all programs together, ours and bare, in microseconds."""
    for width, n_tokens in WIDTHS.items():
        n_pages = width * (n_tokens // 16 + 2)
        ours_driver, bare_driver = make(n_pages, width), make(n_pages, width)
        recorded: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []

        def record(batch: Batch, logits: Any, recorded: list[Any] = recorded) -> None:
            recorded.append((batch.words.copy(), logits.argmax(axis=1)))

        with Generations(ours_driver, width) as engine:
            engine.observe = record
            engine.run("Rust", width, "collect", n_tokens)
            engine.observe = None
            n_rows = width * n_tokens

            def bare(driver: Any = bare_driver, recorded: list[Any] = recorded, n_rows: int = n_rows) -> float:
                batches = [(Batch(words), tokens) for words, tokens in recorded]
                start_s = time.perf_counter()
                answers = [driver.run(batch).argmax(axis=1) for batch, _ in batches]
                spent_s = time.perf_counter() - start_s
                if not all(np.array_equal(answer, tokens) for answer, (_, tokens) in zip(answers, batches, strict=True)):
                    raise RuntimeError("the bare loop gave other tokens than the engine")
                return 1e6 * spent_s / n_rows

            for case in (case for case in CASES if case.width == width):

                def ours(case: Case = case, engine: Generations = engine, n_tokens: int = n_tokens, n_rows: int = n_rows) -> float:
                    return 1e6 * engine.run(case.language, case.width, case.mode, n_tokens) / n_rows

                ours()
                samples = in_turns(ours, bare)
                note = shown_parts(engine.parts(case.language, width, case.mode, n_tokens), n_rows, "token")
                figure = Figure(case.name, "us/token", *samples, goals=case.goals, note=note)
                peer, tax = figure.median("peer"), figure.median("difference")
                show(f"P5 {case.name}: {peer:.2f} us bare, {tax:.2f} us tax; {note}")
                yield figure
        ours_driver.close()
        bare_driver.close()


class Tax:
    """Time per token beyond the bare loop, in microseconds."""

    params: ClassVar[list[str]] = [case.name for case in CASES]
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 900
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure(on_pie_tiny))

    def track_tax(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the differences by round."""
        return figures[case].median("difference")


class TaxOnDummy:
    """The same on the dummy driver."""

    params: ClassVar[list[str]] = Tax.params
    param_names: ClassVar[list[str]] = Tax.param_names
    timeout = Tax.timeout
    unit = Tax.unit

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(DUMMY_ROW, measure(on_dummy))

    def track_tax(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the differences by round."""
        return figures[case].median("difference")
