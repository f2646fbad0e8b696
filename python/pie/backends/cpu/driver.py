"""The driver: a checkpoint ready to run on this machine's CPU."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pie.backends.adapters.loaded import Adapters
from pie.backends.adapters.peft import Adapter
from pie.backends.base import (
    AdapterName,
    Capabilities,
    Command,
    DriverError,
    DriverOptions,
    ExportPages,
    FailedSequencesError,
    ImportPages,
)
from pie.backends.copying import measure_copy_ns
from pie.backends.cpu.build import build_plan
from pie.backends.cpu.library import KernelError, Library
from pie.backends.cpu.plan import ISA_CODES, LowRankPart, Plan, PlanOptions
from pie.backends.moving import Bytes, export_pages, import_pages, made_by
from pie.backends.sizes import capabilities, choose_dtype, invalid
from pie.backends.unsupported import unsupported
from pie.batch import Batch
from pie.models.loader import Checkpoint, load_checkpoint
from pie.models.spec import page_bytes

_MAX_THREADS = 1024
_PAGES_VERSION = 1
"""Raised with every change of the kernels that changes a bit of what they store."""


@dataclass(frozen=True)
class CpuOptions(DriverOptions):
    """How a model is run on the CPU."""

    n_threads: int | None = None
    """Threads, the caller's included; one a core if not given. Results do not depend on it."""
    isa: str = "auto"
    """Instruction set: `auto` (the best of this CPU), `avx512`, `avx2` or `portable`. Results do not depend on it."""
    library: Path | None = None
    """The kernels' shared object; that of the installed package if not given."""


def open_driver(folder: Path, options: CpuOptions | None = None) -> CpuDriver:
    """Loads a model folder: maps the weights, packs them, and starts the threads.

    Raises PieError `invalid-model` for the folder, `invalid-argument` for the options.
    """
    return CpuDriver(load_checkpoint(folder), options or CpuOptions())


class CpuDriver:
    """Runs batches of one model; see `pie.backends.base.Driver`. The bits of a row depend on its own sequence alone."""

    def __init__(self, checkpoint: Checkpoint, options: CpuOptions) -> None:
        spec, dtype = checkpoint.spec, choose_dtype(checkpoint, options)
        if options.isa not in ISA_CODES:
            raise invalid(f"isa is {options.isa!r}; choose one of {', '.join(ISA_CODES)}", "isa")
        limits = capabilities("cpu", checkpoint, dtype, options)
        n_pages = limits.n_pages
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
            element = np.uint16 if dtype == "bfloat16" else np.float32
            kv = np.zeros(plan_options.kv_shape, element)
            plan.set_kv(kv)
            # The system gives memory of zeros page by page, as it is written: what is never swapped out costs nothing.
            host = np.zeros((limits.host_pages, *plan_options.kv_shape[1:]), element)
            if limits.host_pages:
                plan.set_host(host)
            self.program = build_plan(plan, checkpoint)
        except KernelError as error:
            raise invalid(str(error)) from None
        except MemoryError:
            option = "kv_bytes" if options.n_pages is None else "n_pages"
            needed = f"{n_pages} pages and {limits.host_pages} on the host of {page_bytes(spec, dtype, options.page_size)} bytes do not fit"
            raise invalid(f"{needed}; lower {option} or swap_bytes", option) from None
        n_bytes = page_bytes(spec, dtype, options.page_size)
        copy_ns = measure_copy_ns(
            lambda page, slot: np.copyto(host[slot], kv[page]), lambda slot, page: np.copyto(kv[page], host[slot]), limits, n_bytes
        )
        heads = spec.attention
        maker = made_by("cpu", _PAGES_VERSION, dtype, spec.n_layers, heads.n_kv_heads, heads.head_dim)
        self._capabilities = replace(limits, copy_page_ns=copy_ns, adapters=True, page_bytes=n_bytes, pages_made_by=maker)
        # Pages as bytes, one behind the other.
        self._pages: Bytes = kv.reshape(n_pages, -1).view(np.uint8)
        self.plan = plan
        self._adapters = Adapters(spec, options.adapter_bytes, _PlanHolder(plan), plan.noise)
        self._lock = threading.Lock()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves."""
        return self._capabilities

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Makes the copies of a batch, computes it and returns its logits, float32 [R, V].

        Raises DriverError where it does not fit, and then nothing has changed; FailedSequencesError where some
        sequences have media, or an adapter that is not loaded.
        """
        return self.run_into(batch, np.empty((batch.n_rows, self._capabilities.vocab_size), np.float32))

    def run_into(self, batch: Batch, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Does the same with the rows in `logits`."""
        reasons = unsupported(batch, self._capabilities)
        with self._lock:
            if self._closed:
                raise DriverError("the driver is closed")
            try:
                self.plan.step(batch.words, logits)
            except KernelError as error:
                raise DriverError(str(error)) from None
            reasons = self._adapters.missing(batch) | reasons
        if reasons:
            raise FailedSequencesError(logits, reasons)
        return logits

    def command(self, command: Command) -> None:
        """Loads, makes, changes, copies or drops an adapter, or moves pages.

        Raises RefusedAdapterError and DriverError; nothing has changed then.
        """
        with self._lock:
            if self._closed:
                raise DriverError("the driver is closed")
            match command:
                case ExportPages():
                    export_pages(command, self._capabilities, self._page)
                case ImportPages():
                    # In place.
                    import_pages(command, self._capabilities, self._page, lambda _page, _content: None)
                case _:
                    try:
                        self._adapters.carry_out(command)
                    except KernelError as error:
                        raise DriverError(str(error)) from None

    def _page(self, page: int) -> Bytes:
        content: Bytes = self._pages[page]
        return content

    def close(self) -> None:
        """Gives threads and memory back; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._pages = np.zeros((0, 0), np.uint8)
                self.plan.close()


class _PlanHolder:
    """A plan as what holds adapters."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def put(self, name: AdapterName, adapter: Adapter) -> None:
        """Copies an adapter to the kernels."""
        parts = [LowRankPart(change.slot, change.rank, change.scale, change.a, change.b) for change in adapter.changes]
        self._plan.put_adapter(name.id, name.version, adapter.sigma, parts)

    def forget(self, name: AdapterName) -> None:
        """Frees it there."""
        self._plan.forget_adapter(name.id, name.version)

    def n_bytes(self, adapter: Adapter) -> int:
        """The kernels keep both matrices in their dtype."""
        return adapter.n_bytes


def _n_threads(options: CpuOptions) -> int:
    """The threads asked for, else one a core; PieError `invalid-argument` where they are too few or many."""
    if options.n_threads is None:
        return min(_MAX_THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if not 1 <= options.n_threads <= _MAX_THREADS:
        raise invalid(f"n_threads is {options.n_threads}; it must be 1 to {_MAX_THREADS}", "n_threads")
    return options.n_threads
