"""What a decode step costs the host, on any machine, with a device that computes nothing, and one of 1 ms a batch."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from gpu.place import SMALL, Place, Row, judged
from gpu.speed import PAGE_SIZE, PROMPT, decode_steps, run_steps
from oracle.sampler import Sampler
from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.calls import Calls, standin_calls
from pie.backends.cuda.device import HostDevice
from pie.backends.cuda.share import Parts
from pie.batch import Batch
from pie.models.loader import load_checkpoint
from support.launching import ROOT

WIDTHS = (1, 64, 512)
ROUNDS = 12
N_STEPS = 60
N_TOKENS = {1: 1000, 64: 400, 512: 200}
"""Tokens that each program generates."""
MOST_US, MOST_WAITING_US = 150.0, 10.0
BATCH_S = 0.001


class NoAttention:
    """Plans and computes nothing."""

    _mask_indptr_buf = None

    def __init__(self, *_args: Any, **_how: Any) -> None:
        pass

    def reset_workspace_buffer(self, *_buffers: Any) -> None:
        pass

    def plan(self, *_args: Any, **_how: Any) -> None:
        pass

    def run(self, q: torch.Tensor, _kv: torch.Tensor, *, return_lse: bool = False) -> Any:
        return (q, q.new_zeros(q.shape[:2], dtype=torch.float32)) if return_lse else q


class NoGraphs:
    """Replays nothing: the outputs stay as they were recorded."""

    def __init__(self) -> None:
        self.n_replays = 0

    def record(self, body: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        output = body()

        def replay() -> None:
            self.n_replays += 1

        return replay, output


def _no_linear(x: torch.Tensor, weight: torch.Tensor, _bias: Any, dtype: torch.dtype, out: torch.Tensor | None = None) -> torch.Tensor:
    """Zeros: what is captured is never computed again."""
    return x.new_zeros((len(x), len(weight)), dtype=dtype) if out is None else out.zero_()


def no_calls() -> Calls:
    """Calls that compute little, for capturing: the layers are not what is timed."""
    return replace(standin_calls(), attention=NoAttention, linear=_no_linear)


def opened(model: Any, width: int, n_steps: int, device: HostDevice, **more: Any) -> tuple[CudaDriver, NoGraphs]:
    """A driver with one graph size, whose device computes nothing."""
    n_pages = width * -(-(PROMPT + n_steps + 8) // PAGE_SIZE)
    options = CudaOptions(
        device="cpu", n_pages=n_pages, swap_bytes=0, graph_seqs=width, graph_s=1e6, graph_bytes=1 << 40, max_batch_tokens=512, **more
    )
    graphs = NoGraphs()
    return CudaDriver(load_checkpoint(model), options, parts=Parts(device, no_calls(), graphs)), graphs


def host(place: Place) -> Iterator[Row]:
    """The Python of a decode step: checks, views, the copy, launches that are only counted.

    What the processor was busy with it, the best of rounds in turns.
    """
    model, samplers = place.model("small", SMALL), {"the greatest": Sampler(), "top-p": Sampler(temperature=0.8, top_p=0.9)}
    drivers = {width: opened(model, width, N_STEPS, HostDevice()) for width in WIDTHS}
    steps = {(width, how): decode_steps(width, N_STEPS, sampler) for width in WIDTHS for how, sampler in samplers.items()}
    found: dict[tuple[int, str], list[tuple[float, float]]] = {case: [] for case in steps}
    for _ in range(ROUNDS):
        for case, asked in steps.items():
            start_s, busy_s = time.perf_counter(), time.process_time()
            run_steps(drivers[case[0]][0], asked)
            found[case].append(((time.process_time() - busy_s) / N_STEPS, (time.perf_counter() - start_s) / N_STEPS))
    for (width, how), times in found.items():
        busy_us, wall_us = (1e6 * min(column) for column in zip(*times, strict=True))
        yield judged(f"a step of {width} sequences, {how}", f"{busy_us:.0f} us (elapsed {wall_us:.0f} us)", is_right=busy_us <= MOST_US)
    for driver, graphs in drivers.values():
        assert graphs.n_replays == 3 * ROUNDS * N_STEPS, "a step had no graph"
        driver.close()
    yield from sharing_host(model)


def sharing_host(model: Any) -> Iterator[Row]:
    """With free bits, where all share their prompt: it is found and attention planned, but for what FlashInfer does."""
    width = WIDTHS[-1]
    driver, graphs = opened(model, width, N_STEPS, HostDevice(), deterministic=False, cascade_bytes=0)
    steps, busy_s = decode_steps(width, N_STEPS, is_shared=True), []
    for _ in range(ROUNDS):
        start_s = time.process_time()
        run_steps(driver, steps)
        busy_s.append((time.process_time() - start_s) / N_STEPS)
    assert graphs.n_replays == ROUNDS * N_STEPS, "a step had no graph"
    driver.close()
    busy_us = 1e6 * min(busy_s)
    yield judged(f"a step of {width} sequences that share a prompt, free bits", f"{busy_us:.0f} us", is_right=busy_us <= MOST_US)


class Clock(HostDevice):
    """A device that is a clock: it takes 1 ms for each batch, and runs them one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.started_s: list[float] = []
        self.ended_s: list[float] = []

    def mark(self) -> float:
        """The end of the batch that was launched."""
        begin_s = max(time.perf_counter(), self.ended_s[-1] if self.ended_s else 0.0)
        self.started_s.append(begin_s)
        self.ended_s.append(begin_s + BATCH_S)
        return self.ended_s[-1]

    def synchronize(self, mark: float) -> None:
        # A sleep would end too late by as much as is measured.
        while time.perf_counter() < mark:
            pass


