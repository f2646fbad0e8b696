"""A device and graphs that say in which order they were called, on torch's CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from pie.backends.cuda.device import HostDevice


@dataclass(frozen=True)
class Mark:
    """Where in a stream, by a number."""

    number: int
    stream: str


class RecordingDevice(HostDevice):
    """Notes every call in `calls`; what is called is done at once."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.fails: list[BaseException] = []
        """What the next waiting for the end of a batch raises."""
        self.fails_launching: list[BaseException] = []
        """What the next launch of a batch raises, where it plans attention."""
        self.free = 1 << 40
        self._numbers = count()
        self._streams: list[str] = []

    @contextmanager
    def _in(self, stream: str) -> Iterator[None]:
        self._streams.append(stream)
        self.calls.append(f"{stream}:")
        try:
            yield
        finally:
            self._streams.pop()

    def computing(self) -> Any:
        return self._in("compute")

    def copying(self) -> Any:
        return self._in("copies")

    def mark(self) -> Mark:
        mark = Mark(next(self._numbers), self._streams[-1])
        self.calls.append(f"mark {mark.number} in {mark.stream}")
        return mark

    def wait(self, mark: Mark) -> None:
        assert mark.stream != self._streams[-1], "a stream waits for itself"
        self.calls.append(f"{self._streams[-1]} waits for {mark.number}")

    def synchronize(self, mark: Mark) -> None:
        self.calls.append(f"host waits for {mark.number}")
        failures = self.fails_launching if self._streams else self.fails
        if failures:
            raise failures.pop(0)

    def pinned(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        self.calls.append(f"pinned {list(shape)} {dtype}")
        return super().pinned(shape, dtype)

    def locked(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        self.calls.append(f"locked {list(shape)} {dtype}")
        return super().locked(shape, dtype)

    def free_bytes(self) -> int:
        return self.free

    def finish(self) -> None:
        self.calls.append("host waits for all")

    def give_back(self) -> None:
        self.calls.append("give back")


class RecordingGraphs:
    """Keeps what it is given, and runs it again where a graph would be replayed, into the same outputs."""

    def __init__(self, device: RecordingDevice | None = None, *, bytes_each: int = 0) -> None:
        self._device = device
        self._bytes_each = bytes_each
        self.n_replays = 0

    def record(self, body: Callable[[], tuple[Tensor, ...]]) -> tuple[Callable[[], None], tuple[Tensor, ...]]:
        outputs = body()
        if self._device is not None:
            self._device.calls.append(f"capture {len(outputs[0])}")
            self._device.free -= self._bytes_each

        def replay() -> None:
            self.n_replays += 1
            if self._device is not None:
                self._device.calls.append("replay")
            for place, value in zip(outputs, body(), strict=True):
                place.copy_(value)

        return replay, outputs
