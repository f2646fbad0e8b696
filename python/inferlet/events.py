"""Events of the older API: what `Context.generate(..., decode=True)` gives, and the decoder behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from inferlet import _arguments, chat, reasoning, tools
from inferlet.generation import Generator
from inferlet.model import Model
from inferlet.output import Output

__all__ = ["Decoder", "Event", "EventStream"]


class Event:
    """What a model said; match on the classes below."""

    @dataclass(frozen=True)
    class Text:
        """A chunk of text."""

        text: str

    @dataclass(frozen=True)
    class Thinking:
        """A chunk of a thought."""

        text: str

    @dataclass(frozen=True)
    class ThinkingDone:
        """The end of a thought, with its whole text."""

        text: str

    @dataclass(frozen=True)
    class ToolCallStart:
        """A call of a tool begins."""

    @dataclass(frozen=True)
    class ToolCall:
        """A whole call: the tool, and its arguments as a JSON object."""

        name: str
        arguments: str

    @dataclass(frozen=True)
    class Done:
        """The end, with the whole text."""

        text: str


AnyEvent = Event.Text | Event.Thinking | Event.ThinkingDone | Event.ToolCallStart | Event.ToolCall | Event.Done


class Decoder:
    """Turns tokens into events, all that they complete at once.

    `reasoning` and `tool_use` tell thoughts and calls apart from the text; without them they are part of it.
    """

    def __init__(self, model: Model, *, reasoning: bool = False, tool_use: bool = False) -> None:
        self._begin(model, chat.Decoder(model, hide_thoughts=reasoning, hide_calls=tool_use), reasoning=reasoning, tool_use=tool_use)

    @classmethod
    def _of_generator(cls, generator: Generator, *, reasoning: bool, tool_use: bool) -> Decoder:
        """A decoder of what a generator accepts from now on, which shows none of its stop texts."""
        decoder = cls.__new__(cls)
        shown = generator.decoder(hide_thoughts=reasoning, hide_calls=tool_use)
        decoder._begin(generator.model, shown, reasoning=reasoning, tool_use=tool_use)
        return decoder

    def _begin(self, model: Model, shown: chat.Decoder, *, reasoning: bool, tool_use: bool) -> None:
        self._chat = shown
        self._thoughts = _thoughts_of(model) if reasoning else None
        self._calls = tools.Decoder(model) if tool_use else None

    def feed(self, tokens: Iterable[int]) -> list[AnyEvent]:
        """Takes tokens and returns what they complete; an id outside the vocabulary is `invalid-token`."""
        events: list[AnyEvent] = []
        if self._thoughts is None and self._calls is None:
            self._show(self._chat.events(tokens), events)
            return events
        # One by one, so that the events of the three decoders come in the order of the tokens.
        for token in tokens:
            self._take((token,), events)
        return events

    def feed_output(self, output: Output) -> list[AnyEvent]:
        """Takes what a step accepted, else as `feed`.

        A stop token is not shown, and where the step was the last of the generation, its turn ends with it.
        """
        _arguments.of_type("output", output, Output)
        if self._thoughts is None and self._calls is None:
            events: list[AnyEvent] = []
            self._show(self._chat.events(output), events)
            return events
        events = self.feed(output.tokens[:-1])
        self._take(replace(output, tokens=output.tokens[-1:]), events)
        return events

    def _take(self, taken: Iterable[int] | Output, events: list[AnyEvent]) -> None:
        """Has each decoder take the same."""
        if self._thoughts is not None:
            self._think(self._thoughts.events(taken), events)
        if self._calls is not None:
            self._call(self._calls.events(taken), events)
        self._show(self._chat.events(taken), events)

    def finish(self) -> list[AnyEvent]:
        """Ends a turn that was begun, and returns what is left of it."""
        events: list[AnyEvent] = []
        if self._thoughts is not None:
            self._think(self._thoughts._rest(self._thoughts.finish()), events)
        if self._calls is not None:
            self._call(self._calls._rest(self._calls.finish()), events)
        self._show(self._chat._rest(self._chat.finish()), events)
        return events

    def reset(self) -> None:
        """Forgets what was fed: the start of a turn."""
        for decoder in (self._chat, self._thoughts, self._calls):
            if decoder is not None:
                decoder.reset()

    @staticmethod
    def _think(found: Iterable[reasoning.AnyEvent], events: list[AnyEvent]) -> None:
        for event in found:
            match event:
                case reasoning.Event.Delta(text=text):
                    events.append(Event.Thinking(text))
                case reasoning.Event.End(text=text):
                    events.append(Event.ThinkingDone(text))

    @staticmethod
    def _call(found: Iterable[tools.AnyEvent], events: list[AnyEvent]) -> None:
        for event in found:
            match event:
                case tools.Event.Start():
                    events.append(Event.ToolCallStart())
                case tools.Event.Call(name=name, args=args):
                    events.append(Event.ToolCall(name, args))

    @staticmethod
    def _show(found: Iterable[chat.AnyEvent], events: list[AnyEvent]) -> None:
        for event in found:
            match event:
                case chat.Event.Delta(text=text):
                    events.append(Event.Text(text))
                case chat.Event.Done(text=text):
                    events.append(Event.Done(text))


def _thoughts_of(model: Model) -> reasoning.Decoder:
    return reasoning.Decoder(model)


class EventStream:
    """The events of one generation: texts, and one `Done` at the end, whatever ended it.

    Iterating blocks the whole program, `async for` lets its other tasks run; both continue where the other left off.
    Leaving a loop leaves the context usable. `Done` holds the text that `generate_text` returns.
    """

    def __init__(self, generator: Generator, *, reasoning: bool = False, tool_use: bool = False) -> None:
        self._generator = generator
        self._decoder = Decoder._of_generator(generator, reasoning=reasoning, tool_use=tool_use)
        self._queue: deque[AnyEvent] = deque()
        self._parts: list[str] = []
        self._ended = False

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> AnyEvent:
        while not self._queue:
            if self._ended:
                raise StopIteration
            self._take(self._generator._block_for_step())
        return self._queue.popleft()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> AnyEvent:
        while not self._queue:
            if self._ended:
                raise StopAsyncIteration
            step = await anext(self._generator, None)
            self._take(None if step is None else await step.execute())
        return self._queue.popleft()

    def _take(self, output: Output | None) -> None:
        """Queues the events of a step; None: there was none left."""
        self._show(self._decoder.finish() if output is None else self._decoder.feed_output(output))
        if output is None or output.finish_reason is not None:
            self._ended = True
            self._queue.append(Event.Done("".join(self._parts)))

    def _show(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            if isinstance(event, Event.Text):
                self._parts.append(event.text)
            # The one of the stream comes at its end.
            if not isinstance(event, Event.Done):
                self._queue.append(event)
