"""Constraints: who says in each step which tokens may be drawn."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from inferlet.model import Model

__all__ = ["Constraint", "Schema"]


@runtime_checkable
class Constraint(Protocol):
    """What `Context.generate(constrain=...)` takes; any class with this method will do."""

    def step(self, accepted: list[int]) -> list[int] | None:
        """The mask of the tokens that may be drawn next, as run lengths (`inferlet.brle`).

        Called once in each step with what the step before accepted, in the first step with an empty list. None or an
        empty list: any token.
        """
        ...


@runtime_checkable
class Schema(Protocol):
    """What makes a constraint for a model, once for each generation; any class with this method will do."""

    def build_constraint(self, model: Model) -> Constraint:
        """A fresh constraint for a model, at the beginning of a text."""
        ...
