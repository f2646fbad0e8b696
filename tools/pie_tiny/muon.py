"""Muon: momentum, made orthogonal by Newton-Schulz iterations (Jordan et al., 2024).

`torch.optim.Muon` always iterates in bfloat16, which processors without such instructions
emulate: there it takes as long as the passes. Matrices of one shape are treated as one array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from . import workers

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_EPSILON = 1e-7


def _orthogonal(matrices: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[N, R, C] -> [N, R, C], each with singular values near one, by iterations in `dtype`."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + _EPSILON)).to(dtype)
    for _ in range(_ITERATIONS):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    result: torch.Tensor = x.transpose(1, 2) if tall else x
    return result.float()


class Muon(torch.optim.Optimizer):
    """Updates matrices [R, C] alone, with Nesterov momentum and decoupled weight decay.

    `halved`: the iterations run in bfloat16, for processors that multiply it faster.
    """

    def __init__(
        self,
        matrices: Iterable[torch.nn.Parameter],
        lr: float,
        *,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        halved: bool = False,
    ) -> None:
        self._dtype = torch.bfloat16 if halved else torch.float32
        super().__init__(list(matrices), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update by the gradients that are there."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[torch.nn.Parameter]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in by_shape.items():
                updates = [self._nesterov(parameter, group["momentum"]) for parameter in parameters]
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                for parameter, update in zip(parameters, self._shared(torch.stack(updates)), strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update, alpha=-group["lr"] * scale)

    def _shared(self, updates: torch.Tensor) -> torch.Tensor:
        """[N, R, C], each worker computing a part of the N."""
        result = torch.zeros_like(updates)
        mine = slice(workers.rank(), None, workers.n_workers())
        if updates[mine].shape[0]:
            result[mine] = _orthogonal(updates[mine], self._dtype)
        workers.add_up(result)
        return result

    def _nesterov(self, parameter: torch.nn.Parameter, momentum: float) -> torch.Tensor:
        gradient = parameter.grad
        assert gradient is not None
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        buffer = state["momentum_buffer"]
        buffer.lerp_(gradient, 1 - momentum)
        return gradient.lerp(buffer, momentum)
