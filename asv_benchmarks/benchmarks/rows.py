"""What one row of logits costs: the AND of four run lists, applied to the row, and a token drawn from it.

The peer does the same with the masks as bits and torch's top-k and softmax, on one thread, in the same run; its mask is
applied by xgrammar where that is installed. The other samplers, and probes, are measured beside it.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness import Figure, Goal, Row, rust_bench, save, show

VOCAB_SIZE = 151_936
N_MASKS = 4
TOP_K = 50
N_TIMES = 40
P20 = "top-k 50, 4 masks"

ROW = Row(
    name="masked-row",
    title="One row of 151,936 logits: four masks ANDed and applied, a token drawn, and other reads",
    driver="none",
    path="masks::intersection -> sample, and read_row, in Rust, on one core",
    peer="the masks as bits ANDed and applied (by xgrammar where it is installed), torch topk, softmax and multinomial, one thread",
)


def _peer() -> Callable[[], Any] | None:
    """Draws a token as the peer does; None where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    random = np.random.default_rng(1)
    logits = torch.from_numpy(random.normal(0, 3, (1, VOCAB_SIZE)).astype(np.float32))
    masks = [torch.from_numpy(random.integers(-(1 << 31), 1 << 31, (1, VOCAB_SIZE // 32)).astype(np.int32)) for _ in range(N_MASKS)]
    if importlib.util.find_spec("xgrammar") is not None:
        apply = importlib.import_module("xgrammar").apply_token_bitmask_inplace
    else:
        shifts = torch.arange(32, dtype=torch.int32)

        def apply(row: Any, bits: Any) -> None:
            row.masked_fill_(((bits.unsqueeze(-1) >> shifts) & 1).reshape(1, -1) == 0, -torch.inf)

    def draw() -> Any:
        row = logits.clone()
        apply(row, masks[0] & masks[1] & masks[2] & masks[3])
        values, tokens = torch.topk(row, TOP_K)
        return tokens[0, torch.multinomial(torch.softmax(values / 0.8, -1), 1)[0]]

    return draw


def _times(draw: Callable[[], Any], n_rounds: int) -> list[float]:
    """Microseconds of a draw, by round."""
    samples = []
    for _ in range(n_rounds + 1):
        began = time.perf_counter()
        for _ in range(N_TIMES):
            draw()
        samples.append((time.perf_counter() - began) * 1e6 / N_TIMES)
    return samples[1:]


def measure() -> Iterator[Figure]:
    """The samples of `rust/core/benches/rows.rs`, and of the peer for the case that it has."""
    peer = _peer()
    if peer is None:
        show("masked-row: torch is not installed, and the peer is left out")
    for line in rust_bench("rows", package="pie-core", timeout_s=600):
        case, ours = line["case"], line["ours"]
        is_goal = case == P20
        yield Figure(case, line["unit"], ours, _times(peer, len(ours)) if is_goal and peer else [], [Goal("ours", 25.0)] if is_goal else [])


class MaskedRow:
    """The cost of the row of the goal, in microseconds, and how it compares with the peer's."""

    params: ClassVar[list[str]] = ["ours", "ratio"]
    param_names: ClassVar[list[str]] = ["measure"]
    timeout = 900
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_masked(self, figures: dict[str, Figure], measure: str) -> float:
        """The median over the rounds."""
        figure = figures[P20]
        return figure.median("ours") if measure == "ours" or not figure.peer else figure.median("ratio")
