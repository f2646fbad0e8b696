"""The adapters that a driver has loaded, within the bytes that it has for them.

| command | what is done |
|---|---|
| `LoadAdapter` | read from a folder in the format of PEFT |
| `CreateAdapter` | made, written to a folder, and loaded from there |
| `ChangeAdapter` | the weights of another one are read again, changed, written to a folder, and loaded from there |
| `CopyAdapter` | read again from the folder of its source |
| `DropAdapter` | forgotten |

A folder stays as it is as long as the adapter that was loaded from it. The arithmetic of `CreateAdapter` and
`ChangeAdapter` is one product and one sum in float32 for each number, in order, so every back end makes the same
adapter.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from pie.backends.adapters.modules import Module, modules_of
from pie.backends.adapters.noise import F32, Noise
from pie.backends.adapters.peft import (
    MAX_RANK,
    Adapter,
    LowRank,
    float32_tensor,
    new_config,
    read_adapter,
    refused,
    tensor_names,
    too_large,
    write_adapter,
)
from pie.backends.base import (
    AdapterName,
    ChangeAdapter,
    Command,
    CopyAdapter,
    CreateAdapter,
    DriverError,
    DropAdapter,
    LoadAdapter,
    RefusedAdapterError,
)
from pie.batch import Batch
from pie.models.safetensors import Tensor
from pie.models.spec import DecoderSpec

_FIRST_SEED = 0
"""Of the noise that a new adapter begins with: all of them begin alike."""


class Holder(Protocol):
    """What computes with adapters: the part of a back end that has their weights."""

    def put(self, name: AdapterName, adapter: Adapter) -> None:
        """Copies an adapter, in place of one of the same name."""

    def forget(self, name: AdapterName) -> None:
        """Forgets an adapter."""

    def n_bytes(self, adapter: Adapter) -> int:
        """What it takes to hold an adapter."""


@dataclass(frozen=True)
class _Loaded:
    folder: Path
    n_bytes: int


class Adapters:
    """The adapters of a driver, by name."""

    def __init__(self, spec: DecoderSpec, limit_bytes: int, holder: Holder, noise: Noise) -> None:
        """`noise` makes that of `pie.backends.adapters.noise`."""
        self._modules = modules_of(spec)
        self._limit_bytes = limit_bytes
        self._holder = holder
        self._noise = noise
        self._loaded: dict[AdapterName, _Loaded] = {}

    def carry_out(self, command: Command) -> None:
        """Carries a command out.

        Raises RefusedAdapterError for an adapter that cannot be taken, and DriverError where one is not loaded or a
        folder cannot be written; nothing has changed then.
        """
        match command:
            case LoadAdapter(name, path):
                self._load(name, Path(path))
            case CreateAdapter(name, path, rank, alpha, sigma):
                self._check_room(name, rank * sum(module.n_inputs + module.n_outputs for module in self._modules))
                self._make(name, Path(path), self._new(rank, alpha, sigma))
            case ChangeAdapter(source, name, path, sigma, changes):
                found = self._read(source)
                self._check_room(name, sum(change.rank * (change.a.shape[1] + change.b.shape[0]) for change in found.changes))
                changed = self._changed(found, changes)
                self._make(name, Path(path), changed if sigma is None else replace(changed, sigma=sigma))
            case CopyAdapter(source, copy):
                self._load(copy, self._find(source).folder)
            case DropAdapter(name):
                self._find(name)
                self._holder.forget(name)
                del self._loaded[name]

    def missing(self, batch: Batch) -> dict[int, str]:
        """Why sequences cannot be computed whose adapters are not loaded, by their index.

        Raises DriverError where the arrays do not fit the batch.
        """
        words = batch.array("seq_adapter")
        if not words.any():
            return {}
        for array, n_words in (("seq_adapter", 2), ("seq_adapter_version", 1), ("seq_zo_seed", 3)):
            if len(batch.array(array)) != n_words * batch.n_seqs:
                raise DriverError(f"{array} has {len(batch.array(array))} words, not {n_words * batch.n_seqs}")
        reasons = {}
        names = zip(batch.seq_adapter.tolist(), batch.seq_adapter_version.tolist(), strict=True)
        for seq_idx, (adapter_id, version) in enumerate(names):
            if adapter_id and AdapterName(adapter_id, version) not in self._loaded:
                reasons[seq_idx] = f"the adapter {adapter_id:#x} of version {version:#x} is not loaded; load it again"
        return reasons

    def _find(self, name: AdapterName) -> _Loaded:
        loaded = self._loaded.get(name)
        if loaded is None:
            raise DriverError(f"the adapter {name.id:#x} of version {name.version:#x} is not loaded")
        return loaded

    def _read(self, name: AdapterName) -> Adapter:
        return read_adapter(self._find(name).folder, self._modules, self._limit_bytes)

    def _left(self, name: AdapterName) -> int:
        """Bytes that there are for an adapter of that name."""
        replaced = self._loaded.get(name)
        taken = sum(loaded.n_bytes for loaded in self._loaded.values()) - (replaced.n_bytes if replaced else 0)
        return self._limit_bytes - taken

    def _check_room(self, name: AdapterName, n_numbers: int) -> None:
        """Refuses what would not fit as float32, before it is made."""
        n_bytes, left = 4 * n_numbers, self._left(name)
        if n_bytes > left:
            raise too_large(n_bytes, left)

    def _load(self, name: AdapterName, folder: Path) -> None:
        left = self._left(name)
        adapter = read_adapter(folder, self._modules, left)
        n_bytes = self._holder.n_bytes(adapter)
        if n_bytes > left:
            raise too_large(n_bytes, left)
        self._holder.put(name, adapter)
        self._loaded[name] = _Loaded(folder, n_bytes)

    def _make(self, name: AdapterName, folder: Path, adapter: Adapter) -> None:
        """Writes an adapter and loads it; what was written of one that is not loaded is removed."""
        try:
            write_adapter(folder, adapter)
            self._load(name, folder)
        except OSError as error:
            with suppress(OSError):
                shutil.rmtree(folder)
            raise DriverError(f"the adapter cannot be written: {error.strerror or error}; see to the disk") from None
        except (DriverError, RefusedAdapterError):
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _new(self, rank: int, alpha: float, sigma: float) -> Adapter:
        if not 1 <= rank <= MAX_RANK:
            raise refused(f"the rank is {rank}; it must be 1 to {MAX_RANK}")
        scale = float(np.float32(alpha / rank))
        changes = tuple(self._first(module, rank, scale) for module in self._modules)
        return Adapter(new_config(rank, alpha, self._modules), sigma, changes)

    def _first(self, module: Module, rank: int, scale: float) -> LowRank:
        """A is noise and B is 0, so that the adapter changes nothing yet."""
        deviation = np.float32((3 * module.n_inputs) ** -0.5)
        a = (self._noise(_FIRST_SEED, 2 * module.slot, rank * module.n_inputs) * deviation).reshape(rank, module.n_inputs)
        a_name, b_name = tensor_names(module)
        b = np.zeros((module.n_outputs, rank), np.float32)
        return LowRank(module.slot, rank, scale, float32_tensor(a_name, a), float32_tensor(b_name, b))

    def _changed(self, adapter: Adapter, changes: Sequence[tuple[int, float]]) -> Adapter:
        """The weights with the noise of each seed added, times its factor."""
        if not changes:
            return adapter
        return replace(adapter, changes=tuple(self._changed_one(change, changes) for change in adapter.changes))

    def _changed_one(self, change: LowRank, changes: Sequence[tuple[int, float]]) -> LowRank:
        def changed(tensor: Tensor, stream: int) -> Tensor:
            values = tensor.float32().reshape(-1).copy()
            # What becomes too large is refused below.
            with np.errstate(over="ignore", invalid="ignore"):
                for seed, factor in changes:
                    values += np.float32(factor) * self._noise(seed, stream, values.size)
            if not np.isfinite(values).all():
                raise refused("the change makes weights that are not finite; give smaller factors")
            return float32_tensor(tensor.name, values.reshape(tensor.shape))

        return replace(change, a=changed(change.a, 2 * change.slot), b=changed(change.b, 2 * change.slot + 1))


def perturbed(weights: F32, sigma: float, noise: F32) -> F32:
    """The weights of a sequence with a `zo_seed`, in their order."""
    return (weights + np.float32(sigma) * noise.reshape(weights.shape)).astype(np.float32)
