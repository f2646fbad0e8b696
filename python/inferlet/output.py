"""What came of a pass, of a forward pass or of a step, and why a generation ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from wit_world.imports import forward as _forward
from wit_world.imports import generation as _generation
from wit_world.imports import sampling as _sampling

from inferlet import _arguments

__all__ = ["FinishReason", "Output", "ProbeHandle", "RawOutput", "SampleHandle"]

_S = TypeVar("_S")


class FinishReason(StrEnum):
    """Why a generation ended; equal to its text."""

    STOP = "stop"
    """A stop token was accepted, or a stop text was complete."""
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
class SampleHandle:
    """Stands for a sampler of a pass: `Output.token` and `Output.tokens_at` take it."""

    _owner: object = field(repr=False)
    _place: int = field(repr=False)


@dataclass(frozen=True)
class ProbeHandle:
    """Stands for a probe of a pass, or of every step: `Output.logits` and the others take it."""

    _owner: object = field(repr=False)
    _place: int = field(repr=False)


@dataclass(frozen=True)
class RawOutput:
    """What the engine answered, as it is."""

    slots: Sequence[_sampling.Slot] = ()
    """One for each sampler and probe of the pass. Empty in a step without probes, whose tokens say it all."""
    speculative: _sampling.Speculation = field(default_factory=lambda: _sampling.Speculation(0, 0))
    """`drafted` tokens were proposed, and of these `accepted` drawn as well."""


class PassSlots:
    """Tells the slots of a forward pass by their handles, which belong to it."""

    auto_sampler: SampleHandle | None = None

    def find(self, handle: SampleHandle | ProbeHandle) -> int | None:
        """The slot of a handle; None where it belongs to another pass."""
        return handle._place if handle._owner is self else None


class StepSlots:
    """Tells the slots of a step by their handles: the generator's sampler, the probes of every step, those of this one.

    Handles of every step belong to `every_step`, the others to this.
    """

    __slots__ = ("draws", "every_step", "n_every_step")

    def __init__(self, every_step: object, n_every_step: int = 0) -> None:
        self.every_step = every_step
        self.n_every_step = n_every_step
        self.draws = True

    @property
    def auto_sampler(self) -> SampleHandle | None:
        """The handle of the generator's sampler; None where it was cleared."""
        return SampleHandle(self, 0) if self.draws else None

    def probe_at(self, slot: int, n_every_step: int) -> ProbeHandle:
        """The handle of a probe of this step, which has that slot as things are."""
        return ProbeHandle(self, slot - self.draws - n_every_step)

    def find(self, handle: SampleHandle | ProbeHandle) -> int | None:
        """The slot of a handle; None where it belongs to another step."""
        if handle._owner is self.every_step:
            return self.draws + handle._place
        if handle._owner is not self:
            return None
        return self.draws + self.n_every_step + handle._place if isinstance(handle, ProbeHandle) else handle._place


_Answer = _forward.PassOutput | _generation.Output


