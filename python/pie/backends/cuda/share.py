"""The share of a rank, opened: its weights and pages on its device, its graphs captured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module, metadata

import torch

from pie.backends.base import Capabilities
from pie.backends.copying import measure_copy_ns
from pie.backends.cuda.calls import Calls, library_calls, standin_calls
from pie.backends.cuda.device import CudaDevice, Device, HostDevice, first_line, is_out_of_memory
from pie.backends.cuda.graphs import GraphRecorder, Recorder
from pie.backends.cuda.group import Group
from pie.backends.cuda.launching import Launcher
from pie.backends.cuda.layout import Share
from pie.backends.cuda.memory import check_memory, needed
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.step import Step
from pie.backends.cuda.weights import load_weights
from pie.backends.moving import made_by
from pie.backends.sizes import capabilities, choose_dtype, invalid
from pie.models.loader import Checkpoint
from pie.models.spec import DtypeName, page_bytes

_DTYPES: dict[DtypeName, torch.dtype] = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}

_PAGES_VERSION = 2
"""Raised with every change of how keys and values are computed or laid out."""


@dataclass(frozen=True)
class Parts:
    """What a rank works with beside the model."""

    device: Device
    calls: Calls
    recorder: Recorder | None
    """None: no graph is captured."""


@dataclass(frozen=True)
class Plan:
    """What a rank will have: nothing is loaded yet."""

    checkpoint: Checkpoint
    options: CudaOptions
    share: Share
    dtype: DtypeName
    limits: Capabilities

    @classmethod
    def of(cls, checkpoint: Checkpoint, options: CudaOptions, share: Share) -> Plan:
        """PieError `invalid-argument` where the options do not fit the model."""
        share.check(checkpoint.spec)
        dtype = choose_dtype(checkpoint, options, float16=True)
        own = replace(checkpoint, spec=share.spec(checkpoint.spec))
        limits = replace(capabilities("cuda", own, dtype, options), follows=True)
        return cls(checkpoint, options, share, dtype, limits)

    @property
    def device(self) -> str:
        """The device of this rank, by torch's name: the ranks have devices side by side."""
        return device_of(self.options.device, self.share.rank)

    def parts(self) -> Parts:
        """The parts of a rank on its device.

        Raises PieError where the device has too little memory.
        """
        if self.device == "cpu":
            return Parts(HostDevice(), standin_calls(), None)
        device = CudaDevice(self.device)
        element_bytes = torch.empty(0, dtype=_DTYPES[self.dtype]).element_size()
        # FlashInfer has no attention in float32, and what stands in for it has no graphs.
        is_plain = self.dtype == "float32"
        options = replace(self.options, device=self.device, graph_seqs=0 if is_plain else self.options.graph_seqs)
        need = needed(self.checkpoint.spec, self.share, self.limits, element_bytes, options)
        check_memory(need, device.free_bytes(), self.limits, options)
        calls = standin_calls() if is_plain else library_calls(deterministic=self.options.deterministic)
        return Parts(device, calls, None if is_plain else GraphRecorder(device.name))

    def open(self, parts: Parts, group: Group) -> tuple[Launcher, Capabilities]:
        """Loads the weights and captures the graphs, together with all ranks."""
        spec, device = self.share.spec(self.checkpoint.spec), parts.device
        # In the stream of the batches, which waits for no other one.
        with torch.inference_mode(), _opening(self.options), device.computing():
            weights = load_weights(self.checkpoint, _DTYPES[self.dtype], device.name, self.share)
            step = Step(spec, weights, parts.calls, device, self.limits, self.options, parts.recorder, group)
            n_bytes = page_bytes(spec, self.dtype, self.options.page_size)
            copy_page_ns = measure_copy_ns(step.pool.swap_out, step.pool.swap_in, self.limits, n_bytes)
            device.finish()
        measured = replace(self.limits, copy_page_ns=copy_page_ns)
        if self.share.size > 1:
            # Each rank has a part of every page.
            return Launcher(step, self.limits), measured
        heads = spec.attention
        maker = made_by("cuda", _PAGES_VERSION, self.dtype, spec.n_layers, heads.n_kv_heads, heads.head_dim)
        computed = _computed_by(device.name, deterministic=self.options.deterministic)
        return Launcher(step, self.limits), replace(measured, page_bytes=n_bytes, pages_made_by=f"{maker} {computed}")


def device_of(first: str, rank: int) -> str:
    """The device of a rank, where `first` is that of the first."""
    kind, _, number = first.partition(":")
    return first if kind != "cuda" or not (number or "0").isdecimal() else f"cuda:{int(number or 0) + rank}"


def _computed_by(device: torch.device, *, deterministic: bool) -> str:
    """What the bits of pages depend on beside the model: the device, libraries, whether a batch may change them."""
    kind = "cpu"
    libraries = [f"torch {torch.__version__}"]
    if device.type == "cuda":
        kind = torch.cuda.get_device_name(device)
        # Who packages torch may package Triton under another name.
        libraries += [f"triton {import_module('triton').__version__}", f"flashinfer-python {metadata.version('flashinfer-python')}"]
    return ", ".join((kind, *libraries, "fixed bits" if deterministic else "free bits"))


@contextmanager
def _opening(options: CudaOptions) -> Iterator[None]:
    """A model that turns out not to fit, whatever was counted before, is a mistake of the options."""
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        option = "kv_bytes" if options.n_pages is None else "n_pages"
        remedy = option if options.device == "cpu" else f"{option} or graph_bytes"
        raise invalid(
            f"the model does not fit into the memory of {options.device} ({first_line(error)}); lower {remedy}", option
        ) from error
