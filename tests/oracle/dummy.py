"""The dummy driver: the logits that it answers after a sequence of tokens.

h(slot) folds token, position, adapter identity, adapter version, zo flag, zo seed and media, then the h of every
earlier slot that the token sees, then 1 if it sees itself. A row of logits is SplitMix64 from that and the name of the
model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import accumulate

import numpy as np
import numpy.typing as npt

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
EMBEDDINGS = 8


def mix(word: int) -> int:
    """The finalizer of SplitMix64."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def fold(state: int, word: int) -> int:
    """Folds a word into a hash."""
    return mix(((state + GOLDEN) & MASK) ^ word)


def fold_all(state: int, words: Iterable[int]) -> int:
    """Folds words into a hash, in order."""
    return reduce(fold, words, state)


@dataclass(frozen=True)
class Write:
    """A token as a pass writes it into a slot."""

    token: int
    position: int
    mask: Sequence[int] = ()
    """Run lengths over the slots, forbidden first; none: every slot up to its own.

    Beyond the last run nothing is seen.
    """
    adapter: int = 0
    version: int = 0
    zo_seed: int | None = None
    media: int = 0

    def sees(self, slot: int) -> bool:
        """Whether its mask allows a slot."""
        ends = list(accumulate(self.mask))
        return not self.mask or any(start <= slot < end for start, end in zip(ends[::2], ends[1::2], strict=False))


def append(hashes: list[int], write: Write) -> None:
    """Appends the h of a token that goes to the next slot."""
    own = len(hashes)
    identity = (write.token, write.position, write.adapter, write.version, int(write.zo_seed is not None), write.zo_seed or 0, write.media)
    seen = [hash_ for slot, hash_ in enumerate(hashes) if write.sees(slot)]
    hashes.append(fold(fold_all(fold_all(0, identity), seen), int(write.sees(own))))


def extend(hashes: list[int], tokens: Iterable[int]) -> None:
    """Appends the h of each token, which stand at the positions that follow."""
    for token in tokens:
        append(hashes, Write(token, len(hashes)))


def value(base: int, n: int) -> float:
    """The n-th value, counted from 1, in [-8, 8)."""
    return (mix((base + n * GOLDEN) & MASK) >> 40) * 2.0**-20 - 8.0


def hash_of(model: str) -> int:
    """The hash of the name of a model."""
    name = model.encode()
    return fold_all(fold(0, len(name)), name)


def embedding(model: str, vocab_size: int, last: int) -> list[float]:
    """The hidden state of a token whose h is `last`."""
    base = fold(fold(last, hash_of(model)), 1)
    return [value(base, n) for n in range(1, min(EMBEDDINGS, vocab_size) + 1)]


@lru_cache(maxsize=512)
def logits(model: str, vocab_size: int, last: int) -> npt.NDArray[np.float32]:
    """The logits, float32 [V] in [-8, 8), of the row of a token whose h is `last`."""
    return _values(_base(model, last), vocab_size)


def state(model: str, vocab_size: int, last: int) -> npt.NDArray[np.float32]:
    """The hidden state, float32 of at most 8 values, of a token whose h is `last`."""
    return _values(fold(_base(model, last), 1), min(8, vocab_size))


def _base(model: str, last: int) -> int:
    name = model.encode()
    return fold(last, fold_all(fold(0, len(name)), name))


def _values(base: int, n: int) -> npt.NDArray[np.float32]:
    bits = np.array([mix((base + index * GOLDEN) & MASK) >> 40 for index in range(1, n + 1)], dtype=np.float32)
    return bits * np.float32(2.0**-20) - np.float32(8.0)
