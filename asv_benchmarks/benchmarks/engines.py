"""Engines for the rows that go through the driver loop: so many programs on one model, generating greedily."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from benchmarks.harness import BUILD, ROOT, SEED
from pie import _engine
from pie.backends.base import Capabilities, Driver
from pie.batch import Batch
from pie.compiler import COMMAND
from pie.config import EMBEDDED_FOLDER
from pie.events import AnyEvent, Event
from pie.launch import Launch
from pie.programs import RUNTIMES
from pie.runner import drive

PROMPT = [1]
"""What every program begins with: one token, so that no step is a prefill."""
PATIENCE_S = 120.0
MAX_CONTEXT = 1 << 15
MEMORY_BYTES = 16 << 30
"""Of all users, of which the one that runs gets three eighths: 512 programs in Python hold more than a GiB, beside
those of the run before that are still being taken down.
"""

WORKLOADS = {
    "Rust": ROOT / "build/programs/workload.wasm",
    "JavaScript": ROOT / "asv_benchmarks/programs/workload.js",
    "Python": ROOT / "asv_benchmarks/programs/workload.py",
}


class NullDriver:
    """Answers at once and computes nothing: every row of logits prefers the same token."""

    def __init__(self, vocab_size: int, n_pages: int, max_batch_tokens: int) -> None:
        self._logits = np.zeros((max_batch_tokens, vocab_size), np.float32)
        self._logits[:, 5] = 1.0
        self.capabilities = Capabilities(
            backend="null",
            vocab_size=vocab_size,
            max_positions=1 << 15,
            page_size=16,
            n_pages=n_pages,
            max_batch_tokens=max_batch_tokens,
        )

    def spread(self, random: np.random.Generator) -> None:
        """Has every row of logits spread as those of a model do, in place of preferring one token."""
        self._logits[:] = random.normal(0, 3, self._logits.shape[1]).astype(np.float32)

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """The rows that are wanted."""
        return self._logits[: batch.n_rows]

    def close(self) -> None:
        """Nothing is held."""


class Timed:
    """A driver that notes when each of its runs begins and ends."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.capabilities = driver.capabilities
        self.started_s: list[float] = []
        self.ended_s: list[float] = []
        self.n_rows = 0

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Runs the batch."""
        self.started_s.append(time.perf_counter())
        logits = self._driver.run(batch)
        self.ended_s.append(time.perf_counter())
        self.n_rows += batch.n_rows
        return logits

    def close(self) -> None:
        """The driver belongs to who made it."""

    def reset(self) -> None:
        """Forgets what was noted."""
        self.started_s, self.ended_s, self.n_rows = [], [], 0


class Device(Timed):
    """The same on a device of its own, which takes as long for each batch and runs them one after the other.

    One that follows is given the next batch while it runs one. The device is a clock: what is noted are its times.
    """

    def __init__(self, driver: Driver, batch_s: float, *, follows: bool) -> None:
        super().__init__(driver)
        self.capabilities = dataclasses.replace(driver.capabilities, follows=follows)
        self._batch_s = batch_s

    def launch(self, batch: Batch) -> Callable[[], npt.NDArray[np.float32]]:
        """Begins the batch when the one before is done."""
        free_s = self.ended_s[-1] if self.ended_s else 0.0
        begin_s = max(time.perf_counter(), free_s)
        end_s = begin_s + self._batch_s
        self.started_s.append(begin_s)
        self.ended_s.append(end_s)
        self.n_rows += batch.n_rows
        logits = self._driver.run(batch)

        def wait() -> npt.NDArray[np.float32]:
            # A sleep would end too late by as much as is measured.
            while time.perf_counter() < end_s:
                pass
            return logits

        return wait

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Runs the batch to its end."""
        return self.launch(batch)()


