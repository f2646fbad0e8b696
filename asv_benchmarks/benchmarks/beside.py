"""One row of a batch that is masked, probed, or drawn from by its own sampler: what it costs the rows beside it."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.engines import PROMPT, Device, Generations, NullDriver, byte_model
from benchmarks.harness import ROUNDS, Figure, Goal, Row, in_turns, save, show
from pie.backends.base import Driver
from pie.backends.cpu import CpuOptions, open_driver
from pie.config import EMBEDDED_FOLDER

WIDTHS = (8, 32)
N_TOKENS = {8: 200, 32: 100}
"""Tokens that each program generates, by the number of programs."""
VOCAB_SIZE = 151_936
DEVICE_S = 0.025
"""What a step of a model of 0.6 billion parameters takes on two cores."""
TINY, WIDE = "pie-tiny", "151,936 logits a row, a device of 25 ms"
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a probe": ({"step": {"probe": "entropy"}}, {"step": {}}),
    "a whole row": ({"step": {"probe": "logits"}}, {"step": {}}),
    "a mask": ({"collect": {"mask": [0, 100, 100, 3000]}}, {"collect": {}}),
    "a nucleus": ({"collect": {"nucleus": 0.95}}, {"collect": {}}),
    "min-p": ({"collect": {"minP": 0.05}}, {"collect": {}}),
    "top-k": ({"collect": {"topK": 50}}, {"collect": {}}),
}
"""What one of the programs wants, and what it wants in the other case. Probes are read step by step."""
CASES = [f"{kind} beside {width - 1}, {what}" for what in (TINY, WIDE) for width in WIDTHS for kind in KINDS]

ROW = Row(
    name="beside",
    title="A step of a batch of which one row has a probe, a mask or a sampler of its own",
    driver="cpu, pie-tiny, all cores; and a device that answers with rows of 151,936 logits",
    path="the end of one batch to the end of the next, by the median",
    peer="the same programs, of which none wants anything of its row",
)


def measure() -> list[Figure]:
    """The time of a step by what one program wants, and without."""
    tiny = [_figure(width, kind, TINY, _tiny(width), EMBEDDED_FOLDER) for width in WIDTHS for kind in KINDS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        byte_model(folder)
        wide = [_figure(width, kind, WIDE, _wide(width), folder) for width in WIDTHS for kind in KINDS]
    return tiny + wide


def _n_pages(width: int) -> int:
    return width * (N_TOKENS[width] // 16 + 2)


def _tiny(width: int) -> Driver:
    return open_driver(EMBEDDED_FOLDER, CpuOptions(n_pages=_n_pages(width), max_batch_tokens=width))


def _wide(width: int) -> Driver:
    driver = NullDriver(VOCAB_SIZE, n_pages=_n_pages(width), max_batch_tokens=width)
    # Logits that spread as those of a model do: a nucleus of them has many tokens.
    driver.spread(np.random.default_rng(1))
    return Device(driver, DEVICE_S, follows=False)


def _figure(width: int, kind: str, what: str, driver: Driver, folder: Path) -> Figure:
    wanted, plain = KINDS[kind]
    with Generations(driver, width, folder) as engine:

        def step_us(work: dict[str, Any]) -> float:
            n_tokens = N_TOKENS[width]
            # Each begins with tokens of its own, so that no two of them read the same pages.
            every = [{"prompt": [*PROMPT, 10 + index], "tokens": n_tokens} for index in range(width)]
            ((mode, own),) = work.items()
            engine.run_each("JavaScript", [{mode: every[0] | own}, *({"collect": one} for one in every[1:])], n_tokens)
            ended = engine.driver.ended_s
            return 1e6 * statistics.median(now - before for now, before in zip(ended[1:], ended[:-1], strict=True))

        step_us(plain)
        samples = in_turns(lambda: step_us(wanted), lambda: step_us(plain), ROUNDS)
    figure = Figure(f"{kind} beside {width - 1}, {what}", "us/step", *samples, goals=[Goal("ratio", 1.02)])
    show(f"beside: {figure.case}: {figure.median('ours'):.0f} us, {figure.median('ratio'):.3f} of without")
    return figure


class Beside:
    """(Time of a step with one such row) / (time without)."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 900
    unit = "of the time without"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ratio")
