"""The words of a decode batch on their way to the device, and its tokens on their way back.

A graph reads and writes at the places at which it was captured. So all that a decode batch says has a place on the
device that its size fixes, and is copied there from pinned memory at once. Symbols: S sequences that a graph is for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.cuda.device import Device
from pie.backends.cuda.sampler_words import SAMPLER_WORDS
from pie.backends.cuda.staging import ALIGNED, SLOTS
from pie.batch_layout import U32

_NOTHING_FOLLOWED = 0xFFFFFFFF
"""-1 as a signed word."""
MAX_INDICES = 1 << 22
"""Page indices that there is room for at the most; a batch with more runs without a graph."""


class Fields(NamedTuple):
    """Where the arrays of a decode batch of S sequences lie: slices of words."""

    kv_indptr: slice
    kv_last_page_len: slice
    ids: slice
    positions: slice
    follows: slice
    """The row of the batch before whose draw is the token; -1: none."""
    pages: slice
    slots: slice
    sampler: slice
    row_slot: slice
    kv_indices: slice
    """From here on, as many as there are."""


def fields_of(size: int, n_indices: int) -> Fields:
    """The places of S = `size` sequences, with room for so many page indices."""
    lengths = [size + 1, *[size] * 6, SAMPLER_WORDS * size, size, n_indices]
    starts = np.cumsum([0, *(-(-length // ALIGNED) * ALIGNED for length in lengths)]).tolist()
    return Fields(*(slice(start, start + length) for start, length in zip(starts, lengths, strict=False)))


class Decode(NamedTuple):
    """What is copied of a decode batch of B sequences; the arrays are uint32."""

    tokens: U32
    positions: U32
    follows: U32
    """1 plus the row that is followed; 0: none."""
    pages: U32
    kv_indptr: U32
    kv_indices: U32
    kv_last_page_len: U32
    sampler: U32 | None
    """None: no token is drawn at random by a graph."""
    row_slot: U32


class _Room(NamedTuple):
    """The host's memory for the words of a size, once as words of torch, and by array."""

    words: Tensor
    arrays: list[U32]
    """In the order of `Fields`."""


class Arena:
    """Memory for the words of a decode batch: on the device once, on the host for each batch that may be under way."""

    def __init__(self, device: Device, n_most: int, n_indices: int, nobody: int) -> None:
        """For up to `n_most` sequences; `nobody` is the page that the tokens of nobody are written to."""
        self._device = device
        self._nobody = nobody
        self._n_indices = min(n_indices, MAX_INDICES)
        n_words = fields_of(n_most, self._n_indices).kv_indices.stop
        self.words = torch.zeros(n_words, dtype=torch.int32, device=device.name)
        self._host = [device.pinned((n_words,), torch.int32) for _ in range(SLOTS)]
        self._rooms: list[dict[int, _Room]] = [{} for _ in range(SLOTS)]
        self._fields: dict[int, Fields] = {}
        self._slot = 0

    def fields(self, size: int) -> Fields:
        """Where the arrays of a size lie."""
        fields = self._fields.get(size)
        if fields is None:
            fields = self._fields[size] = fields_of(size, self._n_indices)
        return fields

    def holds(self, n_indices: int, size: int) -> bool:
        """Whether there is room for so many page indices beside those of nobody."""
        return n_indices + size <= self._n_indices

    def host(self, size: int, name: str) -> Tensor:
        """An array of the batch that was sent last, as it lies in host memory."""
        place: slice = getattr(self.fields(size), name)
        return self._host[self._slot][place]

    def send(self, decode: Decode, size: int) -> None:
        """Writes a batch to pinned memory and has it copied; behind its sequences come some of nobody, up to `size`."""
        self._slot = (self._slot + 1) % SLOTS
        room = self._rooms[self._slot].get(size) or self._room(size)
        indptr, last, ids, positions, follows, pages, slots, sampler, row_slot, indices = room.arrays
        n, n_indices = len(decode.tokens), len(decode.kv_indices)
        indptr[: n + 1] = decode.kv_indptr
        last[:n] = decode.kv_last_page_len
        ids[:n] = decode.tokens
        positions[:n] = decode.positions
        np.subtract(decode.follows, 1, out=follows[:n])
        pages[:n] = decode.pages
        np.subtract(decode.kv_last_page_len, 1, out=slots[:n])
        if decode.sampler is not None:
            sampler[: len(decode.sampler)] = decode.sampler
            row_slot[:n] = decode.row_slot
        indices[:n_indices] = decode.kv_indices
        if n < size:
            indptr[n + 1 :] = np.arange(n_indices + 1, n_indices + 1 + size - n)
            indices[n_indices : n_indices + size - n] = self._nobody
            for array, value in ((last, 1), (ids, 0), (positions, 0), (follows, _NOTHING_FOLLOWED), (pages, self._nobody), (slots, 0)):
                array[n:] = value
        n_words = self._fields[size].kv_indices.start + n_indices + size - n
        self.words[:n_words].copy_(room.words[:n_words], non_blocking=True)

    def _room(self, size: int) -> _Room:
        """The host's memory of a size, by array; made once."""
        host = self._host[self._slot]
        words: U32 = host.numpy().view(np.uint32)
        room = self._rooms[self._slot][size] = _Room(host, [words[place] for place in self.fields(size)])
        return room


class Tokens(NamedTuple):
    """Where the tokens of a decode batch lie once it is done, in host memory."""

    drawn: U32
    """[S]."""
    followed: npt.NDArray[np.int32]
    """The token of each sequence, NOTHING where it follows a row that nothing could be drawn from, [S]."""


class TokensBack:
    """Memory for the tokens of decode batches: on the device once, and pinned for as many batches as may be read."""

    def __init__(self, device: Device, n_most: int) -> None:
        self._words = torch.zeros(2 * n_most, dtype=torch.int32, device=device.name)
        # The tokens of a batch are read until the one after it is waited for, while a third may have begun.
        self._host = [device.pinned((2 * n_most,), torch.int32) for _ in range(SLOTS + 1)]
        self._views: list[dict[int, tuple[Tensor, Tensor, Tokens]]] = [{} for _ in self._host]
        self._slot = 0

    def drawn(self, size: int) -> Tensor:
        """Where a graph writes what was drawn, int32 [S]."""
        return self._words[:size]

    def followed(self, size: int) -> Tensor:
        """Where a graph writes the tokens of the batch, int32 [S]."""
        return self._words[size : 2 * size]

    def fetch(self, size: int) -> Tokens:
        """Has the tokens copied back; says where they will lie once the stream has come so far."""
        self._slot = (self._slot + 1) % len(self._host)
        views = self._views[self._slot].get(size)
        if views is None:
            room = self._host[self._slot][: 2 * size]
            words = room.numpy()
            views = (room, self._words[: 2 * size], Tokens(words[:size].view(np.uint32), words[size:]))
            self._views[self._slot][size] = views
        views[0].copy_(views[1], non_blocking=True)
        return views[2]
