"""The device as the driver sees it: streams, events, pinned memory. A stand-in shows the order of calls."""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor

_cuda: Any = torch.cuda
"""Its streams, its events and its runtime are not typed."""


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
        """Host memory that the device copies from and to by itself; torch takes the next power of two of bytes for it.

        It may be given back while a copy is under way.
        """

    def locked(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Much of such memory, of that size exactly, for as long as the model is there; all of it is touched.

        Raises RuntimeError where the host has not so much.
        """

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

    def locked(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """See `Device`."""
        memory = torch.empty(shape, dtype=dtype)
        if memory.nbytes:
            runtime = _cuda.cudart()
            place = memory.data_ptr()
            code = int(runtime.cudaHostRegister(place, memory.nbytes, 0))
            if code:
                raise RuntimeError(f"cudaHostRegister of {memory.nbytes} bytes gives the error {code}")
            weakref.finalize(memory, runtime.cudaHostUnregister, place)
        return memory

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

    def locked(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """See `Device`. Memory that is never touched costs nothing."""
        return torch.empty(shape, dtype=dtype)

    def free_bytes(self) -> int:
        """See `Device`. The memory of the host is looked after by `pie.memory`."""
        return 1 << 62

    def finish(self) -> None:
        """See `Device`."""

    def give_back(self) -> None:
        """See `Device`."""


_TOO_LITTLE = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "DefaultCPUAllocator: can't allocate memory")
"""What CUDA and its libraries say where no room is left, and torch where this is the memory of the host."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error of torch or a library says that the device's memory does not suffice, or came of one that did.

    Not all of them are `torch.OutOfMemoryError`: a graph that finds no room is an error of CUDA, and where one is
    captured meanwhile, what is said last is that the capture failed.
    """
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in _TOO_LITTLE):
            return True
        error = error.__cause__ or error.__context__
    return False


def first_line(error: BaseException) -> str:
    """What an error of torch says, without what it explains behind that."""
    return str(error).partition("\n")[0]
