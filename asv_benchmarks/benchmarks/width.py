"""How wide the batches are when sixteen programs step by themselves, and what that yields."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from benchmarks.harness import ROOT, ROUNDS, Figure, Row, save, show
from pie.batch import Batch
from pie.engine import Engine
from pie.programs import load_program

N_PROGRAMS = 16
ANIMALS = ["fox", "dog", "cat", "bird", "fish", "horse", "cow", "pig", "hen", "goat", "sheep", "mouse", "bear", "wolf", "owl", "frog"]
PATHS = {
    "Rust": ROOT / "build/programs/chat.wasm",
    "TypeScript": ROOT / "examples/typescript/chat.ts",
    "Python": ROOT / "examples/python/chat.py",
}
LANGUAGES = [*PATHS, "mixed"]

ROW = Row(
    name="width",
    title="Sixteen chat examples at once, each asking for every step",
    driver="cpu, pie-tiny (bfloat16), all cores",
    path="program -> engine -> driver loop in Python -> driver",
    peer="none: the widest batch is 16",
)


def chats(language: str) -> tuple[list[frozenset[int]], float]:
    """Runs them once.

    Returns the contexts of each batch, and the seconds from the first batch to the end of the last program.
    """
    paths = list(PATHS.values()) if language == "mixed" else [PATHS[language]]
    live: list[frozenset[int]] = []

    def observe(batch: Batch, logits: Any) -> None:
        live.append(frozenset(int(context) for context in batch.seq_context))

    with Engine() as engine:
        model = engine.add_model(observe=observe)
        processes = [
            engine.launch(load_program(paths[idx % len(paths)]), input={"prompt": f"Tell me a short story about a {animal}."}, seed=idx)
            for idx, animal in enumerate(ANIMALS)
        ]
        while model.stats()["n_requests"] < N_PROGRAMS:
            os.sched_yield()
        start_s = time.perf_counter()
        engine.start()
        for process in processes:
            while process.next_event() is not None:
                pass
        return live, time.perf_counter() - start_s


def measure() -> Iterator[Figure]:
    """Mean sequences a batch while all generate, and tokens per second of all together."""
    for language in LANGUAGES:
        widths, rates = [], []
        for _ in range(ROUNDS):
            live, spent_s = chats(language)
            last = {context: batch_idx for batch_idx, contexts in enumerate(live) for context in contexts}
            together = live[: min(last.values()) + 1]
            widths.append(sum(map(len, together)) / len(together))
            rates.append(sum(map(len, live)) / spent_s)
        show(f"width: {language}: {widths}, {rates}")
        yield Figure(f"{language}: width while all generate", "sequences", widths)
        yield Figure(f"{language}: all programs together", "tokens/s", rates)


class SteppingPrograms:
    """Width and throughput of programs that step by themselves."""

    params: ClassVar[list[str]] = [
        f"{language}: {what}" for language in LANGUAGES for what in ("width while all generate", "all programs together")
    ]
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_width(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
