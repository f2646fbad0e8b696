"""The batch as a driver sees it: a typed view of the arena, without a copy.

The arena is an array of little-endian 32-bit words: a header, then arrays at the offsets that the header names.
`pie.batch_layout` is generated from the layout that the engine writes. `docs/reference/driver.md` tells what a driver
does with each array. Symbols: T tokens, B sequences, R rows of logits wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pie.batch_layout import (
    ARRAYS,
    FIELDS_AT,
    HEAD_BATCH_ID,
    HEAD_BEFORE,
    HEAD_MAGIC,
    HEAD_PAGE_SIZE,
    HEAD_ROWS,
    HEAD_SEQUENCES,
    HEAD_TOKENS,
    HEAD_VERSION,
    HEAD_WORDS,
    HEADER_WORDS,
    LAYOUT_VERSION,
    MAGIC,
    U32,
    BatchArrays,
)
from pie.errors import PieError

if TYPE_CHECKING:
    from typing_extensions import Buffer


_PAIRS = {name: FIELDS_AT + 2 * index for index, name in enumerate(ARRAYS)}
"""Where the header says of each array where it lies."""


class Batch(BatchArrays):
    """A batch of T tokens from B sequences, of which R rows of logits are wanted.

    All arrays are views and read-only.
    """

    __slots__ = ("_head", "words")

    words: U32
    """The whole arena, uint32."""
    _head: list[int]

    def __init__(self, words: U32) -> None:
        head: list[int] = words[:HEADER_WORDS].tolist()
        if len(head) < HEADER_WORDS or (head[HEAD_MAGIC], head[HEAD_VERSION], head[HEAD_WORDS]) != (MAGIC, LAYOUT_VERSION, len(words)):
            raise PieError(
                "internal",
                f"an array of {len(words)} words is not a batch of layout {LAYOUT_VERSION}: "
                "the engine and the Python package are of different versions",
            )
        self.words = words
        self._head = head

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> Batch:
        """The view of an arena that supports the buffer protocol; the arena lives as long as the view."""
        return cls(np.frombuffer(memoryview(buffer), dtype="<u4"))

    @property
    def head(self) -> list[int]:
        """The words of the header; see `pie.batch_layout`."""
        return self._head

    def array(self, name: str) -> U32:
        """The words of the array of that name of `ARRAYS`."""
        pair = _PAIRS[name]
        offset, length = self._head[pair], self._head[pair + 1]
        if offset + length > len(self.words):
            raise PieError("internal", f"{name} (offset {offset}, length {length}) leaves the batch of {len(self.words)} words")
        return self.words[offset : offset + length]

    @property
    def id(self) -> int:
        """The name of the batch, by which it is completed."""
        return self._wide(HEAD_BATCH_ID)

    @property
    def before(self) -> int:
        """The number of the batch whose rows sequences of this one follow; 0 where none does."""
        return self._wide(HEAD_BEFORE)

    @property
    def page_size(self) -> int:
        """Tokens of a page."""
        return self._head[HEAD_PAGE_SIZE]

    @property
    def n_tokens(self) -> int:
        """T."""
        return self._head[HEAD_TOKENS]

    @property
    def n_seqs(self) -> int:
        """B."""
        return self._head[HEAD_SEQUENCES]

    @property
    def n_rows(self) -> int:
        """R."""
        return self._head[HEAD_ROWS]

    def _wide(self, word: int) -> int:
        return self._head[word] | self._head[word + 1] << 32
