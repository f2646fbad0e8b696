"""Words read in other pieces than the tokenizer's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from tokenizers import Tokenizer

from .tokenizer import TURN_START, token_id


class Splitter:
    """Cuts some tokens of letters into two that make up the same text, and those again.

    Whoever reads words in many pieces learns which letters a token has, and copies and spells
    words that text seldom holds better. The effect is that of dropping merges at random
    (BPE-dropout, Provilkov et al. 2020), which `tokenizers` offers too, but draws from a
    source that no seed sets.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        vocabulary = tokenizer.get_vocab()
        self._turn_start = token_id(tokenizer, TURN_START)
        self._halves: dict[int, list[tuple[int, int]]] = {}
        for text, number in vocabulary.items():
            if re.fullmatch("Ġ?[A-Za-z]+", text):
                cuts = [(text[:at], text[at:]) for at in range(1, len(text))]
                halves = [(vocabulary[left], vocabulary[right]) for left, right in cuts if left in vocabulary and right in vocabulary]
                if halves:
                    self._halves[number] = halves

    def split(self, rng: Random, ids: Sequence[int], share: float) -> list[int]:
        """The same text in other tokens: each token, and each half of one, is cut with the probability `share`.

        Who speaks in a turn stays as it is.
        """
        out: list[int] = []
        rest = list(reversed(ids))
        while rest:
            number = rest.pop()
            halves = self._halves.get(number)
            if halves is not None and rng.random() < share and not (out and out[-1] == self._turn_start):
                left, right = rng.choice(halves)
                rest += (right, left)
            else:
                out.append(number)
        return out
