"""The device as the driver sees it: streams, events, pinned memory. A stand-in shows the order of calls."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor

_cuda: Any = torch.cuda
"""Its streams and events are not typed."""


class Device(Protocol):
    """What the driver asks of a device, beside operations of torch on its tensors."""

    name: torch.device

    def computing(self) -> AbstractContextManager[Any]:
        """The stream of the batches: what is called inside is done in order, and later."""

    def copying(self) -> AbstractContextManager[Any]:
        """The stream of copies to and from host memory."""

    def mark(self) -> Any:
        """A mark in the stream that is being filled."""

    def wait(self, mark: Any) -> None:
        """Has the stream that is being filled wait for a mark of another one. The host does not wait."""

    def synchronize(self, mark: Any) -> None:
        """Has the host wait for a mark."""

    def pinned(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Host memory that the device copies from and to by itself."""

    def free_bytes(self) -> int:
        """Memory of the device that nobody has."""

    def finish(self) -> None:
        """Has the host wait until the device has nothing to do."""

    def give_back(self) -> None:
        """Gives back what torch keeps of the device's memory for later use."""


class CudaDevice:
    """A CUDA device; see `Device`."""

    def __init__(self, name: str) -> None:
        self.name = torch.device(name)
        self._compute = _cuda.Stream(self.name)
        self._copies = _cuda.Stream(self.name)

    def computing(self) -> AbstractContextManager[Any]:
        """See `Device`."""
        return torch.cuda.stream(self._compute)

    def copying(self) -> AbstractContextManager[Any]:
        """See `Device`."""
        return torch.cuda.stream(self._copies)

    def mark(self) -> Any:
        """See `Device`."""
        event = _cuda.Event()
        event.record(torch.cuda.current_stream(self.name))
        return event

    def wait(self, mark: Any) -> None:
        """See `Device`."""
        torch.cuda.current_stream(self.name).wait_event(mark)

    def synchronize(self, mark: Any) -> None:
        """See `Device`."""
        mark.synchronize()

    def pinned(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """See `Device`."""
        return torch.empty(shape, dtype=dtype, pin_memory=True)

    def free_bytes(self) -> int:
        """See `Device`."""
        return int(torch.cuda.mem_get_info(self.name)[0])

    def finish(self) -> None:
        """See `Device`."""
        torch.cuda.synchronize(self.name)

    def give_back(self) -> None:
        """See `Device`."""
        torch.cuda.empty_cache()


class HostDevice:
    """The CPU in the place of a device: whatever is called is done at once; see `Device`."""

    def __init__(self) -> None:
        self.name = torch.device("cpu")

    def computing(self) -> AbstractContextManager[Any]:
        """See `Device`."""
        return nullcontext()

    def copying(self) -> AbstractContextManager[Any]:
        """See `Device`."""
        return nullcontext()

    def mark(self) -> Any:
        """See `Device`."""
        return None

    def wait(self, mark: Any) -> None:
        """See `Device`."""

    def synchronize(self, mark: Any) -> None:
        """See `Device`."""

    def pinned(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """See `Device`. Memory that is never touched costs nothing."""
        return torch.empty(shape, dtype=dtype)

    def free_bytes(self) -> int:
        """See `Device`. The memory of the host is looked after by `pie.memory`."""
        return 1 << 62

    def finish(self) -> None:
        """See `Device`."""

    def give_back(self) -> None:
        """See `Device`."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or of a library says that the device's memory does not suffice.

    Not all of them are `torch.OutOfMemoryError`: a graph that finds no room is an error of CUDA.
    """
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)
