"""Words and names to draw, many of them made up."""

from __future__ import annotations

from .draw import Draw
from .lexicon.pools import LETTER_WORDS, PERSONS

_OPENINGS = (
    *("b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pr", "r", "s", "sh", "st"),
    *("t", "tr", "v", "w", "y", "z"),
)
_VOWELS = ("a", "e", "i", "o", "u", "a", "e", "o", "ai", "ee", "ou")
_ENDS = ("", "", "", "l", "m", "n", "r", "s", "t", "k", "nd", "x", "lt", "rn")


def coined_word(rng: Draw) -> str:
    """A word in small letters that means nothing, of one to three syllables; the splits share none."""
    while True:
        word = "".join(rng.choice(_OPENINGS) + rng.choice(_VOWELS) + rng.choice(_ENDS) for _ in range(rng.randint(1, 3)))
        if len(word) >= 3 and rng.falls_here(word):
            return word


def person(rng: Draw) -> str:
    """A given name, in training often one that nobody bears."""
    return rng.entry(PERSONS)


def letter_word(rng: Draw) -> str:
    """A word for work on its letters, of a lexicon or coined."""
    if rng.random() < 0.35:
        return coined_word(rng)
    return rng.entry(LETTER_WORDS)
