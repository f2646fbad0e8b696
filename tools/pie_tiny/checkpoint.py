"""What training needs to go on where it stopped, in one file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch


@dataclass
class Checkpoint:
    """A state of training.

    `average` is the exponential moving average of the weights, which is what is released;
    `position` is the place in the stream of batches; `losses` are (step, training loss,
    validation loss) rows, zero where not measured.
    """

    step: int
    n_tokens: int
    seconds: float
    position: tuple[int, int]
    seed: int
    weights: dict[str, torch.Tensor]
    average: dict[str, torch.Tensor]
    optimizers: list[dict[str, Any]]
    losses: list[tuple[int, float, float]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Writes the file as a whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        state = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        torch.save(state, partial)
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Reads a file that `save` wrote; tensors land on the CPU."""
        return cls(**torch.load(path, map_location="cpu", weights_only=True))
