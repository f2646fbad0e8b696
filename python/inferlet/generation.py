"""Generators: a program tells the engine how far to run a context, and sleeps until then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from wit_world.imports import context as _context
from wit_world.imports import generation as _generation

from inferlet import _arguments, chat
from inferlet._wait import block_on, resolve
from inferlet.errors import host
from inferlet.model import Model
from inferlet.sampler import Sampler

__all__ = ["FinishReason", "GenStep", "Generator", "Output", "TokenStream"]


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


@dataclass(frozen=True)
class Output:
    """What one step accepted."""

    tokens: list[int] = field(default_factory=list)
    """Accepted tokens; a stop token is the last."""
    finish_reason: FinishReason | None = None
    """Set when this step ended the generation."""


class _Owner(Protocol):
    """The context of a generator, which the generator keeps alive."""

    @property
    def model(self) -> Model: ...


class GenStep:
    """One step that has been opened; `execute` runs it. It keeps its generator alive."""

    def __init__(self, generator: Generator, index: int) -> None:
        self._generator = generator
        self._index = index

    @property
    def index(self) -> int:
        """The number of the step, counted from 0."""
        return self._index

    async def execute(self) -> Output:
        """Runs the step and answers with what it accepted.

        A step that was cancelled comes again unchanged; executing one twice is the error `step-pending`.
        """
        return _output(await resolve(self._generator._raw.advance(_generation.Until.STEP)))


class Generator:
    """The generation of one context; `Context.generate` makes it.

    `async for step in g` with `await step.execute()` goes step by step, `collect_text` and `collect_tokens` run what is left
    inside the engine. A plain `for tokens in g`, `text()` and `tokens()` do the same and block the whole program. Leaving a
    loop leaves the context usable. A newer generator of the context retires an idle older one: `generator-retired`.
    """

    def __init__(self, raw: _generation.Generator, owner: _Owner) -> None:
        self._raw = raw
        self._owner = owner
        self._tokens: list[int] | None = None

    @classmethod
    def _create(  # noqa: PLR0913 - the options of `Context.generate`
        cls,
        owner: _Owner,
        context: _context.Context,
        sampler: Sampler,
        *,
        max_tokens: int | None,
        stop: Iterable[int] | None,
        seed: int | None,
        auto_flush: bool,
    ) -> Generator:
        _arguments.of_type("sampler", sampler, Sampler)
        options = _generation.Options(
            max_tokens=None if max_tokens is None else _arguments.count("max_tokens", max_tokens),
            stop=[] if stop is None else _arguments.tokens("stop", stop),
            seed=_arguments.seed("seed", seed),
            auto_flush=bool(auto_flush),
        )
        return cls(host(_generation.Generator.create, context, sampler._raw(), options), owner)

    def max_tokens(self, n: int) -> Generator:
        """Caps the accepted tokens."""
        host(self._raw.set_max_tokens, _arguments.count("n", n))
        return self

    def stop(self, tokens: Iterable[int]) -> Generator:
        """Replaces the template's stop tokens; an empty list removes those of the model too."""
        host(self._raw.set_stop, _arguments.tokens("tokens", tokens))
        return self

    def add_stop(self, tokens: Iterable[int]) -> Generator:
        """Adds stop tokens."""
        host(self._raw.add_stop, _arguments.tokens("tokens", tokens))
        return self

    def ignore_eos(self, ignore: bool = True) -> Generator:
        """True removes the stop tokens of the model and the template; False puts them back."""
        host(self._raw.ignore_eos, bool(ignore))
        return self

    @property
    def model(self) -> Model:
        """The model of its context."""
        return self._owner.model

    @property
    def tokens_generated(self) -> int:
        """Accepted tokens so far."""
        return host(self._raw.tokens_generated)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; None while it can go on."""
        return _finish_reason(host(self._raw.finish_reason))

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.finish_reason is not None

    def __aiter__(self) -> Generator:
        return self

    async def __anext__(self) -> GenStep:
        index = host(self._raw.next_step)
        if index is None:
            raise StopAsyncIteration
        return GenStep(self, index)

    async def collect_tokens(self) -> list[int]:
        """Runs to the end; the accepted tokens that were left."""
        return _event_tokens(await resolve(self._raw.advance(_generation.Until.TOKENS)))

    async def collect_text(self) -> str:
        """Runs to the end; the text of the tokens that were left, as the chat decoder shows it."""
        return _event_text(await resolve(self._raw.advance(_generation.Until.TEXT)))

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> list[int]:
        output = self._block_for_step()
        if output is None:
            raise StopIteration
        return output.tokens

    def tokens(self) -> list[int]:
        """Blocks until the end and answers with the tokens that were left; again the same when called again."""
        if self._tokens is None:
            self._tokens = _event_tokens(block_on(self._raw.advance(_generation.Until.TOKENS)))
        return list(self._tokens)

    def text(self) -> str:
        """The text of `tokens()`, as `collect_text` gives it."""
        tokens = self.tokens()
        # The last token is the stop token then, which no text shows, also where the decoder has a text for it.
        return chat.visible_text(self.model, tokens[:-1] if self.finish_reason is FinishReason.STOP else tokens)

    def _block_for_step(self) -> Output | None:
        """The next step; None after the end."""
        if host(self._raw.next_step) is None:
            return None
        return _output(block_on(self._raw.advance(_generation.Until.STEP)))

    def _block_for_text(self) -> str:
        return _event_text(block_on(self._raw.advance(_generation.Until.TEXT)))


TokenStream = Generator
"""The name of older programs."""


def _finish_reason(raw: _generation.FinishReason | None) -> FinishReason | None:
    return None if raw is None else FinishReason[raw.name]


def _output(event: _generation.Event) -> Output:
    if not isinstance(event, _generation.Event_Step):
        raise _unexpected(event)
    return Output(list(event.value.tokens), _finish_reason(event.value.finish))


def _event_tokens(event: _generation.Event) -> list[int]:
    if not isinstance(event, _generation.Event_Tokens):
        raise _unexpected(event)
    return list(event.value)


def _event_text(event: _generation.Event) -> str:
    if not isinstance(event, _generation.Event_Text):
        raise _unexpected(event)
    return event.value


def _unexpected(event: _generation.Event) -> RuntimeError:
    return RuntimeError(f"the engine answered with {type(event).__name__}, which was not asked for")
