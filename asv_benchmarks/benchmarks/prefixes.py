"""P17: prompts of which a part was computed before."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from benchmarks.engines import PATIENCE_S, launch
from benchmarks.harness import BUILD, ROUNDS, Figure, Goal, Row, in_turns, rust_bench, save, show
from pie import _engine
from pie.backends.cpu import CpuOptions, open_driver
from pie.batch import Batch
from pie.config import EMBEDDED_FOLDER
from pie.events import Event
from pie.programs import RUNTIMES
from pie.runner import drive

N_TOKENS, N_SEEN = 1_920, 1_500
"""Tokens of a prompt, and of one that was seen before as a whole."""
SHARES = (0, 50, 90, 99)
"""Parts of a prompt that were seen before, in percent."""
TIMES = [f"{share} % seen before" for share in SHARES]
SAVED = [f"tokens not computed, {share} % seen before" for share in SHARES[1:]]
AGAIN = "time to the first token, all of 1,500 tokens seen before"
ALONE = [f"engine alone, {share} % seen before" for share in SHARES]
LOSS = "cost of the search, 0 % seen before"
GOALS = {LOSS: [Goal("ours", 0.3)], AGAIN: [Goal("ratio", 0.1)]} | {case: [Goal("ratio", 0.98, at_least=True)] for case in SAVED}

ROW = Row(
    name="P17",
    title="Prompts of 1,920 tokens of which a part was computed before",
    driver="cpu, pie-tiny (bfloat16), all cores; `engine alone`: null, 2,048 tokens",
    path="launch of a Rust program -> its prompt -> engine -> driver loop in Python -> driver -> first token; or the engine's own calls",
    peer="the same without the prefix cache; of tokens those that were seen before; of the time to the first token the first program's",
)


class Noted:
    """A driver that notes the tokens that it computes, and the greedy choice of its last row."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.capabilities = driver.capabilities
        self.close = driver.close
        self.n_tokens = 0
        self.chosen = -1

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Runs the batch."""
        logits: npt.NDArray[np.float32] = self._driver.run(batch)
        self.n_tokens += len(batch.tokens)
        if len(logits):
            self.chosen = int(logits[-1].argmax())
        return logits


class Prompted:
    """An engine that is asked for the first token behind prompts."""

    def __init__(self, *, prefix_cache: bool) -> None:
        self.driver = Noted(open_driver(EMBEDDED_FOLDER, CpuOptions(n_pages=4096)))
        sizes = self.driver.capabilities
        self._engine = _engine.Engine(cache_dir=str(BUILD / "cache"), runtimes_dir=str(RUNTIMES))
        self._model = self._engine.add_model(
            "default",
            str(EMBEDDED_FOLDER),
            {"max_batch_tokens": sizes.max_batch_tokens, "prefix_cache": prefix_cache},
            vars(sizes),
        )
        self._loop = threading.Thread(target=drive, args=(self._model, self.driver))
        self._loop.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._engine.stop()
        self._loop.join()
        self.driver.close()

    def ask(self, prompt: list[int]) -> float:
        """Milliseconds from the launch of a program until it has the first token."""
        start_s = time.perf_counter()
        process = launch(self._engine, "Rust", {"collect": {"prompt": prompt, "tokens": 1}})
        event = process.next_event(PATIENCE_S)
        spent_s = time.perf_counter() - start_s
        if event != Event.Return("1"):
            raise RuntimeError(f"the program ended otherwise than with a token: {event}")
        return 1e3 * spent_s


def tokens(salt: int, n: int) -> list[int]:
    """So many tokens that begin as no others do."""
    return [int(token) for token in np.random.default_rng(salt).integers(300, 4000, n)]


def measure() -> Iterator[Figure]:
    """Time and computed tokens of a prompt, ours and without the cache."""
    BUILD.joinpath("cache").mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = rust_bench("store", "prefixes", package="pie-core", timeout_s=300)
    alone = [Figure(line["case"], line["unit"], line["ours"], line["peer"]) for line in lines]
    salts = iter(range(1, 1 << 20))
    with Prompted(prefix_cache=True) as ours, Prompted(prefix_cache=False) as peer:
        seen = tokens(0, N_TOKENS)
        ours.ask(seen)
        peer.ask(seen)
        for share, case in zip(SHARES, TIMES, strict=True):
            n_seen = N_TOKENS * share // 100
            prompts = [[*seen[:n_seen], *tokens(next(salts), N_TOKENS - n_seen)] for _ in range(3 * ROUNDS)]
            saved = N_TOKENS * len(prompts) + ours.driver.n_tokens
            figure = Figure(case, "ms", *asked(ours, peer, prompts))
            show(f"P17 {case}: {figure.median('ours'):.2f} ms, {figure.median('ratio'):.3f} of without")
            yield figure
            if not share:
                in_all_us = 1e3 * figure.median("peer")
                losses = [100 * loss_us / in_all_us for loss_us in alone[0].samples("difference")]
                yield Figure(
                    LOSS, "%", losses, goals=GOALS[LOSS], note="what `engine alone` takes more, as a part of the time without the cache"
                )
            else:
                saved -= ours.driver.n_tokens
                yield Figure(SAVED[SHARES.index(share) - 1], "tokens", [saved], [n_seen * len(prompts)], GOALS[SAVED[0]])
        prompts = [tokens(next(salts), N_SEEN) for _ in range(3 * ROUNDS)]
        first, again = zip(*((ours.ask(prompt), ours.ask(prompt)) for prompt in prompts), strict=True)
        yield Figure(AGAIN, "ms", list(again), list(first), GOALS[AGAIN])
    yield from alone


def asked(ours: Prompted, peer: Prompted, prompts: list[list[int]]) -> tuple[list[float], list[float]]:
    """Asks both for every prompt, in turns; both must choose the same token."""
    left = {ours: iter(prompts), peer: iter(prompts)}
    chosen: dict[Prompted, list[int]] = {ours: [], peer: []}

    def ask(which: Prompted) -> float:
        spent_ms = which.ask(next(left[which]))
        chosen[which].append(which.driver.chosen)
        return spent_ms

    samples = in_turns(lambda: ask(ours), lambda: ask(peer), len(prompts))
    if chosen[ours] != chosen[peer]:
        raise RuntimeError("with the prefix cache other tokens were chosen than without")
    return samples


class PrefixReuse:
    """Time of a prompt with the prefix cache, as a part of that without."""

    params: ClassVar[list[str]] = [*TIMES, *SAVED, AGAIN, *ALONE]
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the ratios by round."""
        return figures[case].median("ratio")
