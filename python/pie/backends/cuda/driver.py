"""The driver: a checkpoint ready to run on CUDA devices, or by the same code on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import torch

from pie.backends.base import (
    Answer,
    Capabilities,
    Command,
    Drawn,
    DriverError,
    DriverLostError,
    ExportPages,
    FailedSequencesError,
    ImportPages,
)
from pie.backends.cuda.device import first_line, is_out_of_memory
from pie.backends.cuda.group import Alone, Group
from pie.backends.cuda.launching import Last, Launcher, Looked, lost_followers
from pie.backends.cuda.layout import Share
from pie.backends.cuda.machine import Machine, ThisMachine, check_machine
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.ranks import Others
from pie.backends.cuda.sampling import MAX_VOCABULARY
from pie.backends.cuda.share import Parts, Plan, device_of
from pie.backends.cuda.step import Came
from pie.backends.moving import export_pages, import_pages
from pie.backends.sizes import invalid
from pie.backends.unsupported import no_adapters
from pie.batch import Batch
from pie.errors import PieError
from pie.models.loader import Checkpoint, load_checkpoint


def open_driver(folder: Path, options: CudaOptions | None = None) -> CudaDriver:
    """Loads a model folder into the memory of a device.

    Raises PieError `invalid-model` for the folder, `invalid-argument` for the options, `invalid-config` for what the
    machine lacks.
    """
    return CudaDriver(load_checkpoint(folder), options or CudaOptions())


class CudaDriver:
    """Runs batches of one model, and draws from them; see `pie.backends.base.FollowingDriver`.

    With several ranks it is the first of them, and starts and ends the others.
    """

    def __init__(self, checkpoint: Checkpoint, options: CudaOptions, *, machine: Machine | None = None, parts: Parts | None = None) -> None:
        spec, n_ranks = checkpoint.spec, options.tensor_parallel
        if spec.vocab_size > MAX_VOCABULARY:
            raise invalid(f"the vocabulary has {spec.vocab_size} tokens, and the cuda back end serves {MAX_VOCABULARY}; use driver cpu")
        plan = Plan.of(checkpoint, options, Share(0, n_ranks))
        if parts is None and options.device != "cpu":
            for rank in range(n_ranks):
                check_machine(machine or ThisMachine(), device_of(options.device, rank), plan.share.spec(spec), plan.dtype)
        parts = parts or plan.parts()
        self._device = parts.device
        self._others: Others | None = None
        self._lost: str | None = None
        group: Group = Alone()
        try:
            if n_ranks > 1:
                self._others = Others(checkpoint.folder, options)
                group = self._others.meet(parts.device.name)
            opened = plan.open(parts, group)
            if self._others is not None:
                self._others.wait_open()
        except BaseException as error:
            if self._others is None:
                raise
            try:
                if isinstance(error, RuntimeError):
                    ended = self._others.ending()
                    self._others.raise_told()
                    if ended is not None:
                        raise PieError("driver-lost", f"{ended}; this was while the model was opened") from error
            finally:
                self._others.close(at_once=True)
            raise
        self._launcher: Launcher | None = opened[0]
        self._capabilities = opened[1]
        self._lock = threading.Lock()
        self._last: Last | None = None
        """The batch that was launched last; None where it failed."""

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves."""
        return self._capabilities

    @property
    def graph_sizes(self) -> list[int]:
        """The sizes of decode batches that have a CUDA graph."""
        return [] if self._launcher is None else self._launcher.step.graph_sizes

    def run(self, batch: Batch) -> Answer:
        """Makes the copies of a batch, computes it and draws from its rows.

        Raises DriverError where it does not fit: its copies may be made then, and keys and values of its tokens be
        written, but nothing of it goes on. Raises FailedSequencesError where some
        sequences have an adapter or media, or follow what nothing was drawn from; DriverLostError where the device is
        gone.
        """
        return self.launch(batch)()

    def launch(self, batch: Batch) -> Callable[[], Answer]:
        """Begins a batch; the function that it returns waits, and returns or raises what `run` would."""
        with self._lock, torch.inference_mode():
            last, self._last = self._last, None
            try:
                launcher = self._usable()
                looked = launcher.look(batch, last)
                with self._failing():
                    if self._others is not None:
                        self._others.send(batch, is_followed=last is not None)
                    came = launcher.begin(looked)
            except (DriverError, DriverLostError) as error:
                return partial(_raise, error)
            self._last = Last(batch.id, came.n_rows)
            return partial(self._wait, looked, came)

    def command(self, command: Command) -> None:
        """Moves pages, where one device has all of each.

        Raises DriverError where it cannot, and UnsupportedError for adapters, which it has not.
        """
        if not isinstance(command, ExportPages | ImportPages) or not self._capabilities.page_bytes:
            raise no_adapters(self.capabilities.backend, command)
        with self._lock, torch.inference_mode():
            pool = self._usable().step.pool
            with self._failing():
                if isinstance(command, ExportPages):
                    export_pages(command, self._capabilities, pool.read)
                else:
                    import_pages(command, self._capabilities, pool.room, pool.write)

    def close(self) -> None:
        """Waits for the device and gives its memory back; a second call does nothing."""
        with self._lock:
            if self._launcher is None:
                return
            if self._lost is None:
                with suppress(RuntimeError):  # a device that is lost meanwhile has nothing to give back
                    self._device.finish()
            if self._others is not None:
                self._others.close(at_once=self._lost is not None)
            self._launcher.step.close()
            self._launcher = self._last = None
            if self._lost is None:
                self._device.give_back()

    def _usable(self) -> Launcher:
        if self._launcher is None:
            raise DriverError("the driver is closed")
        if self._lost is not None:
            raise DriverLostError(self._lost)
        return self._launcher

    def _wait(self, looked: Looked, came: Came) -> Answer:
        """Waits for a batch, and returns what came back."""
        with self._lock:
            if self._lost is not None:
                raise DriverLostError(self._lost)
            try:
                with self._failing():
                    self._device.synchronize(came.done)
                    if self._others is not None:
                        self._others.check()
            finally:
                if self._launcher is not None:
                    self._launcher.step.pool.ended(came.done)
        answer = Drawn(came.tokens, came.logits)
        reasons = looked.reasons
        if came.followed is not None:
            for seq_idx, why in lost_followers(looked, came).items():
                reasons.setdefault(seq_idx, why)
        if reasons:
            raise FailedSequencesError(answer, reasons)
        return answer

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """What goes wrong on the device: without memory for it a batch fails, and without a device every batch.

        With several ranks every batch fails in both cases: the others have begun what this one has not.
        """
        try:
            yield
        except DriverLostError as error:
            self._lost = str(error)
            raise
        except Exception as error:
            if self._others is not None:
                ended = self._others.ending()
                self._lost = ended or f"rank 0 of {self._others.size} failed in the middle of a batch ({first_line(error)})"
                raise DriverLostError(self._lost) from error
            if lost := self._lost_by(error):
                self._lost = lost
                raise DriverLostError(lost) from error
            if is_out_of_memory(error):
                remedy = "lower max_batch_tokens, kv_bytes or graph_bytes"
                raise DriverError(f"the device has too little memory for this batch ({first_line(error)}); {remedy}") from error
            raise

    def _lost_by(self, error: Exception) -> str | None:
        """Why the device is of no use any more; None where it is, and no work of the batch that failed is under way."""
        if is_out_of_memory(error) or not is_lost(error):
            try:
                # What was launched of it may still write to pages that are given to others now, and their copies have a
                # stream of their own, which waits for batches that began alone.
                self._device.finish()
                if is_out_of_memory(error):
                    # What torch keeps for later may be what the next batch needs.
                    self._device.give_back()
            except RuntimeError as behind:
                # A library says in its own words what the device says again.
                return f"the device does not work any more ({first_line(behind)}; before that: {first_line(error)})"
            return None
        return f"the device does not work any more ({first_line(error)})"


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the device is of no use to this process any more: all of CUDA's but that of memory."""
    return isinstance(error, torch.AcceleratorError) or "CUDA error" in str(error)


def _raise(error: Exception) -> Answer:
    raise error
