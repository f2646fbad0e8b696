"""The driver: a checkpoint ready to run on a CUDA device, or by the same code on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from pie.backends.base import Answer, Capabilities, Command, Drawn, DriverError, DriverLostError, FailedSequencesError
from pie.backends.checks import I64, check
from pie.backends.copying import measure_copy_ns
from pie.backends.cuda.calls import Calls, library_calls, standin_calls
from pie.backends.cuda.device import CudaDevice, Device, HostDevice
from pie.backends.cuda.graphs import GraphRecorder, Recorder
from pie.backends.cuda.machine import Machine, ThisMachine, check_machine
from pie.backends.cuda.memory import check_memory, needed
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.rows import check_rows
from pie.backends.cuda.sampling import MAX_VOCABULARY
from pie.backends.cuda.step import Asked, Came, Step
from pie.backends.cuda.weights import load_weights
from pie.backends.sizes import capabilities, choose_dtype, invalid, page_bytes
from pie.backends.unsupported import no_adapters, unsupported
from pie.batch import Batch
from pie.models.loader import Checkpoint, load_checkpoint
from pie.models.spec import DtypeName

_DTYPES: dict[DtypeName, torch.dtype] = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def open_driver(folder: Path, options: CudaOptions | None = None) -> CudaDriver:
    """Loads a model folder into the memory of a device.

    Raises PieError `invalid-model` for the folder, `invalid-argument` for the options, `invalid-config` for what the
    machine lacks.
    """
    return CudaDriver(load_checkpoint(folder), options or CudaOptions())


@dataclass(frozen=True)
class Parts:
    """What a driver works with beside the model."""

    device: Device
    calls: Calls
    recorder: Recorder | None
    """None: no graph is captured."""


def parts_for(checkpoint: Checkpoint, dtype: DtypeName, limits: Capabilities, options: CudaOptions, machine: Machine) -> Parts:
    """The parts of a driver on the device of the options.

    Raises PieError where the machine lacks something, or the device has too little memory; nothing was loaded then.
    """
    if options.device == "cpu":
        return Parts(HostDevice(), standin_calls(), None)
    check_machine(machine, options.device, checkpoint.spec, dtype)
    device = CudaDevice(options.device)
    element_bytes = torch.empty(0, dtype=_DTYPES[dtype]).element_size()
    check_memory(needed(checkpoint.spec, limits, element_bytes, options), device.free_bytes(), limits, options)
    # FlashInfer has no attention in float32.
    calls = standin_calls() if dtype == "float32" else library_calls(deterministic=options.deterministic)
    return Parts(device, calls, None if dtype == "float32" else GraphRecorder())


class CudaDriver:
    """Runs batches of one model, and draws from them; see `pie.backends.base.FollowingDriver`."""

    def __init__(self, checkpoint: Checkpoint, options: CudaOptions, *, machine: Machine | None = None, parts: Parts | None = None) -> None:
        spec, dtype = checkpoint.spec, choose_dtype(checkpoint, options, float16=True)
        if spec.vocab_size > MAX_VOCABULARY:
            raise invalid(f"the vocabulary has {spec.vocab_size} tokens, and the cuda back end serves {MAX_VOCABULARY}; use driver cpu")
        limits = replace(capabilities("cuda", checkpoint, dtype, options), follows=True)
        parts = parts or parts_for(checkpoint, dtype, limits, options, machine or ThisMachine())
        self._device = parts.device
        # In the stream of the batches, which waits for no other one.
        with torch.inference_mode(), _opening(), parts.device.computing():
            weights = load_weights(checkpoint, _DTYPES[dtype], parts.device.name)
            self._step: Step | None = Step(spec, weights, parts.calls, parts.device, limits, options, parts.recorder)
            pool, n_bytes = self._step.pool, page_bytes(spec, dtype, options.page_size)
            self._capabilities = replace(limits, copy_page_ns=measure_copy_ns(pool.swap_out, pool.swap_in, limits, n_bytes))
            parts.device.finish()
        self._lock = threading.Lock()
        self._last: tuple[int, Came] | None = None
        """The number of the batch launched last, and what it draws; None where it failed."""
        self._lost: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves."""
        return self._capabilities

    @property
    def graph_sizes(self) -> list[int]:
        """The sizes of decode batches that have a CUDA graph."""
        return [] if self._step is None else self._step.graph_sizes

    def run(self, batch: Batch) -> Answer:
        """Makes the copies of a batch, computes it and draws from its rows.

        Raises DriverError where it does not fit, and then nothing has changed; FailedSequencesError where some
        sequences have an adapter or media, or follow what nothing was drawn from; DriverLostError where the device is
        gone.
        """
        return self.launch(batch)()

    def launch(self, batch: Batch) -> Callable[[], Answer]:
        """Begins a batch; the function that it returns waits, and returns or raises what `run` would."""
        with self._lock, torch.inference_mode():
            last, self._last = self._last, None
            try:
                if self._step is None:
                    raise DriverError("the driver is closed")
                if self._lost is not None:
                    raise DriverLostError(self._lost)
                spans = check(batch, self._capabilities)
                rows = check_rows(batch, self._capabilities.vocab_size)
                reasons = unsupported(batch, self._capabilities)
                follows = _followed(batch, last, reasons)
                with self._failing():
                    came = self._step.begin(Asked(batch, spans, rows, follows), None if last is None else last[1].firsts)
            except (DriverError, DriverLostError) as error:
                return partial(_raise, error)
            self._last = (batch.id, came)
            return partial(self._wait, came, batch.qo_indptr[:-1].astype(np.int64), follows, reasons)

    def command(self, command: Command) -> None:
        """Raises UnsupportedError: it has no adapters."""
        raise no_adapters(self.capabilities.backend, command)

    def close(self) -> None:
        """Waits for the device and gives its memory back; a second call does nothing."""
        with self._lock:
            if self._step is None:
                return
            if self._lost is None:
                with suppress(RuntimeError):  # a device that is lost meanwhile has nothing to give back
                    self._device.finish()
            self._step = self._last = None
            if self._lost is None:
                self._device.give_back()

    def _wait(self, came: Came, first_tokens: I64, follows: I64, reasons: dict[int, str]) -> Answer:
        """Waits for a batch, and returns what came back."""
        with self._lock, torch.inference_mode():
            if self._lost is not None:
                raise DriverLostError(self._lost)
            with self._failing():
                self._device.synchronize(came.done)
        answer = Drawn(came.tokens.numpy().view(np.uint32), came.logits.numpy())
        if came.followed is not None:
            is_nothing = (follows >= 0) & (came.followed.numpy()[first_tokens] < 0)
            for seq_idx in np.flatnonzero(is_nothing).tolist():
                reasons.setdefault(seq_idx, f"row {follows[seq_idx]} of the batch before, which it follows, has no token to draw")
        if reasons:
            raise FailedSequencesError(answer, reasons)
        return answer

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """What goes wrong on the device: without memory for it a batch fails, and without a device every batch."""
        try:
            yield
        except RuntimeError as error:
            if is_out_of_memory(error):
                # What torch keeps for later may be what the next batch needs.
                self._device.give_back()
                remedy = "lower max_batch_tokens, kv_bytes or graph_bytes"
                raise DriverError(f"the device has too little memory for this batch ({_first_line(error)}); {remedy}") from error
            if is_lost(error):
                self._lost = f"the device does not work any more ({_first_line(error)})"
                raise DriverLostError(self._lost) from error
            raise


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or of a library says that the device's memory does not suffice."""
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the device is of no use to this process any more: all of CUDA's but that of memory."""
    return isinstance(error, torch.AcceleratorError) or "CUDA error" in str(error)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


@contextmanager
def _opening() -> Iterator[None]:
    """A model that turns out not to fit, whatever was counted before, is a mistake of the options."""
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise invalid(f"the model does not fit into the device's memory ({_first_line(error)}); lower kv_bytes", "kv_bytes") from error


def _followed(batch: Batch, last: tuple[int, Came] | None, reasons: dict[int, str]) -> I64:
    """The row of the batch before whose draw is the token of each sequence, int64 [B], -1: none.

    `reasons` gets those that follow what is not there.
    """
    follows = batch.seq_follows.astype(np.int64) - 1
    if (follows < 0).all():
        return follows
    n_rows = len(last[1].firsts) if last is not None and last[0] == batch.before else 0
    for seq_idx in np.flatnonzero(follows >= n_rows).tolist():
        why = f"batch {batch.before} is not the one launched last, or failed" if n_rows == 0 else f"it has {n_rows} rows"
        reasons.setdefault(seq_idx, f"it follows row {follows[seq_idx]} of batch {batch.before}, which has no token for it: {why}")
        follows[seq_idx] = -1
    return follows


def _raise(error: Exception) -> Answer:
    raise error
