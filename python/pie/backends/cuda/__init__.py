"""The CUDA back end: torch, FlashInfer, xgrammar and kernels in Triton; it draws and follows.

With `device="cpu"` the same code runs on torch's CPU, by which nearly all of it is tested.
"""

from pie.backends.cuda.driver import CudaDriver, open_driver
from pie.backends.cuda.options import CudaOptions

OPTIONS = CudaOptions
"""What `open_driver` takes."""

__all__ = ["OPTIONS", "CudaDriver", "CudaOptions", "open_driver"]
