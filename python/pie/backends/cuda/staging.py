"""Words on their way to the device: written to pinned memory, copied there at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.cuda.device import Device

SLOTS = 2
"""Batches that are under way at the most."""
ALIGNED = 4
"""Words that the beginning of an array is a multiple of, for kernels that read several at once."""


def rounded(n: int) -> int:
    """The next power of two: what torch takes of pinned memory anyway, and what is there is not taken anew so soon."""
    return 1 << max(0, n - 1).bit_length()


def words_of(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """Bytes as whole words, zeros behind them."""
    words = np.zeros(-(-len(content) // 4), np.int32)
    words.view(np.uint8)[: len(content)] = content
    return words


class Staging:
    """Memory for the words of a batch: on the host once for each batch that may be under way, on the device once.

    Copies are made in the stream of the batches, so that the words of a batch stay until it is done.
    """

    def __init__(self, device: Device, n_words: int) -> None:
        self._device = device
        self._slot = 0
        self._host: list[Tensor] = [torch.empty(0, dtype=torch.int32)] * SLOTS
        self._words = torch.zeros(n_words, dtype=torch.int32, device=device.name)

    def send(self, arrays: Sequence[npt.NDArray[np.int32]], *, room: int = 0) -> list[Tensor]:
        """The arrays, flat, on the device, where they stay until the next call.

        Each has room for `room` words at least, so that all lie where they lay, whatever the lengths up to that.
        """
        starts = np.cumsum([0, *(-(-max(len(words), room) // ALIGNED) * ALIGNED for words in arrays)]).tolist()
        n_words = starts[-1]
        if n_words > len(self._words):
            # Twice what is needed: a longer batch comes after a long one.
            self._words = torch.zeros(2 * n_words, dtype=torch.int32, device=self._device.name)
        self._slot = (self._slot + 1) % SLOTS
        if n_words > len(self._host[self._slot]):
            self._host[self._slot] = self._device.pinned((rounded(len(self._words)),), torch.int32)
        host = self._host[self._slot]
        room_of = host.numpy()
        for start, words in zip(starts, arrays, strict=False):
            room_of[start : start + len(words)] = words
        self._words[:n_words].copy_(host[:n_words], non_blocking=True)
        return [self._words[start : start + len(words)] for start, words in zip(starts, arrays, strict=False)]


class Returning:
    """Pinned memory that what a batch answers comes back to, for as many batches as may be read or be under way."""

    def __init__(self, device: Device, dtype: torch.dtype) -> None:
        self._device = device
        self._dtype = dtype
        # The rows of a batch are read until the one after it is waited for, while a third may have begun.
        self._rooms: list[Tensor] = [torch.empty(0, dtype=dtype)] * (SLOTS + 1)
        self._slot = 0

    def fetch(self, values: Tensor) -> Tensor:
        """Where the values of the device will lie once its stream has come so far."""
        self._slot = (self._slot + 1) % len(self._rooms)
        if values.numel() > len(self._rooms[self._slot]):
            self._rooms[self._slot] = self._device.pinned((rounded(values.numel()),), self._dtype)
        room = self._rooms[self._slot][: values.numel()].view(values.shape)
        room.copy_(values, non_blocking=True)
        return room
