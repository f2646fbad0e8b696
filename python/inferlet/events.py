"""Events of the older API: what `Context.generate(..., decode=True)` gives, and the decoder behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from inferlet import chat
from inferlet.errors import ErrorCode, InvalidArgumentError
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
    class Done:
        """The end, with the whole text."""

        text: str


AnyEvent = Event.Text | Event.Done


class Decoder:
    """Turns tokens into events, all that they complete at once.

    `reasoning` and `tool_use` would tell thoughts and calls apart from the text; the engine cannot, so asking for
    either is the error `invalid-argument`.
    """

    def __init__(self, model: Model, *, reasoning: bool = False, tool_use: bool = False) -> None:
        refuse_kinds(reasoning=reasoning, tool_use=tool_use)
        self._chat = chat.Decoder(model)

    def feed(self, tokens: Iterable[int]) -> list[AnyEvent]:
        """Takes tokens and returns what they complete; an id outside the vocabulary is `invalid-token`."""
        events: list[AnyEvent] = []
        for event in self._chat.events(tokens):
            match event:
                case chat.Event.Delta(text=text):
                    events.append(Event.Text(text))
                case chat.Event.Done(text=text):
                    events.append(Event.Done(text))
        return events

    def reset(self) -> None:
        """Forgets what was fed."""
        self._chat.reset()


class EventStream:
    """The events of one generation: texts, and one `Done` at the end, whatever ended it.

    Iterating blocks the whole program, `async for` lets its other tasks run; both continue where the other left off.
    Leaving a loop leaves the context usable. `Done` holds the text that `generate_text` returns.
    """

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._decoder = chat.Decoder(generator.model)
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
        if output is not None:
            self._show(self._decoder.events(output))
        if output is None or output.finish_reason is not None:
            self._ended = True
            self._show(self._decoder._rest(self._decoder.finish()))
            self._queue.append(Event.Done("".join(self._parts)))

    def _show(self, events: Iterable[chat.AnyEvent]) -> None:
        for event in events:
            if isinstance(event, chat.Event.Delta):
                self._parts.append(event.text)
                self._queue.append(Event.Text(event.text))


def refuse_kinds(*, reasoning: bool, tool_use: bool) -> None:
    """Refuses to tell apart what the engine has no decoder for, rather than to show it as text."""
    for name, wanted in (("reasoning", reasoning), ("tool_use", tool_use)):
        if wanted:
            message = f"{name}=True is not supported: the engine has no decoder for it; leave it out and look for the markers in the text"
            raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"option": name})
