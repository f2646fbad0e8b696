"""How a token is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from wit_world.imports import generation as _generation

from inferlet import _arguments
from inferlet.errors import ErrorCode, InvalidArgumentError

__all__ = ["Sampler"]

_V = TypeVar("_V")


@dataclass(frozen=True)
class Sampler:
    """A way to choose a token; made by the constructors below.

    Order in each: temperature, softmax, top-k, top-p or min-p over what is left (renormalised after each), draw. Temperature 0
    is argmax, with ties to the lowest id. `seed` is used as given, 0 included, before the seed of the generator; None: the
    generator's. The engine refuses parameters out of range when the sampler is attached, with the code `invalid-sampler`.
    """

    _method: _generation.Method
    _seed: int | None = None

    @staticmethod
    def argmax() -> Sampler:
        """The likeliest token; ties go to the lowest id."""
        return Sampler(_generation.Method_Argmax())

    @staticmethod
    def greedy() -> Sampler:
        """Another name of `argmax`."""
        return Sampler.argmax()

    @staticmethod
    def top_p(temperature: float = 0.6, p: float | None = None, *, top_p: float | None = None, seed: int | None = None) -> Sampler:
        """Draws from the likeliest tokens that together have the probability `p` (in (0, 1], default 0.95), also spelled `top_p`."""
        method = _generation.TopP(_temperature(temperature), _arguments.number("p", _either("p", p, "top_p", top_p, 0.95)))
        return Sampler(_generation.Method_TopP(method), _arguments.seed("seed", seed))

    @staticmethod
    def top_k(temperature: float = 0.6, k: int | None = None, *, top_k: int | None = None, seed: int | None = None) -> Sampler:
        """Draws from the `k` likeliest tokens (at least 1, default 50), also spelled `top_k`."""
        method = _generation.TopK(_temperature(temperature), _count("k", _either("k", k, "top_k", top_k, 50)))
        return Sampler(_generation.Method_TopK(method), _arguments.seed("seed", seed))

    @staticmethod
    def min_p(temperature: float = 0.6, p: float | None = None, *, min_p: float | None = None, seed: int | None = None) -> Sampler:
        """Draws from the tokens with at least `p` times the highest probability (in [0, 1], default 0.1), also spelled `min_p`."""
        method = _generation.MinP(_temperature(temperature), _arguments.number("p", _either("p", p, "min_p", min_p, 0.1)))
        return Sampler(_generation.Method_MinP(method), _arguments.seed("seed", seed))

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
        """Keeps the `k` likeliest tokens (default 50), then of those the likeliest with probability `p` (default 0.95)."""
        method = _generation.TopKTopP(
            _temperature(temperature),
            _count("k", _either("k", k, "top_k", top_k, 50)),
            _arguments.number("p", _either("p", p, "top_p", top_p, 0.95)),
        )
        return Sampler(_generation.Method_TopKTopP(method), _arguments.seed("seed", seed))

    @staticmethod
    def multinomial(temperature: float = 1.0, draws: int = 1, *, seed: int | None = None) -> Sampler:
        """Draws from the whole distribution: `draws` independent tokens in the slot; a generator needs 1.

        Here alone the seed 0 counts as none, because it was the default of this constructor in older programs.
        """
        method = _generation.Multinomial(_temperature(temperature), _count("draws", draws))
        return Sampler(_generation.Method_Multinomial(method), _arguments.seed("seed", seed) or None)

    def _raw(self) -> _generation.Sampler:
        return _generation.Sampler(self._method, self._seed)


def _temperature(value: object) -> float:
    return _arguments.number("temperature", value)


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
