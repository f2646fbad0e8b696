"""How a token is chosen."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import ParamSpec, TypeVar

from wit_world.imports import sampling as _sampling

from inferlet import _arguments
from inferlet._wait import place_of_program
from inferlet.errors import ErrorCode, InvalidArgumentError
from inferlet.probe import Distribution, Embedding

__all__ = ["Sampler"]

_P = ParamSpec("_P")
_V = TypeVar("_V")

told: set[int] = set()
"""The number that was given alone to `top_k`, of which the program was told."""


def _tells_of_a_lone_k(top_k: Callable[_P, Sampler]) -> Callable[_P, Sampler]:
    """Warns, once, of a whole number that alone is given to `top_k`, where it is the temperature."""

    @functools.wraps(top_k)
    def make(*given: _P.args, **named: _P.kwargs) -> Sampler:
        made = top_k(*given, **named)
        k = given[0] if len(given) == 1 and not {"k", "top_k"} & named.keys() else None
        if type(k) is int and k > 1 and not told:
            told.add(k)
            place = place_of_program()
            at = f"{place}: " if place else ""
            print(f"warning: {at}Sampler.top_k({k}) is a temperature of {k}; write Sampler.top_k(1.0, {k})", file=sys.stderr)
        return made

    return make


@dataclass(frozen=True)
class Sampler:
    """A way to choose a token; made by the constructors below.

    Order in each: temperature, softmax, top-k, top-p or min-p over what is left (renormalised after each), draw.
    Temperature 0 is argmax, with ties to the lowest id. `seed` is used as given, 0 included, before the seed of the
    generator; None: the generator's. The engine refuses parameters out of range when the sampler is attached, with the
    code `invalid-sampler`.
    """

    _raw: _sampling.Sampler

    @staticmethod
    def argmax() -> Sampler:
        """The likeliest token; ties go to the lowest id."""
        return _sampler(0.0)

    @staticmethod
    def greedy() -> Sampler:
        """Another name of `argmax`."""
        return Sampler.argmax()

    @staticmethod
    def top_p(temperature: float = 0.6, p: float | None = None, *, top_p: float | None = None, seed: int | None = None) -> Sampler:
        """Draws from the likeliest tokens that together have the probability `p`, also spelled `top_p`.

        The temperature comes first, as in `Sampler.top_p(0.6, 0.95)`. `p` is in (0, 1], 0.95 by default.
        """
        return _sampler(temperature, top_p=_arguments.number("p", _either("p", p, "top_p", top_p, 0.95)), seed=seed)

    @staticmethod
    @_tells_of_a_lone_k
    def top_k(temperature: float = 0.6, k: int | None = None, *, top_k: int | None = None, seed: int | None = None) -> Sampler:
        """Draws from the `k` likeliest tokens (at least 1, default 50), also spelled `top_k`."""
        return _sampler(temperature, top_k=_count("k", _either("k", k, "top_k", top_k, 50)), seed=seed)

    @staticmethod
    def min_p(temperature: float = 0.6, p: float | None = None, *, min_p: float | None = None, seed: int | None = None) -> Sampler:
        """Draws from the tokens with at least `p` times the highest probability, also spelled `min_p`.

        `p` is in [0, 1], 0.1 by default.
        """
        return _sampler(temperature, min_p=_arguments.number("p", _either("p", p, "min_p", min_p, 0.1)), seed=seed)

    @staticmethod
    def top_k_top_p(  # noqa: PLR0913 - three parameters, two of them with a second spelling, and the seed
        temperature: float = 0.6,
        k: int | None = None,
        p: float | None = None,
        *,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Sampler:
        """Keeps the `k` likeliest tokens (default 50), then of those the likeliest with probability `p`.

        `p` is 0.95 by default.
        """
        n_kept = _count("k", _either("k", k, "top_k", top_k, 50))
        nucleus = _arguments.number("p", _either("p", p, "top_p", top_p, 0.95))
        return _sampler(temperature, top_k=n_kept, top_p=nucleus, seed=seed)

    @staticmethod
    def multinomial(temperature: float = 1.0, draws: int = 1, *, seed: int | None = None) -> Sampler:
        """Draws from the whole distribution: `draws` independent tokens in the slot; a generator needs 1.

        Here alone the seed 0 counts as none, because it was the default of this constructor in older programs.
        """
        return _sampler(temperature, draws=_count("draws", draws), seed=_seed(seed) or None)

    @staticmethod
    def dist(temperature: float = 1.0, seed: int = 0) -> Distribution:
        """The probabilities of all tokens, as older programs ask for them: a probe, which `Forward.sample` takes.

        Nothing is drawn, so the seed changes nothing.
        """
        _arguments.seed("seed", seed)
        return Distribution(temperature, 0)

    @staticmethod
    def embedding() -> Embedding:
        """The final hidden state, as older programs ask for it: a probe, which `Forward.sample` takes."""
        return Embedding()


def check_sampler(value: object) -> None:
    """Refuses what is not a Sampler. A function of the program is told of how it chooses tokens itself."""
    if isinstance(value, FunctionType) and not str(value.__module__).startswith("inferlet"):
        remedy = "a Sampler; a function of one's own takes its place by clear_sampler and accept, see the guide on steps (steps.md)"
        _arguments.refuse("sampler", value, remedy)
    _arguments.of_type("sampler", value, Sampler)


def _sampler(  # noqa: PLR0913 - the fields of the record
    temperature: object,
    *,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    draws: int = 1,
    seed: int | None = None,
) -> Sampler:
    return Sampler(_sampling.Sampler(_arguments.number("temperature", temperature), top_k, top_p, min_p, draws, _seed(seed)))


def _seed(seed: object) -> int | None:
    return None if seed is None else _arguments.seed("seed", seed)


def _count(name: str, value: object) -> int:
    return _arguments.count(name, value, ErrorCode.INVALID_SAMPLER)


def _either(name: str, value: _V | None, other_name: str, other: _V | None, default: _V) -> _V:
    """One parameter under its two spellings."""
    if value is not None and other is not None:
        raise InvalidArgumentError(
            ErrorCode.INVALID_ARGUMENT, f"{name} = {value!r} and {other_name} = {other!r} are two names of one parameter; give one of them"
        )
    if value is not None:
        return value
    return default if other is None else other
