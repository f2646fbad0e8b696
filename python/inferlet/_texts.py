"""The text of a generation, piece by piece."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from inferlet import chat
from inferlet.errors import ArgumentTypeError, ErrorCode
from inferlet.output import Output

__all__ = ["TextStream"]


class _Step(Protocol):
    def execute(self) -> Awaitable[Output]: ...


class _Steps(Protocol):
    """The steps of a generator."""

    async def __anext__(self) -> _Step: ...

    def _block_for_step(self) -> Output | None: ...


class TextStream:
    """The text of a generation, in pieces as they come: `Generator.texts` makes it.

    No piece is empty, and all of them together are what `collect_text` returns. So no piece has a part of a stop text,
    nor of a character. `async for` lets the other tasks of the program run, a plain `for` blocks it; both continue
    where the other left off. A wait that is given up, as by `asyncio.timeout`, loses nothing: what was accepted before
    it stays in the context, `text_so_far` has its text, and iterating goes on.
    """

    def __init__(self, steps: _Steps, decoder: Callable[[], chat.Decoder]) -> None:
        self._steps = steps
        self._make_decoder = decoder
        self._decoder: chat.Decoder | None = None
        self._queue: deque[str] = deque()
        self._given: list[str] = []
        self._is_ended = False

    @property
    def text_so_far(self) -> str:
        """All pieces that it has given, joined."""
        return "".join(self._given)

    def __aiter__(self) -> TextStream:
        return self

    async def __anext__(self) -> str:
        while not self._queue:
            if self._is_ended:
                raise StopAsyncIteration
            decoder = self._begun()
            try:
                step = await self._steps.__anext__()
            except StopAsyncIteration:
                self._end(decoder)
            else:
                self._take(decoder, await step.execute())
        return self._give()

    def __str__(self) -> str:
        """Refuses to be put into a text: it gives its pieces one by one."""
        message = "a stream of texts is not a text; loop over it with `async for`, or await the whole text: await g.collect_text()"
        raise ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, message)

    def __iter__(self) -> TextStream:
        return self

    def __next__(self) -> str:
        while not self._queue:
            if self._is_ended:
                raise StopIteration
            decoder = self._begun()
            output = self._steps._block_for_step()
            if output is None:
                self._end(decoder)
            else:
                self._take(decoder, output)
        return self._give()

    def _begun(self) -> chat.Decoder:
        """The decoder. It begins with the first step that it shows: the program may add stop texts before."""
        if self._decoder is None:
            self._decoder = self._make_decoder()
        return self._decoder

    def _take(self, decoder: chat.Decoder, output: Output) -> None:
        self._queue.extend(event.text for event in decoder.events(output) if isinstance(event, chat.Event.Delta))
        self._is_ended = output.finish_reason is not None

    def _end(self, decoder: chat.Decoder) -> None:
        """There is no further step: what is held back is text."""
        events = decoder._rest(decoder.finish())
        self._queue.extend(event.text for event in events if isinstance(event, chat.Event.Delta))
        self._is_ended = True

    def _give(self) -> str:
        text = self._queue.popleft()
        self._given.append(text)
        return text
