"""What the model thinks before it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wit_world.imports import reasoning as _reasoning

from inferlet import _arguments
from inferlet.errors import host
from inferlet.model import Model
from inferlet.output import Output

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


class Decoder:
    """Tells what the model thinks, between the markers of its template, from what it says.

    One event a `feed`: what a batch of tokens completes beyond the first is queued; `feed([])` drains it, and so does
    `events`. A thought ends with its turn at the latest. Of a model without thoughts every event is `Idle`.
    """

    def __init__(self, model: Model) -> None:
        _arguments.of_type("model", model, Model)
        self._raw = _reasoning.ReasoningDecoder.create(model._raw)

    def feed(self, tokens: Iterable[int]) -> AnyEvent:
        """Takes tokens and returns the first event that is due; an id outside the vocabulary is `invalid-token`."""
        return _event(host(self._raw.feed, _arguments.tokens("tokens", tokens)))

    def feed_output(self, output: Output) -> AnyEvent:
        """Takes what a step accepted, else as `feed`.

        Where the step was the last of the generation, its turn ends with it.
        """
        _arguments.of_type("output", output, Output)
        return _event(host(self._raw.feed_output, output.tokens, output._raw_finish()))

    def finish(self) -> AnyEvent:
        """Ends a turn that was begun, and a thought that is open.

        One event; `feed([])` drains the rest.
        """
        return _event(self._raw.finish())

    def events(self, taken: Iterable[int] | Output) -> Iterator[AnyEvent]:
        """Takes tokens, or what a step accepted, and gives every event that they complete, idle ones left out."""
        return self._rest(self.feed_output(taken) if isinstance(taken, Output) else self.feed(taken))

    def reset(self) -> None:
        """Forgets what was fed."""
        self._raw.reset()

    def _rest(self, event: AnyEvent) -> Iterator[AnyEvent]:
        """An event and all that are queued behind it."""
        while not isinstance(event, Event.Idle):
            yield event
            event = self.feed(())


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
