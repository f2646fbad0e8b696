"""Operations of torch that have the host wait for a device, noted on torch's CPU."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITING = {
    "aten::_local_scalar_dense": "a number of the device is wanted",
    "aten::nonzero": "how many there are is wanted",
    "aten::masked_select": "how many there are is wanted",
    "aten::equal": "whether all are equal is wanted",
    "aten::is_nonzero": "whether it is true is wanted",
}


class Waits(TorchDispatchMode):
    """Notes each operation for which the host would wait for a CUDA device."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.n_operations = 0
        self._tensor: Any = None

    def __enter__(self) -> Waits:
        self._tensor = torch.tensor

        def tensor(*args: Any, **kwargs: Any) -> torch.Tensor:
            self.found.append(f"torch.tensor: a list goes to the device from memory that is not pinned (in {_caller()})")
            made: torch.Tensor = self._tensor(*args, **kwargs)
            return made

        torch.tensor = tensor
        super().__enter__()
        return self

    def __exit__(self, *what: Any) -> None:
        torch.tensor = self._tensor
        super().__exit__(*what)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function._schema.name
        self.n_operations += 1
        if name in WAITING:
            self.found.append(f"{name}: {WAITING[name]} (in {_caller()})")
        elif name == "aten::repeat_interleave" and (kwargs or {}).get("output_size") is None and _is_counted(args):
            self.found.append(f"{name}: how many there are is wanted")
        elif name in {"aten::index", "aten::index_put", "aten::index_put_"} and any(_is_flags(place) for place in args[1]):
            self.found.append(f"{name} by flags: how many there are is wanted")
        return function(*args, **(kwargs or {}))


def _is_flags(place: Any) -> bool:
    return isinstance(place, torch.Tensor) and place.dtype in {torch.bool, torch.uint8}


def _is_counted(args: Any) -> bool:
    """Whether the numbers of repetitions are a tensor."""
    return isinstance(args[-1], torch.Tensor)


def _caller() -> str:
    """What of this project called the operation."""
    frames = traceback.extract_stack()
    ours = [frame for frame in frames if "/pie/" in frame.filename] or frames[:-2]
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
