"""What the model thinks before it answers."""

from __future__ import annotations

from dataclasses import dataclass

from wit_world.imports import reasoning as _reasoning

from inferlet import _arguments
from inferlet._decoding import EventDecoder
from inferlet.model import Model

__all__ = ["Decoder", "Event"]


class Event:
    """What the tokens of one `Decoder.feed` meant; match on the classes below."""

    @dataclass(frozen=True)
    class Idle:
        """Nothing of a thought."""

    @dataclass(frozen=True)
    class Start:
        """A thought begins."""

    @dataclass(frozen=True)
    class Delta:
        """Text of a thought."""

        text: str

    @dataclass(frozen=True)
    class End:
        """The end of a thought, with its whole text."""

        text: str


AnyEvent = Event.Idle | Event.Start | Event.Delta | Event.End


class Decoder(EventDecoder[AnyEvent]):
    """Tells what the model thinks, between the markers of its template, from what it says.

    A thought ends with its turn at the latest. Of a model without thoughts every event is `Idle`.
    """

    def __init__(self, model: Model) -> None:
        _arguments.of_type("model", model, Model)
        super().__init__(_reasoning.ReasoningDecoder.create(model._raw), _event, Event.Idle)


def _event(raw: _reasoning.ReasoningEvent) -> AnyEvent:
    match raw:
        case _reasoning.ReasoningEvent_Start():
            return Event.Start()
        case _reasoning.ReasoningEvent_Delta(value=text):
            return Event.Delta(text)
        case _reasoning.ReasoningEvent_End(value=text):
            return Event.End(text)
        case _:
            return Event.Idle()
