"""Adapters on torch: one sequence and one linear after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pie.backends.adapters.loaded import perturbed
from pie.backends.adapters.modules import modules_of
from pie.backends.adapters.noise import noise
from pie.backends.adapters.peft import Adapter
from pie.backends.base import AdapterName
from pie.batch import Batch
from pie.models.spec import DecoderSpec


@dataclass(frozen=True, eq=False)
class _Change:
    """What an adapter changes in one linear, float32."""

    slot: int
    a: Tensor
    """[rank, inputs]"""
    b: Tensor
    """[outputs, rank]"""
    scale: float

    def perturbed(self, seed: int, sigma: float) -> _Change:
        """The same with noise added to both matrices."""
        a, b = (
            torch.from_numpy(perturbed(part.numpy(), sigma, noise(seed, 2 * self.slot + which, part.numel())))
            for which, part in enumerate((self.a, self.b))
        )
        return _Change(self.slot, a, b, self.scale)


@dataclass(frozen=True, eq=False)
class _Held:
    changes: Mapping[str, _Change]
    """By the name of the weight."""
    sigma: float


@dataclass(frozen=True)
class Adapted:
    """The tokens of a batch that are computed with adapters: their range, and what is changed for them."""

    spans: Sequence[tuple[range, Mapping[str, _Change]]]

    def add(self, weight: str, x: Tensor, y: Tensor) -> None:
        """Adds what adapters change in the linear of that weight to y [T, outputs], for the tokens of x [T, inputs]."""
        for tokens, changes in self.spans:
            change = changes.get(weight)
            if change is not None:
                rows = slice(tokens.start, tokens.stop)
                y[rows] += change.scale * (x[rows] @ change.a.T) @ change.b.T


class TorchHolder:
    """The weights of adapters as tensors."""

    def __init__(self, spec: DecoderSpec) -> None:
        self._weights = {module.slot: f"{module.name}.weight" for module in modules_of(spec)}
        self._held: dict[AdapterName, _Held] = {}

    def put(self, name: AdapterName, adapter: Adapter) -> None:
        """Copies an adapter, widened to float32."""
        changes = {
            self._weights[change.slot]: _Change(
                change.slot, torch.tensor(change.a.float32()), torch.tensor(change.b.float32()), change.scale
            )
            for change in adapter.changes
        }
        self._held[name] = _Held(changes, adapter.sigma)

    def forget(self, name: AdapterName) -> None:
        """Forgets an adapter."""
        del self._held[name]

    def n_bytes(self, adapter: Adapter) -> int:
        """Four for each number."""
        return sum(4 * int(np.prod(part.shape)) for change in adapter.changes for part in (change.a, change.b))

    def adapted(self, batch: Batch, spans: Sequence[range]) -> Adapted:
        """What the tokens of a batch, whose sequences have these, are computed with."""
        if not batch.array("seq_adapter").any():
            return Adapted(())
        found = []
        for seq_idx, tokens in enumerate(spans):
            name = AdapterName(int(batch.seq_adapter[seq_idx]), int(batch.seq_adapter_version[seq_idx]))
            held = self._held.get(name)
            if held is None:
                continue
            perturbs, low, high = batch.seq_zo_seed[seq_idx].tolist()
            changes = held.changes
            if perturbs:
                changes = {weight: change.perturbed(high << 32 | low, held.sigma) for weight, change in changes.items()}
            found.append((tokens, changes))
        return Adapted(found)