class Generations:
    """An engine for so many programs beside one driver."""

    observe: Callable[[Batch, Any], None] | None = None
    """Sees each batch of the runs that follow, with its logits."""
    _spent_s: dict[str, float] | None = None
    """What the calls of the driver loop take, while that is noted."""

    def __init__(
        self, driver: Driver, n_programs: int, folder: Path = EMBEDDED_FOLDER, *, settings: Mapping[str, int] | None = None
    ) -> None:
        """`folder` holds the tokenizer; its vocabulary fits the driver's. `settings` are those of the section `engine`.

        A driver may note its times as `Timed` does.
        """
        self.driver: Any = driver if hasattr(driver, "started_s") else Timed(driver)
        cache = BUILD / "cache"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._engine = _engine.Engine(
            cache_dir=str(cache),
            runtimes_dir=str(RUNTIMES),
            compiler=COMMAND,
            settings={"max_processes": n_programs, "memory_bytes": MEMORY_BYTES, **(settings or {})},
        )
        serves = driver.capabilities
        self._model = self._engine.add_model(
            "default",
            str(folder),
            {"max_batch_seqs": n_programs, "max_batch_tokens": serves.max_batch_tokens},
            vars(dataclasses.replace(serves, max_positions=min(serves.max_positions, MAX_CONTEXT))),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._engine.stop()

    def run(self, language: str, n_programs: int, mode: str, n_tokens: int) -> float:
        """Generates with programs that all wait before the driver begins.

        Returns the seconds from the first batch to the end of the last one.

        `mode` is `collect`, where the engine steps, or `step`, where each program takes part in each step.
        """
        return self.run_each(language, [{mode: {"prompt": PROMPT, "tokens": n_tokens}}] * n_programs, n_tokens)

    def parts(self, language: str, n_programs: int, mode: str, n_tokens: int) -> dict[str, float]:
        """What one such run is made of, in seconds; it is a run of its own, since what notes the times takes some.

        `complete` draws and judges tokens, `next batch` waits for programs and plans, `driver` computes, and `loop` is
        the rest: the loop of Python and the views of its batches.
        """
        self._spent_s = dict.fromkeys(("complete", "next batch"), 0.0)
        try:
            whole_s = self.run(language, n_programs, mode, n_tokens)
            spent_s = self._spent_s
        finally:
            self._spent_s = None
        driver_s = sum(end - start for start, end in zip(self.driver.started_s, self.driver.ended_s, strict=True))
        return spent_s | {"driver": driver_s, "loop": max(0.0, whole_s - driver_s - sum(spent_s.values()))}

    def run_each(self, language: str, works: Sequence[Any], n_tokens: int) -> float:
        """The same with programs each of which has work of its own, and generates as many tokens."""
        n_programs = len(works)
        launched = [self._launch(language, work) for work in works]
        patience_s = time.monotonic() + PATIENCE_S
        while self._model.stats()["n_requests"] < n_programs:
            if (event := launched[0].next_event(0.0)) is not None or time.monotonic() > patience_s:
                raise RuntimeError(f"not every program asked for a token within {PATIENCE_S} s; the first said {event}")
            time.sleep(0.001)
        self.driver.reset()
        ends: list[AnyEvent] = []
        served = _Until(self._model, self._spent_s)
        loop = threading.Thread(target=drive, args=(served, self.driver), kwargs={"observe": self.observe})
        loop.start()
        for process in launched:
            while not process.ended:
                event = process.next_event(PATIENCE_S)
                if event is None:
                    raise RuntimeError(f"a program did nothing for {PATIENCE_S} s")
                ends.append(event)
        served.over = True
        loop.join()
        if ends != [Event.Return(str(n_tokens))] * n_programs:
            raise RuntimeError(f"programs ended otherwise than with {n_tokens} tokens: {sorted(set(map(str, ends)))[:3]}")
        return self.driver.ended_s[-1] - self.driver.started_s[0]

    def _launch(self, language: str, work: Any) -> _engine.Process:
        return launch(self._engine, language, work)


class _Until:
    """A model whose driver loop ends with its programs.

    A program that asks for a token that ran ahead of it gets it when the loop goes on.
    """

    def __init__(self, model: _engine.Model, spent_s: dict[str, float] | None) -> None:
        self._model = model
        self.next_work, self.complete, self.fail = model.next_work, model.complete, model.fail
        self.complete_drawn = model.complete_drawn
        if spent_s is not None:
            self.next_work = _noted(spent_s, "next batch", model.next_work)
            self.complete = _noted(spent_s, "complete", model.complete)
            self.complete_drawn = _noted(spent_s, "complete", model.complete_drawn)
        self.over = False

    @property
    def stopped(self) -> bool:
        """True when every program has ended."""
        return self.over or self._model.stopped


def _noted(spent_s: dict[str, float], part: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, with what it takes between the first batch and the last added to its part."""
    is_first = part == "next batch"

    def noted(*arguments: Any) -> Any:
        nonlocal is_first
        start_s = time.perf_counter()
        result = call(*arguments)
        # The first batch is what begins, and what is planned after the last one is nothing.
        if not is_first and (part == "complete" or result is not None):
            spent_s[part] += time.perf_counter() - start_s
        is_first = is_first and result is None
        return result

    return noted


def shown_parts(parts: Mapping[str, float], n: int, unit: str) -> str:
    """The parts of so many steps or tokens, as the note of a figure says them: the largest first."""
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return f"parts by {unit}, in a run of their own: " + ", ".join(f"{name} {1e6 * spent_s / n:.2f} us" for name, spent_s in ordered)


def byte_model(folder: Path) -> int:
    """Writes a tokenizer of 256 bytes, for steps in which drawing costs next to nothing.

    Returns the size of its vocabulary.
    """
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    characters = {byte: chr(byte) for byte in shown} | {byte: chr(256 + idx) for idx, byte in enumerate(hidden)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    content = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {characters[byte]: byte for byte in range(256)}, "merges": []},
    }
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return 256


def launch(engine: _engine.Engine, workload: str, work: Any) -> _engine.Process:
    """Launches the workload of a language."""
    text, path = json.dumps(work), WORKLOADS[workload]
    if path.suffix == ".wasm":
        return engine.launch(path.read_bytes(), Launch(text, seed=SEED))
    files = {path.name: path.read_bytes()}
    language = "python" if path.suffix == ".py" else "javascript"
    return engine.launch((language, files, path.name), Launch(text, seed=SEED))
