"""How wide the batches are when sixteen programs step by themselves, and what that yields."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar

from pie.batch import Batch
from pie.engine import Engine
from pie.programs import load_program

ROOT = Path(__file__).resolve().parents[2]
N_PROGRAMS = 16
ANIMALS = ["fox", "dog", "cat", "bird", "fish", "horse", "cow", "pig", "hen", "goat", "sheep", "mouse", "bear", "wolf", "owl", "frog"]
PATHS = {
    "rust": ROOT / "build/programs/chat.wasm",
    "typescript": ROOT / "examples/typescript/chat.ts",
    "python": ROOT / "examples/python/chat.py",
}


class SteppingPrograms:
    """Sixteen chat examples at once on the embedded model, each asking for every step."""

    params: ClassVar[list[str]] = [*PATHS, "mixed"]
    param_names: ClassVar[list[str]] = ["language"]

    def setup(self, language: str) -> None:
        """Runs them once and keeps what was seen."""
        paths = list(PATHS.values()) if language == "mixed" else [PATHS[language]]
        self.live: list[frozenset[int]] = []
        with Engine() as engine:
            model = engine.add_model(observe=self._observe)
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
            self.elapsed_s = time.perf_counter() - start_s

    def _observe(self, batch: Batch, logits: Any) -> None:
        self.live.append(frozenset(int(context) for context in batch.seq_context))

    def track_width_while_all_generate(self, language: str) -> float:
        """Mean sequences a batch between the first batch and the first program's last one."""
        last = {context: batch_idx for batch_idx, live in enumerate(self.live) for context in live}
        widths = [len(live) for live in self.live[: min(last.values()) + 1]]
        return sum(widths) / len(widths)

    def track_width_of_the_whole_run(self, language: str) -> float:
        """Mean sequences a batch, the programs that end late included."""
        return sum(map(len, self.live)) / len(self.live)

    def track_tokens_per_second(self, language: str) -> float:
        """Tokens of all programs together."""
        return sum(map(len, self.live)) / self.elapsed_s