@dataclass(frozen=True)
class Output:
    """What came of a pass or of a step. A handle of another kind or of another pass gives None."""

    tokens: list[int] = field(default_factory=list)
    """What a step of a generator accepted; a stop token is the last. Empty for a forward pass."""
    finish_reason: FinishReason | None = None
    """Set when this step ended the generation."""
    _answer: _Answer | None = field(default=None, repr=False, compare=False)
    _slots: PassSlots | StepSlots | tuple[object, int] | None = field(default=None, repr=False, compare=False)
    """A pair is what the slots of a step are made of when somebody asks for them."""

    @classmethod
    def _of_step(cls, answer: _generation.Output, slots: StepSlots | tuple[object, int]) -> Output:
        # Every step makes one: not by `__init__`, which sets each field of a frozen dataclass by a call.
        made = cls.__new__(cls)
        finish = answer.finish
        made.__dict__.update(
            tokens=answer.tokens,
            finish_reason=None if finish is None else FinishReason[finish.name],
            _answer=answer,
            _slots=slots,
        )
        return made

    @classmethod
    def _of_pass(cls, answer: _forward.PassOutput, slots: PassSlots) -> Output:
        return cls([], None, answer, slots)

    def _found_slots(self) -> PassSlots | StepSlots | None:
        slots = self._slots
        if isinstance(slots, tuple):
            slots = StepSlots(*slots)
            # Handles tell slots by identity, so that there is one for all of them.
            self.__dict__["_slots"] = slots
        return slots

    def _raw_finish(self) -> _generation.FinishReason | None:
        reason = self.finish_reason
        return None if reason is None else _generation.FinishReason[reason.name]

    @property
    def raw(self) -> RawOutput:
        """The slots and the speculation, as the engine gave them."""
        return RawOutput() if self._answer is None else RawOutput(self._answer.slots, self._answer.speculation)

    @property
    def auto_sampler(self) -> SampleHandle | None:
        """The handle of the generator's own sampler; None for a forward pass and where it was cleared."""
        slots = self._found_slots()
        return None if slots is None else slots.auto_sampler

    def token(self, handle: SampleHandle) -> int | None:
        """The first token that a sampler drew."""
        tokens = self.tokens_at(handle)
        return tokens[0] if tokens else None

    def tokens_at(self, handle: SampleHandle) -> list[int] | None:
        """Every token that a sampler drew, index after index, and for each index draw after draw."""
        if self._answer is not None and not self._answer.slots and handle == self.auto_sampler:
            # A step without probes has no slots: its tokens say it all.
            return list(self.tokens)
        slot = self._slot(handle, _sampling.Slot_Tokens)
        return None if slot is None else list(slot.value)

    def distribution(self, handle: ProbeHandle) -> tuple[list[int], list[float]] | None:
        """Tokens and their probabilities, of a `Distribution`: two lists of the same length."""
        slot = self._slot(handle, _sampling.Slot_Distribution)
        return None if slot is None else (list(slot.value.tokens), list(slot.value.values))

    def logits(self, handle: ProbeHandle) -> bytes | None:
        """The row of a `Logits`: float32 `[V]` in the byte order of the machine, `4 * vocab_size` bytes."""
        slot = self._slot(handle, _sampling.Slot_Logits)
        return None if slot is None else slot.value

    def logprobs(self, handle: ProbeHandle) -> list[float] | None:
        """The natural logarithms of a `Logprob` or `Logprobs`, in the order of its tokens."""
        slot = self._slot(handle, _sampling.Slot_Logprobs)
        return None if slot is None else list(slot.value)

    def entropy(self, handle: ProbeHandle) -> float | None:
        """The entropy of an `Entropy`, in nats."""
        slot = self._slot(handle, _sampling.Slot_Entropy)
        return None if slot is None else slot.value

    def embedding(self, handle: ProbeHandle) -> bytes | None:
        """The hidden state of an `Embedding`: float32 `[hidden size]` in the byte order of the machine."""
        slot = self._slot(handle, _sampling.Slot_Embedding)
        return None if slot is None else slot.value

    def _slot(self, handle: SampleHandle | ProbeHandle, kind: type[_S]) -> _S | None:
        """The slot of a handle, where it is of this pass and of this kind."""
        if not isinstance(handle, SampleHandle | ProbeHandle):
            _arguments.of_type("handle", handle, SampleHandle if kind is _sampling.Slot_Tokens else ProbeHandle)
        found = self._found_slots()
        if self._answer is None or found is None:
            return None
        place, slots = found.find(handle), self._answer.slots
        if place is None or place >= len(slots):
            return None
        slot = slots[place]
        if isinstance(slot, kind):
            return slot
        _tell_of_kind(type(slot), kind)
        return None


told_kinds: set[tuple[type, type]] = set()
"""What was read as what, of which the program was told."""


def _tell_of_kind(is_of: type, asked: type) -> None:
    """Warns, once, of a handle that is of another kind than the method that it is given to reads."""
    if (is_of, asked) in told_kinds:
        return
    told_kinds.add((is_of, asked))
    found, read = _method(is_of), _method(asked)
    maker = "a sampler" if found == "token" else f"a probe of the kind {found}"
    print(f"warning: `out.{read}(...)` gives None for the handle of {maker}; `out.{found}(...)` reads that one", file=sys.stderr)


def _method(slot: type) -> str:
    """The method of outputs that reads slots of a kind, which is called as the kind is."""
    name = slot.__name__.removeprefix("Slot_").lower()
    return "token" if name == "tokens" else name
