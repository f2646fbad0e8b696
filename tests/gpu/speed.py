"""How fast the driver is, against a bare loop.

That is the same model as CUDA graphs of cuBLAS, torch and FlashInfer, whose steps feed each other on the device, with
nothing beside them.

The rows are G1 to G4 of the goals: decode at one sequence against the memory's bandwidth and the bare loop, decode at
several widths, the time in which the device has nothing to do, and what fixed bits cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from gpu.place import SHAPE_06B, SMALL, Place, Row, judged
from oracle.sampler import Sampler
from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.decoder import Decoder, Tokens
from pie.backends.cuda.device import CudaDevice
from pie.backends.cuda.graphs import GraphRecorder
from pie.backends.cuda.group import Alone
from pie.backends.cuda.share import Parts
from pie.backends.cuda.weights import load_weights
from pie.batch import Batch
from pie.models.loader import load_checkpoint
from support.arenas import Draw, Feed, batch

PAGE_SIZE = 16
ROUNDS = 5
PROMPT = 256
"""Tokens that each sequence has before it is decoded."""


class BareLoop:
    """Decodes sequences that all grow by one token a step."""

    def __init__(self, place: Place, model: Any, width: int, n_steps: int) -> None:
        checkpoint, device = load_checkpoint(model), torch.device(place.device)
        self._spec, self._width, self._calls = checkpoint.spec, width, place.calls(deterministic=False)
        heads, n_each = self._spec.attention, -(-(PROMPT + n_steps + 8) // PAGE_SIZE)
        weights = load_weights(checkpoint, torch.bfloat16, device)
        decoder = Decoder(self._spec, weights, self._calls, width, Alone())
        self._kv = torch.zeros(
            (self._spec.n_layers, width * n_each, 2, PAGE_SIZE, heads.n_kv_heads, heads.head_dim), device=device
        ).bfloat16()
        self._pages = torch.arange(width * n_each, dtype=torch.int32, device=device).view(width, n_each)
        self._device, self._length, self._place_device = device, PROMPT, place.torch_device()
        workspace = torch.zeros(128 << 20 if place.is_gpu else 1, dtype=torch.uint8, device=device)
        words = [torch.zeros(n, dtype=torch.int32, device=device) for n in (width + 1, width + 1, width * n_each, width)]
        names = ("qo_indptr_buf", "paged_kv_indptr_buf", "paged_kv_indices_buf", "paged_kv_last_page_len_buf")
        graph = {"use_cuda_graph": True, **dict(zip(names, words, strict=True))}
        self._attention = self._calls.attention(workspace, "NHD", backend="fa2", **graph)
        self._tokens = Tokens(*(torch.zeros(width, dtype=torch.int32, device=device) for _ in range(4)))

        def body() -> tuple[torch.Tensor, ...]:
            logits, _ = decoder.forward(self._tokens, self._attention, self._kv, None)
            self._tokens.ids.copy_(logits.argmax(dim=1))
            return (logits,)

        self._place()
        for _ in range(2):
            body()
        self._launch: Callable[[], Any] = GraphRecorder(torch.device(place.device)).record(body)[0] if place.is_gpu else body

    def close(self) -> None:
        """Drops the graph, which keeps what it reads, and with it this."""
        del self._launch

    def _place(self) -> None:
        """Where the next token of each sequence goes."""
        n_pages, width = -(-(self._length + 1) // PAGE_SIZE), self._width
        self._tokens.positions.fill_(self._length)
        self._tokens.pages.copy_(self._pages[:, n_pages - 1])
        self._tokens.slots.fill_(self._length % PAGE_SIZE)
        heads = self._spec.attention
        self._attention.plan(
            torch.arange(width + 1, dtype=torch.int32),
            torch.arange(width + 1, dtype=torch.int32) * n_pages,
            self._pages[:, :n_pages].reshape(-1),
            torch.full((width,), self._length % PAGE_SIZE + 1, dtype=torch.int32),
            heads.n_heads, heads.n_kv_heads, heads.head_dim, PAGE_SIZE,
            causal=True, sm_scale=heads.scale, q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16, non_blocking=True,
        )  # fmt: skip

    def run(self, n_steps: int) -> float:
        """Seconds of a step."""
        self._length = PROMPT
        start_s, device, planned = time.perf_counter(), self._place_device, None
        for _ in range(n_steps):
            if planned is not None:
                # A plan is written to memory that the plan before is copied from.
                device.synchronize(planned)
            self._place()
            planned = device.mark()
            self._launch()
            self._length += 1
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return (time.perf_counter() - start_s) / n_steps


def pages_of_each(n_steps: int, prompt: int = PROMPT) -> int:
    """Pages of a sequence that is decoded behind so many tokens."""
    return -(-(prompt + n_steps + 8) // PAGE_SIZE)


def decode_steps(width: int, n_steps: int, sampler: Sampler | None = None, *, prompt: int = PROMPT, is_shared: bool = False) -> list[Batch]:
    """The arenas of a decode, each step of which follows the one before.

    With `is_shared` the full pages of the prompt are those of the first sequence. What they hold does not matter for
    the time.
    """
    n_each, n_shared = pages_of_each(n_steps, prompt), prompt // PAGE_SIZE if is_shared else 0
    pages = [[*range(n_shared), *range(n_each * seq + n_shared, n_each * (seq + 1))] for seq in range(width)]
    draws = [Draw(sampler or Sampler(), seed=7)]
    steps = []
    for step in range(n_steps):
        feeds = [
            Feed([1], mine, start=prompt + step, rows=[0], draws=draws, follows=seq if step else None) for seq, mine in enumerate(pages)
        ]
        steps.append(batch(feeds, page_size=PAGE_SIZE, batch_id=step + 1, before=step))
    return steps


def run_steps(driver: CudaDriver, steps: Sequence[Batch]) -> None:
    """Two batches under way."""
    answers: list[Any] = []
    for asked in steps:
        answers.append(driver.launch(asked))
        if len(answers) == 2:
            answers.pop(0)()
    answers.pop()()


def decode(driver: CudaDriver, width: int, n_steps: int) -> float:
    """Seconds of a step of the driver, two batches under way, the arenas made before."""
    steps = decode_steps(width, n_steps)
    start_s = time.perf_counter()
    run_steps(driver, steps)
    return (time.perf_counter() - start_s) / n_steps


def speed(place: Place) -> Iterator[Row]:
    """G1, G2 and G4: a step of the driver against one of the bare loop, alternately, as the median of ratios."""
    model = place.model("shape-06b", SHAPE_06B) if place.is_gpu else place.model("small", SMALL)
    widths, n_steps = ((1, 8, 64, 256, 512), 200) if place.is_gpu else ((2,), 3)
    bandwidth = _bandwidth(place)
    yield ("bandwidth of a copy", f"{bandwidth / 1e9:.0f} GB/s", "")
    weights_bytes = sum(2 * int(np.prod(shape)) for shape in load_checkpoint(model).spec.shapes().values())
    for width in widths:
        n_pages = width * -(-(PROMPT + n_steps + 8) // PAGE_SIZE)
        bare = BareLoop(place, model, width, n_steps)
        sizes = {"n_pages": n_pages, "max_batch_tokens": max(512, width), "graph_seqs": width, "graph_bytes": 4 << 30, "graph_s": 300.0}
        fixed, free = (place.driver(model, deterministic=deterministic, **sizes) for deterministic in (True, False))
        yield from graphed(place, (fixed, free), width)
        times: dict[str, list[float]] = {"bare": [], "fixed": [], "free": []}
        for _ in range(ROUNDS):
            times["bare"].append(bare.run(n_steps))
            times["free"].append(decode(free, width, n_steps))
            times["fixed"].append(decode(fixed, width, n_steps))
        bare.close()
        del bare
        fixed.close()
        free.close()
        step_s = {name: statistics.median(found) for name, found in times.items()}
        ratio, cost = (
            statistics.median(a / b for a, b in zip(times[x], times[y], strict=True)) for x, y in (("bare", "free"), ("fixed", "free"))
        )
        least = 0.98 if width == 1 else 0.97
        judge = judged if place.is_gpu else _unjudged
        yield judge(f"speed at {width} against the bare loop", f"{ratio:.2f}x ({step_s['free'] * 1e6:.0f} us)", is_right=ratio >= least)
        yield judge(f"cost of fixed bits at {width}", f"{cost - 1:.0%}", is_right=cost <= 1.10)
        if width == 1:
            share = weights_bytes / step_s["free"] / bandwidth
            yield judged("share of the bandwidth at 1", f"{share:.0%}", is_right=share >= 0.6)


def graphed(place: Place, drivers: Sequence[CudaDriver], width: int) -> Iterator[Row]:
    """A row that is wrong where batches of that width have no graph, so that what is measured is not what is meant."""
    if place.is_gpu and not all(width in driver.graph_sizes for driver in drivers):
        yield judged(f"graphs of {width} sequences", "not captured", is_right=False)


def prompts(place: Place) -> Iterator[Row]:
    """G4 of prompts: what fixed bits cost where a prompt is computed in chunks, and rows of 16 queries are the tile."""
    model = place.model("shape-06b", SHAPE_06B) if place.is_gpu else place.model("small", SMALL)
    for length in (512, 2048, 8192) if place.is_gpu else (32,):
        sizes = {"n_pages": length // PAGE_SIZE, "max_batch_tokens": min(2048, length), "graph_seqs": 0}
        fixed, free = (place.driver(model, deterministic=deterministic, **sizes) for deterministic in (True, False))
        times = [[prefill(driver, length, min(2048, length)) for driver in (fixed, free)] for _ in range(ROUNDS)]
        cost = statistics.median(mine / theirs for mine, theirs in times)
        found = f"{cost - 1:.0%} ({1e3 * min(mine for mine, _ in times):.1f} ms)"
        yield (judged if place.is_gpu else _unjudged)(f"cost of fixed bits, a prompt of {length} tokens", found, is_right=cost <= 1.10)
        fixed.close()
        free.close()


def prefill(driver: CudaDriver, length: int, chunk: int) -> float:
    """Seconds of a prompt in chunks, the last of which wants a row."""
    steps = [
        batch(
            [Feed([1 + slot % 100 for slot in range(start, start + chunk)], range(length // PAGE_SIZE), start=start,
                  rows=[chunk - 1] if start + chunk == length else [])],
            page_size=PAGE_SIZE, batch_id=index + 1, before=index,
        )
        for index, start in enumerate(range(0, length, chunk))
    ]  # fmt: skip
    start_s = time.perf_counter()
    if len(steps) == 1:
        driver.run(steps[0])
    else:
        run_steps(driver, steps)
    return time.perf_counter() - start_s


def _unjudged(what: str, found: str, *, is_right: bool) -> Row:
    """A row whose figure says nothing of a GPU."""
    return (what, found, "not run on a GPU")


def _bandwidth(place: Place) -> float:
    """Bytes a second that a copy reads and writes."""
    source = torch.zeros((1 << 30) if place.is_gpu else 1 << 16, dtype=torch.uint8, device=place.device)
    target, times = torch.empty_like(source), []
    for _ in range(8):
        start_s = time.perf_counter()
        target.copy_(source)
        place.torch_device().finish()
        times.append(time.perf_counter() - start_s)
    return 2 * source.numel() / min(times)


class TimedGraphs(GraphRecorder):
    """Takes the time before and behind each replay, on the device.

    What the host does until it launches the graph is not in between: the device waits for it, and that is asked.
    Neither are the copies of a batch there and of its tokens back, in which the device computes nothing.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._of = device
        self.times: list[tuple[Any, Any]] = []

    def record(self, body: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        launch, output = super().record(body)

        def timed() -> None:
            events: Any = torch.cuda.Event
            start, end = events(enable_timing=True), events(enable_timing=True)
            start.record(torch.cuda.current_stream(self._of))
            launch()
            end.record(torch.cuda.current_stream(self._of))
            self.times.append((start, end))

        return timed, output


def idle(place: Place) -> Iterator[Row]:
    """G3: how long the device computes nothing between the graph of a batch and that of the next one."""
    if not place.is_gpu:
        yield ("idle between steps", "there is no device", "not run")
        return
    model, n_steps = place.model("shape-06b", SHAPE_06B), 200
    for width in (1, 64, 512):
        n_pages = width * -(-(PROMPT + n_steps + 8) // PAGE_SIZE)
        device = CudaDevice(place.device)
        graphs = TimedGraphs(device.name)
        options = CudaOptions(
            device=place.device, n_pages=n_pages, swap_bytes=0, graph_seqs=width, graph_bytes=4 << 30, graph_s=300.0,
            max_batch_tokens=max(512, width),
        )  # fmt: skip
        driver = CudaDriver(load_checkpoint(model), options, parts=Parts(device, place.calls(), graphs))
        if lacking := list(graphed(place, [driver], width)):
            yield from lacking
            driver.close()
            continue
        graphs.times.clear()
        decode(driver, width, n_steps)
        pairs = graphs.times[n_steps // 4 :]
        gaps = [end.elapsed_time(start) for (_, end), (start, _) in pairwise(pairs)]
        whole = pairs[0][0].elapsed_time(pairs[-1][1])
        share = sum(max(0.0, gap) for gap in gaps) / whole
        yield judged(f"idle between steps at {width}", f"{share:.1%}", is_right=share <= 0.02)
        driver.close()
