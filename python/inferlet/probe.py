"""What is read of a row of logits, beside what is drawn from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wit_world.imports import sampling as _sampling

from inferlet import _arguments
from inferlet.errors import ErrorCode

__all__ = ["Distribution", "Embedding", "Entropy", "Logits", "Logprob", "Logprobs", "Probe"]


@dataclass(frozen=True)
class Probe:
    """A way to read a row of logits; made by the classes below.

    No mask and no sampler changes what a probe reads. The engine refuses values out of range when the probe is
    attached, with the code `invalid-probe`.
    """

    _raw: _sampling.Probe = field(init=False, repr=False, compare=False)

    def _bind(self, raw: _sampling.Probe) -> None:
        object.__setattr__(self, "_raw", raw)


@dataclass(frozen=True)
class Logits(Probe):
    """The row itself, before softmax: `Output.logits`."""

    def __post_init__(self) -> None:
        self._bind(_sampling.Probe_Logits())


@dataclass(frozen=True)
class Distribution(Probe):
    """The `k` likeliest tokens with their probabilities, the likeliest first: `Output.distribution`.

    `k` of 0 gives all tokens, in the order of their ids. The temperature is above 0; probabilities are over the whole
    vocabulary, whatever `k` is.
    """

    temperature: float
    k: int

    def __post_init__(self) -> None:
        temperature = _arguments.number("temperature", self.temperature)
        k = _arguments.count("k", self.k, ErrorCode.INVALID_PROBE)
        self._bind(_sampling.Probe_Distribution(_sampling.Distribution(temperature, k)))


@dataclass(frozen=True)
class Logprob(Probe):
    """The natural logarithm of the probability of one token at temperature 1: `Output.logprobs`, a list of one."""

    token: int

    def __post_init__(self) -> None:
        self._bind(_sampling.Probe_Logprobs(_arguments.tokens("token", [self.token])))


@dataclass(frozen=True)
class Logprobs(Probe):
    """The natural logarithms of the probabilities of tokens at temperature 1, in their order: `Output.logprobs`."""

    tokens: Iterable[int]

    def __post_init__(self) -> None:
        tokens = _arguments.tokens("tokens", self.tokens)
        object.__setattr__(self, "tokens", tuple(tokens))
        self._bind(_sampling.Probe_Logprobs(tokens))


@dataclass(frozen=True)
class Entropy(Probe):
    """The entropy of the distribution at temperature 1, in nats: `Output.entropy`."""

    def __post_init__(self) -> None:
        self._bind(_sampling.Probe_Entropy())


@dataclass(frozen=True)
class Embedding(Probe):
    """The final hidden state behind the token: `Output.embedding`.

    A driver that has none to give is the error `unsupported`.
    """

    def __post_init__(self) -> None:
        self._bind(_sampling.Probe_Embedding())
