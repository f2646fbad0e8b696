"""What a generation accepts, and why it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from wit_world.imports import generation as _generation

__all__ = ["FinishReason", "Output"]


class FinishReason(StrEnum):
    """Why a generation ended; equal to its text."""

    STOP = "stop"
    """A stop token was accepted."""
    LENGTH = "length"
    """The cap or the length of the model's context was reached."""
    CONSTRAINT = "constraint"
    """A constraint ended the generation."""
    CLOSED = "closed"
    """The generator was retired: by a newer one, a truncation, or the end of its context."""

    @classmethod
    def _of(cls, raw: _generation.FinishReason | None) -> FinishReason | None:
        return None if raw is None else cls[raw.name]


@dataclass(frozen=True)
class Output:
    """What one step accepted."""

    tokens: list[int] = field(default_factory=list)
    """Accepted tokens; a stop token is the last."""
    finish_reason: FinishReason | None = None
    """Set when this step ended the generation."""

    @classmethod
    def _of(cls, raw: _generation.Output) -> Output:
        return cls(list(raw.tokens), FinishReason._of(raw.finish))

    def _raw_finish(self) -> _generation.FinishReason | None:
        reason = self.finish_reason
        return None if reason is None else _generation.FinishReason[reason.name]
