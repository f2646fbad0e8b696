"""CUDA graphs of decode batches: captured at the start for some sizes, replayed with padding."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import torch

from pie.backends.cuda.device import Device, is_out_of_memory

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


class Budget:
    """The time and the device memory that all graphs of a model may take."""

    def __init__(
        self,
        device: Device,
        *,
        n_bytes: int,
        time_s: float,
        clock: Callable[[], float] = time.monotonic,
        agreed: Callable[[bool], bool] | None = None,
    ) -> None:
        """The clock begins to run.

        `agreed` says whether it is spent for any of the devices that capture together; None: there is one.
        """
        self.device = device
        self.is_alone = agreed is None
        self._n_bytes = n_bytes
        self._clock = clock
        self._agreed = agreed
        self._end_s = clock() + time_s
        self._free_bytes = device.free_bytes()

    def is_spent(self) -> bool:
        """Whether nothing more is captured."""
        is_spent = self._clock() > self._end_s or self._free_bytes - self.device.free_bytes() > self._n_bytes
        return is_spent if self._agreed is None else self._agreed(is_spent)


class Graphs:
    """Graphs of one kind, by the number of sequences."""

    def __init__(self, recorder: Recorder, budget: Budget) -> None:
        self._recorder = recorder
        self._budget = budget
        self._replays: dict[int, tuple[Callable[[], None], Any]] = {}
        self._sizes: list[int] = []

    @property
    def captured(self) -> list[int]:
        """The sizes that there are, ascending."""
        return list(self._sizes)

    def capture(self, wanted: Sequence[int], prepare: Callable[[int], Callable[[], Any]]) -> None:
        """Captures what `prepare(n)` returns for each size, the smallest first, as long as time and memory last.

        Whatever is larger then runs without a graph.
        """
        device = self._budget.device
        for size in wanted:
            if self._budget.is_spent():
                return
            try:
                body = prepare(size)
                for _ in range(_WARM_UPS):
                    body()
                device.finish()
                self._replays[size] = self._recorder.record(body)
            except RuntimeError as error:
                # Where several ranks capture, the others are in the middle of the layers and wait for this one there:
                # it cannot leave them and go on.
                if not is_out_of_memory(error) or not self._budget.is_alone:
                    raise
                device.give_back()
                return
            self._sizes = sorted(self._replays)

    def has(self, size: int) -> bool:
        """Whether there is a graph of that very size."""
        return size in self._replays

    def size_for(self, n: int) -> int | None:
        """The smallest size that holds `n` sequences; None where there is none."""
        at = bisect_left(self._sizes, n)
        return self._sizes[at] if at < len(self._sizes) else None

    def replay(self, size: int) -> Any:
        """Launches the graph of that size; returns its outputs."""
        launch, output = self._replays[size]
        launch()
        return output
