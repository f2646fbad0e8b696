"""Opens the driver for the conformance test, by `--driver gpu.opening:on_gpu`: in bfloat16, for which FlashInfer has
kernels, and in float32, for which it has none. `expects` of `tests/support/conformance.py` says with which model.
"""

from __future__ import annotations

from pathlib import Path

from pie.backends.base import DriverOptions
from pie.backends.cuda import CudaDriver, CudaOptions, open_driver
from support.conformance import Expectations, expects

BFLOAT16 = Expectations(model={"dtype": "BF16", "head_dim": 64}, element_bytes=2, spread=0.1)
"""A wrong slot, mask or position moves a row by its whole spread; rounding to 16 bits by a few hundredths of it."""


@expects(BFLOAT16)
def on_gpu(folder: Path, options: DriverOptions) -> CudaDriver:
    """On the first CUDA device."""
    return open_driver(folder, CudaOptions(**vars(options)))


def on_gpu_in_float32(folder: Path, options: DriverOptions) -> CudaDriver:
    """On the first CUDA device, without FlashInfer."""
    return open_driver(folder, CudaOptions(**vars(options)))


@expects(BFLOAT16)
def on_cpu(folder: Path, options: DriverOptions) -> CudaDriver:
    """On torch's CPU."""
    return open_driver(folder, CudaOptions(**vars(options), device="cpu"))


def on_cpu_in_float32(folder: Path, options: DriverOptions) -> CudaDriver:
    """On torch's CPU."""
    return open_driver(folder, CudaOptions(**vars(options), device="cpu"))
