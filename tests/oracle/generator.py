"""Contexts and generators on the dummy driver: the tokens that the engine must give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from . import dummy, seeds
from .sampler import Sampler, draw


@dataclass
class Context:
    """A sequence of tokens. What is pending, buffered or computed makes no difference to what is drawn."""

    tokens: list[int] = field(default_factory=list)
    path: int = 0
    n_forks: int = 0

    def append(self, tokens: list[int]) -> None:
        """Adds tokens."""
        self.tokens += tokens

    def fork(self) -> Context:
        """A copy, on a path of its own."""
        self.n_forks += 1
        return Context(list(self.tokens), seeds.fork_path(self.path, self.n_forks))


@dataclass
class Process:
    """A launched program: what its derived seeds depend on."""

    model: str
    vocab_size: int
    launch_seed: int
    end_tokens: frozenset[int]
    max_context: int
    counts: Counter[int] = field(default_factory=Counter)

    def generate(
        self,
        context: Context,
        sampler: Sampler,
        *,
        seed: int | None = None,
        max_tokens: int | None = None,
        stop: frozenset[int] = frozenset(),
    ) -> tuple[list[int], str]:
        """Generates to the end: the tokens, and why it ended."""
        if max_tokens == 0 or len(context.tokens) >= self.max_context:
            return [], "length"
        start = seeds.origin(context.path, context.tokens)
        key = seeds.derive(self.launch_seed, start, self.counts[start]) if seed is None else seed
        self.counts[start] += 1
        hashes: list[int] = []
        dummy.extend(hashes, context.tokens)
        accepted: list[int] = []
        while True:
            row = dummy.logits(self.model, self.vocab_size, hashes[-1])
            token = draw(row, sampler, key, len(context.tokens))
            accepted.append(token)
            context.append([token])
            dummy.extend(hashes, [token])
            if token in self.end_tokens or token in stop:
                return accepted, "stop"
            if len(accepted) == max_tokens or len(context.tokens) >= self.max_context:
                return accepted, "length"
