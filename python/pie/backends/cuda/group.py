"""The ranks that compute a model together, and what they say to each other.

Sums are made in the order of ranks, from what each has gathered of all: the order in which an all-reduce adds depends
on its algorithm, and that on sizes and machines.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

RENDEZVOUS_S = 120.0
"""How long ranks wait for each other when they begin."""
_STEP_S = 86_400.0
"""How long a rank waits in a step; whoever hangs is found by the timeout of batches."""
_LOOPBACK = "127.0.0.1"


class Group(Protocol):
    """The ranks of one model; every call is made by all of them, in the same order."""

    rank: int
    size: int

    def gather(self, x: Tensor) -> Tensor:
        """What each rank gave, in the order of ranks, [size, *x.shape]."""

    def any(self, flag: bool) -> bool:
        """Whether it is true for any rank."""

    def abort(self) -> None:
        """Ends what waits for a rank that is gone."""


class Alone:
    """One rank that has all of the model; see `Group`."""

    rank = 0
    size = 1

    def gather(self, x: Tensor) -> Tensor:
        """See `Group`."""
        return x[None]

    def any(self, flag: bool) -> bool:
        """See `Group`."""
        return flag

    def abort(self) -> None:
        """See `Group`."""


class Ranks:
    """Ranks of torch.distributed: gloo between processes of this machine's CPU, NCCL between CUDA devices."""

    def __init__(self, rank: int, size: int, meeting: Path, device: torch.device) -> None:
        """Waits for the others, who are given the same file, which is not there yet."""
        # Only where there are several ranks: it takes a while to import. Groups are made by hand, not by
        # `init_process_group`, whose one group would be the whole process's.
        import torch.distributed  # noqa: PLC0415

        dist: Any = torch.distributed
        self.rank, self.size = rank, size
        self._device = device
        store = dist.FileStore(str(meeting), size)
        store.set_timeout(timedelta(seconds=RENDEZVOUS_S))
        if device.type == "cuda":
            nccl = dist.ProcessGroupNCCL
            options = nccl.Options()
            options._timeout = timedelta(seconds=_STEP_S)
            self._group: Any = nccl(store, rank, size, options)
        else:
            gloo = dist.ProcessGroupGloo
            options = gloo._Options()
            options._timeout = timedelta(seconds=RENDEZVOUS_S)
            options._devices = [gloo.create_device(hostname=_LOOPBACK)]
            self._group = gloo(store, rank, size, options)

    def gather(self, x: Tensor) -> Tensor:
        """See `Group`. What goes around are bytes, so that every dtype does."""
        sent = x.contiguous().flatten().view(torch.uint8)
        out = torch.empty(self.size * len(sent), dtype=torch.uint8, device=x.device)
        self._group._allgather_base(out, sent).wait()
        return out.view(x.dtype).view(self.size, *x.shape)

    def any(self, flag: bool) -> bool:
        """See `Group`."""
        return bool(self.gather(torch.tensor([flag], dtype=torch.uint8, device=self._device)).any())

    def abort(self) -> None:
        """See `Group`. Gloo notices by itself, by the connections that end."""
        if self._device.type == "cuda":
            self._group.abort()


def summed(group: Group, x: Tensor) -> Tensor:
    """The sum of what the ranks have, in the order of ranks."""
    first, *others = group.gather(x).unbind()
    for other in others:
        first = first + other
    return first
