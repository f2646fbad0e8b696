"""The CPU back end: numpy, cffi and the kernels; no torch."""

from pie.backends.cpu.driver import CpuDriver, CpuOptions, open_driver

__all__ = ["CpuDriver", "CpuOptions", "open_driver"]
