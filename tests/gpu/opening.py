"""Opens the driver for the conformance test, by `--driver gpu.opening:on_gpu`."""

from __future__ import annotations

from pathlib import Path

from pie.backends.base import DriverOptions
from pie.backends.cuda import CudaDriver, CudaOptions, open_driver


def on_gpu(folder: Path, options: DriverOptions) -> CudaDriver:
    """On the first CUDA device."""
    return open_driver(folder, CudaOptions(**vars(options)))


def on_cpu(folder: Path, options: DriverOptions) -> CudaDriver:
    """On torch's CPU."""
    return open_driver(folder, CudaOptions(**vars(options), device="cpu"))
