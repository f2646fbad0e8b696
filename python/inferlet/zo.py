"""Zeroth-order optimisation: an adapter is trained by passes alone, without gradients.

A step tries a population of small changes of an adapter's weights. Each is made from a seed, for one pass or one
generation (`zo_seed`), and leaves no trace. The program scores what each of them answers, and the scores say how much
of each change the adapter should take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

from inferlet import _arguments
from inferlet.errors import ErrorCode, InvalidArgumentError

__all__ = ["coefficients", "seed_for"]

_MASK = 2**64 - 1
_MEMBERS = 2**32
# One has nothing beside it that would be better or worse.
_MIN_SCORES = 2
_MAX_SCORES = 1_000_000


def seed_for(step: int, member: int) -> int:
    """The `zo_seed` of a member of a step's population: the same each time, and another for each pair.

    Both are integers in 0..4294967295.
    """
    pair = _arguments.count("step", step) * _MEMBERS + _arguments.count("member", member)
    # Each line maps 64 bits to 64 bits one to one (the mixer is that of SplitMix64), so that no two pairs share a seed.
    mixed = (pair + 1) * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    mixed ^= mixed >> 31
    return mixed - 2**64 if mixed >> 63 else mixed


def coefficients(scores: Iterable[float]) -> list[float]:
    """How much of each change the adapter takes: the scores with the mean 0 and the variance 1.

    Scores that are all equal prefer nothing: each is 0 then. Fewer than two scores, more than 1,000,000, and what is
    not a finite number are the error `invalid-argument`.
    """
    try:
        # What has no end is not read to its end.
        given = list(islice(scores, _MAX_SCORES + 1))
    except TypeError:
        _arguments.refuse("scores", scores, "a list of numbers")
    values = [_arguments.number(f"scores[{index}]", score) for index, score in enumerate(given)]
    if not _MIN_SCORES <= len(values) <= _MAX_SCORES:
        of = f"more than {_MAX_SCORES}" if len(values) > _MAX_SCORES else str(len(values))
        message = f"there are {of} scores; give {_MIN_SCORES} to {_MAX_SCORES}, one for each member of the population"
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"scores": str(len(values))})
    for index, value in enumerate(values):
        if not math.isfinite(value):
            message = f"scores[{index}] is {value}; give a finite number"
            raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"scores": str(value)})
    # Of scores near the largest numbers the squares have no value.
    largest = max(map(abs, values)) or 1.0
    scaled = [value / largest for value in values]
    mean = math.fsum(scaled) / len(scaled)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in scaled) / len(scaled))
    if deviation == 0 or min(scaled) == max(scaled):
        return [0.0] * len(values)
    return [(value - mean) / deviation for value in scaled]
