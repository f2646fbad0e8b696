"""The options that this back end has of its own."""

from __future__ import annotations

from dataclasses import dataclass

from pie.backends.base import DriverOptions


@dataclass(frozen=True)
class CudaOptions(DriverOptions):
    """How a model is run on a CUDA device."""

    device: str = "cuda:0"
    """The device by torch's name. On `cpu` the same code runs with the stand-ins of `pie.backends.cuda.standins`."""
    deterministic: bool = True
    """Whether the bits of a row depend on its own sequence alone; without, the library's fastest kernels are used."""
    cascade_bytes: int = 32 << 20
    """Sequences attend to a prefix that they share at once where that saves a layer from reading so many bytes of keys
    and values; 0: wherever it saves any. Never where the bits of a row depend on its own sequence alone.
    """
    graph_seqs: int = 256
    """Decode batches of up to so many sequences are captured as CUDA graphs; 0: none is."""
    graph_bytes: int = 1 << 30
    """Device memory that the graphs may take; capturing ends where it is reached."""
    graph_s: float = 60.0
    """How long capturing may take at the start, in seconds."""
    tensor_parallel: int = 1
    """Ranks that compute the model together. Each has a device, from `device` on, and a process of its own."""
