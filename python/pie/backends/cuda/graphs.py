"""CUDA graphs of decode batches: captured at the start for some sizes, replayed with padding."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol, TypeVar

import torch

from pie.backends.cuda.device import Device, first_line, is_out_of_memory

_Output = TypeVar("_Output")
_cuda: Any = torch.cuda
"""Its streams are not typed."""
_WARM_UPS = 2
"""Runs before a capture: kernels are compiled, and libraries take their memory, outside of it."""


class Recorder(Protocol):
    """Records what is launched. A stand-in of this class shows the order of calls."""

    def record(self, body: Callable[[], _Output]) -> tuple[Callable[[], None], _Output]:
        """What launches all of `body` again, and its outputs, which each replay writes anew.

        A graph reads from where the tensors of `body` lie, so whatever launches it keeps `body`.
        """


class GraphRecorder:
    """Records CUDA graphs, which share their memory: one runs at a time."""

    def __init__(self, device: torch.device) -> None:
        self._memory: Any = torch.cuda.graph_pool_handle()
        # torch has one stream to capture on for the whole process, of the device that captured first.
        self._stream: Any = _cuda.Stream(device)

    def record(self, body: Callable[[], _Output]) -> tuple[Callable[[], None], _Output]:
        """See `Recorder`."""
        graph = torch.cuda.CUDAGraph()
        # What other threads do with a device meanwhile, another model's say, is no part of it and does not end it.
        recording: AbstractContextManager[Any] = torch.cuda.graph(
            graph, pool=self._memory, stream=self._stream, capture_error_mode="thread_local"
        )
        with recording:
            output = body()
        return partial(_replay, graph, body), output


def _replay(graph: Any, _kept: Callable[[], Any]) -> None:
    """Launches a graph, and keeps the memory of what it reads from being given to others."""
    graph.replay()


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
        self._time_s = time_s
        self._begin_s = clock()
        self._free_bytes = device.free_bytes()

    def spent(self) -> str | None:
        """Why nothing more is captured; None where something is."""
        taken_s, n_taken = self._clock() - self._begin_s, self._free_bytes - self.device.free_bytes()
        why = None
        if taken_s > self._time_s:
            why = f"graph_s allows {self._time_s:g} s, and {taken_s:.1f} s are over"
        elif n_taken > self._n_bytes:
            why = f"graph_bytes allows {_mib(self._n_bytes)}, and {_mib(n_taken)} are taken"
        if self._agreed is not None and self._agreed(why is not None):
            return why or "another rank has no more time or memory for them"
        return why


class Graphs:
    """Graphs of one kind, by the number of sequences."""

    def __init__(self, recorder: Recorder, budget: Budget) -> None:
        self._recorder = recorder
        self._budget = budget
        self._replays: dict[int, tuple[Callable[[], None], Any]] = {}
        self._sizes: list[int] = []
        self.left: list[int] = []
        """The sizes that were wanted and are not captured, ascending."""
        self.why_left = ""

    @property
    def captured(self) -> list[int]:
        """The sizes that there are, ascending."""
        return list(self._sizes)

    def capture(self, wanted: Sequence[int], prepare: Callable[[int], Callable[[], Any]]) -> None:
        """Captures what `prepare(n)` returns for each size, the smallest first, as long as time and memory last.

        Whatever is larger then runs without a graph.
        """
        device = self._budget.device
        for index, size in enumerate(wanted):
            if why := self._budget.spent():
                self.left, self.why_left = list(wanted[index:]), why
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
                self.left, self.why_left = list(wanted[index:]), f"the device has no memory left for them ({first_line(error)})"
                return
            self._sizes = sorted(self._replays)

    def clear(self) -> None:
        """Drops all of them, with what they read."""
        self._replays.clear()
        self._sizes.clear()

    def told(self, what: str, instead: str = "are launched kernel by kernel") -> str | None:
        """Which sizes of `what` have no graph, what they do and why, in a sentence; None where all have one."""
        if not self.left:
            return None
        listed = ", ".join(map(str, self.left))
        return f"{what} of {listed} sequences have no CUDA graph and {instead}: {self.why_left}"

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


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 20):.0f} MiB"
