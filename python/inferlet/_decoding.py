"""What the decoders of text, thoughts and calls have in common: they take tokens, and give one event at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from wit_world.imports import chat as _chat
from wit_world.imports import reasoning as _reasoning
from wit_world.imports import tools as _tools

from inferlet import _arguments
from inferlet.errors import host
from inferlet.output import Output

Event = TypeVar("Event")


class EventDecoder(Generic[Event]):
    """A decoder of the engine, and how its events are read.

    One event a `feed`: what a batch of tokens completes beyond the first is queued; `feed([])` drains it, and so does
    `events`.
    """

    def __init__(
        self,
        raw: _chat.Decoder | _reasoning.ReasoningDecoder | _tools.ToolDecoder,
        read: Callable[[Any], Event],
        idle: type,
    ) -> None:
        self._raw = raw
        self._read = read
        self._idle = idle

    def feed(self, tokens: Iterable[int]) -> Event:
        """Takes tokens and returns the first event that is due; an id outside the vocabulary is `invalid-token`."""
        return self._read(host(self._raw.feed, _arguments.tokens("tokens", tokens)))

    def feed_output(self, output: Output) -> Event:
        """Takes what a step accepted, else as `feed`.

        A stop token is not shown, and where the step was the last of the generation, its turn ends with it. A decoder
        that `Generator.decoder` made shows no stop text either.
        """
        _arguments.of_type("output", output, Output)
        return self._read(host(self._raw.feed_output, output.tokens, output._raw_finish()))

    def finish(self) -> Event:
        """Ends a turn that was begun, and what is open in it; a character that was torn is shown as U+FFFD.

        One event; `feed([])` drains the rest.
        """
        return self._read(self._raw.finish())

    def events(self, taken: Iterable[int] | Output) -> Iterator[Event]:
        """Takes tokens, or what a step accepted, and gives every event that they complete, idle ones left out.

        They are taken at once, also where nobody asks for an event.
        """
        return self._rest(self.feed_output(taken) if isinstance(taken, Output) else self.feed(taken))

    def reset(self) -> None:
        """Forgets what was fed: the start of a turn."""
        self._raw.reset()

    def _rest(self, event: Event) -> Iterator[Event]:
        """An event and all that are queued behind it."""
        while not isinstance(event, self._idle):
            yield event
            event = self.feed(())
