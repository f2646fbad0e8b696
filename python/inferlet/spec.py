"""Speculators: who proposes tokens that are computed together, and kept while the sampler draws the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

__all__ = ["Speculator"]


@runtime_checkable
class Speculator(Protocol):
    """What `Context.generate(speculator=...)` takes; any class with `draft` and `accept` will do.

    A speculator never changes a token: the engine keeps a draft while it equals what the sampler draws there. A class
    that derives from this one has a `rollback` and a `reset` that do nothing.
    """

    def draft(self) -> tuple[Iterable[int], Iterable[int]]:
        """Tokens behind the newest one and their positions, which are consecutive; none: nothing is proposed.

        Asked once in each step.
        """
        ...

    def accept(self, tokens: list[int]) -> None:
        """Takes what a step drew: the drafts that were kept, and the token behind them.

        It comes behind `rollback`.
        """
        ...

    def rollback(self, n: int) -> None:
        """Undoes the last `n` drafts of a step, which were not kept. Called where there were any."""

    def reset(self) -> None:
        """Goes back to how it began.

        Called when a generation begins to use it, and where `Generator.accept` took tokens back: `accept` then gets all
        tokens of the generation anew.
        """
