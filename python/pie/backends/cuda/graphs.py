"""CUDA graphs of decode batches: captured at the start for some sizes, replayed with padding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import torch

from pie.backends.cuda.device import Device

_Output = TypeVar("_Output")
_WARM_UPS = 2
"""Runs before a capture: kernels are compiled, and libraries take their memory, outside of it."""


class Recorder(Protocol):
    """Records what is launched. A stand-in of this class shows the order of calls."""

    def record(self, body: Callable[[], _Output]) -> tuple[Callable[[], None], _Output]:
        """What launches all of `body` again, and its outputs, which each replay writes anew."""


class GraphRecorder:
    """Records CUDA graphs, which share their memory: one runs at a time."""

    def __init__(self) -> None:
        self._memory: Any = torch.cuda.graph_pool_handle()

    def record(self, body: Callable[[], _Output]) -> tuple[Callable[[], None], _Output]:
        """See `Recorder`."""
        graph = torch.cuda.CUDAGraph()
        recording: AbstractContextManager[Any] = torch.cuda.graph(graph, pool=self._memory)
        with recording:
            output = body()
        return graph.replay, output


def sizes(n_most: int) -> Iterator[int]:
    """Sizes of batches up to `n_most`: each is at most an eighth larger than the one before, or by one or eight."""
    size = 1
    while size < n_most:
        yield size
        size += 1 if size < 4 else 4 if size < 16 else 8 if size < 64 else size // 8
    if n_most > 0:
        yield n_most


class Graphs:
    """The graphs of one model, by the number of sequences."""

    def __init__(
        self, recorder: Recorder, device: Device, *, n_bytes: int, time_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._recorder = recorder
        self._device = device
        self._n_bytes = n_bytes
        self._time_s = time_s
        self._clock = clock
        self._replays: dict[int, tuple[Callable[[], None], Any]] = {}

    @property
    def captured(self) -> list[int]:
        """The sizes that there are, ascending."""
        return sorted(self._replays)

    def capture(self, wanted: list[int], prepare: Callable[[int], Callable[[], Any]]) -> None:
        """Captures what `prepare(n)` returns for each size, the smallest first, as long as time and memory last.

        Whatever is larger then runs without a graph.
        """
        start_s, free_bytes = self._clock(), self._device.free_bytes()
        for size in wanted:
            if self._clock() - start_s > self._time_s or free_bytes - self._device.free_bytes() > self._n_bytes:
                return
            try:
                body = prepare(size)
                for _ in range(_WARM_UPS):
                    body()
                self._device.finish()
                self._replays[size] = self._recorder.record(body)
            except torch.OutOfMemoryError:
                self._device.give_back()
                return

    def size_for(self, n: int) -> int | None:
        """The smallest size that holds `n` sequences; None where there is none."""
        return min((size for size in self._replays if size >= n), default=None)

    def replay(self, size: int) -> Any:
        """Launches the graph of that size; returns its outputs."""
        launch, output = self._replays[size]
        launch()
        return output
