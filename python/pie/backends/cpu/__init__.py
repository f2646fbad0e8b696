"""The CPU back end: numpy, cffi and the kernels; no torch."""

from pie.backends.cpu.driver import CpuDriver, CpuOptions, open_driver

OPTIONS = CpuOptions
"""What `open_driver` takes."""

__all__ = ["OPTIONS", "CpuDriver", "CpuOptions", "open_driver"]