class Clocked:
    """A driver as the engines of the benchmarks take it, with the times of its device."""

    def __init__(self, driver: CudaDriver, device: Clock) -> None:
        self.capabilities = driver.capabilities
        self._driver, self._device = driver, device
        self.n_rows = 0

    @property
    def started_s(self) -> list[float]:
        return self._device.started_s

    @property
    def ended_s(self) -> list[float]:
        return self._device.ended_s

    def launch(self, batch: Batch) -> Any:
        return self._driver.launch(batch)

    def run(self, batch: Batch) -> Any:
        return self._driver.run(batch)

    def reset(self) -> None:
        self._device.started_s, self._device.ended_s = [], []

    def close(self) -> None:
        self._driver.close()


def waiting(place: Place) -> Iterator[Row]:
    """P11 with this driver: what a device of 1 ms waits between two batches, whose programs an engine steps."""
    sys.path[:0] = [str(ROOT / "asv_benchmarks")]
    from benchmarks.engines import Generations, byte_model

    model = place.model("bytes", SMALL | {"vocab_size": 256, "max_position_embeddings": 4096})
    byte_model(model)
    for width, n_tokens in N_TOKENS.items():
        device = Clock()
        driver, graphs = opened(model, width, n_tokens, device)
        rounds: list[list[float]] = []
        with Generations(Clocked(driver, device), width, model) as engine:
            for _ in range(4):
                n_before = graphs.n_replays
                engine.run("Rust", width, "collect", n_tokens)
                gaps = [begin - end for begin, end in zip(device.started_s[1:], device.ended_s[:-1], strict=True)]
                assert len(gaps) >= n_tokens - 1
                assert graphs.n_replays - n_before >= n_tokens - 2
                rounds.append([1e6 * gap for gap in gaps])
        middle, mean = (min(how(gaps) for gaps in rounds) for how in (statistics.median, statistics.mean))
        late = min(sum(gap > MOST_WAITING_US for gap in gaps) / len(gaps) for gaps in rounds)
        figure = f"{middle:.1f} us a step (median; mean {mean:.1f} us; {late:.0%} of the steps wait longer than {MOST_WAITING_US:.0f} us)"
        yield judged(f"a device of 1 ms waits, {width} sequences", figure, is_right=mean <= MOST_WAITING_US)
