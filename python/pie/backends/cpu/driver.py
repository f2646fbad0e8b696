"""The driver: a checkpoint ready to run on this machine's CPU."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pie.backends.base import Capabilities, DriverError
from pie.backends.cpu.build import build_plan
from pie.backends.cpu.library import KernelError, Library
from pie.backends.cpu.plan import ISA_CODES, Plan, PlanOptions
from pie.batch import Batch
from pie.errors import PieError
from pie.models.loader import Checkpoint, load_checkpoint
from pie.models.spec import DecoderSpec, DtypeName

_DTYPES: dict[str, DtypeName] = {"bfloat16": "bfloat16", "float32": "float32"}
_ELEMENT_BYTES: dict[DtypeName, int] = {"bfloat16": 2, "float32": 4}
_MAX_THREADS = 1024


@dataclass(frozen=True)
class CpuOptions:
    """How a model is run."""

    page_size: int = 16
    """Tokens of a page."""
    n_pages: int | None = None
    """Pages of the pool; as many as `kv_bytes` hold if not given."""
    kv_bytes: int = 256 << 20
    """Memory for keys and values."""
    max_batch_tokens: int = 512
    """Most tokens of a batch."""
    dtype: str | None = None
    """`bfloat16` or `float32`: of weights, inputs of linears, keys and values. That of the checkpoint if not given."""
    n_threads: int | None = None
    """Threads, the caller's included; one a core if not given. Results do not depend on it."""
    isa: str = "best"
    """Instruction set: `best` of this CPU, `portable` or `avx512`. Results do not depend on it."""
    library: Path | None = None
    """The kernels' shared object; that of the installed package if not given."""


def open_driver(folder: Path, options: CpuOptions | None = None) -> CpuDriver:
    """Loads a model folder: maps the weights, packs them, and starts the threads.

    Raises PieError `invalid-model` for the folder, `invalid-argument` for the options.
    """
    return CpuDriver(load_checkpoint(folder), options or CpuOptions())


def page_bytes(spec: DecoderSpec, dtype: DtypeName, page_size: int) -> int:
    """Bytes of one page: the keys and values of `page_size` tokens in all layers."""
    heads = spec.attention
    return 2 * spec.n_layers * heads.n_kv_heads * heads.head_dim * page_size * _ELEMENT_BYTES[dtype]


class CpuDriver:
    """Runs batches of one model; see `pie.backends.base.Driver`. The bits of a row depend on its own sequence alone."""

    def __init__(self, checkpoint: Checkpoint, options: CpuOptions) -> None:
        spec, dtype = checkpoint.spec, _dtype(checkpoint, options)
        n_pages = _n_pages(spec, dtype, options)
        if options.isa not in ISA_CODES:
            raise _invalid(f"isa is {options.isa!r}; choose one of {', '.join(ISA_CODES)}")
        self._capabilities = Capabilities(
            backend="cpu",
            vocab_size=spec.vocab_size,
            max_positions=spec.max_positions,
            page_size=options.page_size,
            n_pages=n_pages,
            max_batch_tokens=options.max_batch_tokens,
        )
        plan_options = PlanOptions(
            dtype=dtype,
            isa=options.isa,
            n_threads=_n_threads(options),
            max_tokens=options.max_batch_tokens,
            vocab_size=spec.vocab_size,
            max_positions=spec.max_positions,
            page_size=options.page_size,
            n_pages=n_pages,
            n_layers=spec.n_layers,
            n_heads=spec.attention.n_heads,
            n_kv_heads=spec.attention.n_kv_heads,
            head_dim=spec.attention.head_dim,
        )
        library = Library(options.library)
        try:
            plan = Plan(library, plan_options)
            plan.set_kv(np.zeros(plan_options.kv_shape, np.uint16 if dtype == "bfloat16" else np.float32))
            self.program = build_plan(plan, checkpoint)
        except KernelError as error:
            raise _invalid(str(error)) from None
        except MemoryError:
            raise _invalid(f"{n_pages} pages of {page_bytes(spec, dtype, options.page_size)} bytes do not fit; lower kv_bytes") from None
        self.plan = plan
        self._lock = threading.Lock()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves."""
        return self._capabilities

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Computes a batch and answers its logits, float32 [R, V]; DriverError where it does not fit, and nothing has changed."""
        for name, values in (("adapters", batch.seq_adapter), ("media", batch.seq_media)):
            if values.any():
                raise DriverError(f"the cpu back end runs no {name}, but a sequence of the batch has some")
        logits = np.empty((batch.n_rows, self._capabilities.vocab_size), np.float32)
        with self._lock:
            if self._closed:
                raise DriverError("the driver is closed")
            try:
                self.plan.step(batch.words, logits)
            except KernelError as error:
                raise DriverError(str(error)) from None
        return logits

    def close(self) -> None:
        """Gives threads and memory back; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self.plan.close()


def _invalid(message: str) -> PieError:
    return PieError("invalid-argument", message)


def _dtype(checkpoint: Checkpoint, options: CpuOptions) -> DtypeName:
    if options.dtype is None:
        return checkpoint.dtype
    dtype = _DTYPES.get(options.dtype)
    if dtype is None:
        raise _invalid(f"dtype is {options.dtype!r}; choose one of {', '.join(_DTYPES)}")
    if dtype == "bfloat16" and checkpoint.dtype == "float32":
        raise _invalid(f"{checkpoint.folder} has float32 weights, which are not rounded to bfloat16; leave dtype out")
    return dtype


def _n_pages(spec: DecoderSpec, dtype: DtypeName, options: CpuOptions) -> int:
    for name in ("page_size", "max_batch_tokens"):
        if getattr(options, name) < 1:
            raise _invalid(f"{name} is {getattr(options, name)}; it must be at least 1")
    if options.n_pages is not None:
        return options.n_pages
    n_bytes = page_bytes(spec, dtype, options.page_size)
    n_pages = options.kv_bytes // n_bytes
    if n_pages < 1:
        raise _invalid(f"kv_bytes is {options.kv_bytes}; one page of {options.page_size} tokens needs {n_bytes}")
    return n_pages


def _n_threads(options: CpuOptions) -> int:
    if options.n_threads is None:
        return min(_MAX_THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if not 1 <= options.n_threads <= _MAX_THREADS:
        raise _invalid(f"n_threads is {options.n_threads}; it must be 1 to {_MAX_THREADS}")
    return options.n_threads
