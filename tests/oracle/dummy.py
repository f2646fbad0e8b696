"""The dummy driver: the logits that it answers after a sequence of tokens.

h(slot) folds token, position, adapter identity, adapter version, zo flag, zo seed and media, then the h of every earlier
slot that the token sees, then 1 if it sees itself. A row of logits is SplitMix64 from that and the name of the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np
import numpy.typing as npt

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


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


def extend(hashes: list[int], tokens: Iterable[int]) -> None:
    """Appends the h of each token, which stand at the positions that follow."""
    for token in tokens:
        own = fold_all(0, (token, len(hashes), 0, 0, 0, 0, 0))
        hashes.append(fold(fold_all(own, hashes), 1))


def logits(model: str, vocab_size: int, last: int) -> npt.NDArray[np.float32]:
    """The logits, float32 [V] in [-8, 8), of the row of a token whose h is `last`."""
    name = model.encode()
    base = fold(last, fold_all(fold(0, len(name)), name))
    bits = np.array([mix((base + n * GOLDEN) & MASK) >> 40 for n in range(1, vocab_size + 1)], dtype=np.float32)
    return bits * np.float32(2.0**-20) - np.float32(8.0)
