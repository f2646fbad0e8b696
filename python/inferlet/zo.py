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
from inferlet.adapter import Adapter
from inferlet.errors import ErrorCode, InvalidArgumentError

__all__ = ["Optimizer", "coefficients", "seed_for"]

_MASK = 2**64 - 1
_MEMBERS = 2**32
# One has nothing beside it that would be better or worse.
_MIN_SCORES = 2
_MAX_SCORES = 1_000_000
_MAX_POPULATION = 1 << 16


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


class Optimizer:
    """Trains an adapter by evolution strategies.

    Each step has a population of seeds. The program generates with the adapter under each of them (`zo_seed`), scores
    what came, and tells the scores; then the adapter takes a step:

        optimizer = zo.Optimizer(adapter, sigma=0.05, lr=0.5, population=16)
        for _ in range(50):
            seeds = optimizer.ask()
            optimizer.tell(seeds, [await score(adapter, seed) for seed in seeds])
            optimizer.apply()

    The same scores give the same adapter, bit for bit, on every back end.
    """

    def __init__(self, adapter: Adapter, sigma: float = 0.02, lr: float = 0.1, population: int = 16, *, first_step: int = 0) -> None:
        """`sigma` is by how much each seed perturbs the adapter, `lr` how far a step goes.

        `population` is 2 to 65,536 seeds a step. Whoever goes on with an adapter that was saved gives the number of
        steps that were done as `first_step`, so that no seed comes twice. Values out of their range are the error
        `invalid-argument`.
        """
        _arguments.of_type("adapter", adapter, Adapter)
        self.sigma = _positive("sigma", sigma)
        """By how much a seed perturbs the adapter."""
        self.lr = _positive("lr", lr)
        """How far a step goes."""
        self.population = _arguments.count("population", population)
        """Seeds of a step."""
        if not _MIN_SCORES <= self.population <= _MAX_POPULATION:
            message = f"population is {population}; it must lie in {_MIN_SCORES}..{_MAX_POPULATION}"
            raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"population": str(population)})
        self.step = _arguments.count("first_step", first_step)
        """Steps that were done."""
        self.adapter = adapter
        """What is trained."""
        self._scores: dict[int, float] = {}
        adapter.change(sigma=self.sigma)

    def ask(self) -> list[int]:
        """The seeds of this step: the same until `apply`."""
        return [seed_for(self.step, member) for member in range(self.population)]

    def tell(self, seeds: Iterable[int], scores: Iterable[float]) -> None:
        """Takes the scores of seeds of this step, all of them or some; a greater score is better.

        A later score of a seed replaces an earlier one. A seed of another step, a score that is not a finite number,
        and lists of different lengths are the error `invalid-argument`; nothing is taken then.
        """
        given = [_arguments.signed(f"seeds[{index}]", seed) for index, seed in enumerate(islice(seeds, _MAX_POPULATION + 1))]
        told = [_arguments.number(f"scores[{index}]", score) for index, score in enumerate(islice(scores, _MAX_POPULATION + 1))]
        if len(given) != len(told):
            message = f"there are {len(given)} seeds and {len(told)} scores; give a score for each seed"
            raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"seeds": str(len(given)), "scores": str(len(told))})
        known = set(self.ask())
        for index, (seed, score) in enumerate(zip(given, told, strict=True)):
            if seed not in known:
                message = f"seeds[{index}] is {seed}, which is none of step {self.step}; score the seeds that ask() gave"
                raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"seed": str(seed)})
            if not math.isfinite(score):
                message = f"scores[{index}] is {score}; give a finite number"
                raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"scores": str(score)})
        self._scores.update(zip(given, told, strict=True))

    def apply(self) -> None:
        """Changes the adapter by the scores, and begins the next step.

        The noise of each seed is added times `lr / population` times its part in `coefficients`. A seed without a score
        is the error `invalid-argument`; those of `Adapter.change`, and then the step can be applied again.
        """
        seeds = self.ask()
        missing = [seed for seed in seeds if seed not in self._scores]
        if missing:
            message = f"{len(missing)} of the {self.population} seeds of step {self.step} have no score; tell those first"
            raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"missing": str(len(missing))})
        parts = coefficients(self._scores[seed] for seed in seeds)
        scale = self.lr / self.population
        self.adapter.change([(seed, scale * part) for seed, part in zip(seeds, parts, strict=True) if part])
        self._scores.clear()
        self.step += 1

    update = apply


def _positive(name: str, value: float) -> float:
    """A finite number above 0."""
    number = _arguments.number(name, value)
    if not 0 < number < math.inf:
        message = f"{name} is {number}; give a finite number above 0"
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {name: str(number)})
    return number
