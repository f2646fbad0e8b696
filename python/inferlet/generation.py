"""Generators: a program tells the engine how far to run a context, and sleeps until then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypedDict

from wit_world.imports import context as _context
from wit_world.imports import generation as _generation

from inferlet import _arguments, chat
from inferlet._wait import block_on, resolve
from inferlet.errors import host
from inferlet.model import Model
from inferlet.output import FinishReason, Output
from inferlet.sampler import Sampler

__all__ = ["FinishReason", "GenStep", "GenerateOptions", "Generator", "Output", "TokenStream"]


class GenerateOptions(TypedDict, total=False):
    """The options of `Context.generate`, by their names."""

    max_tokens: int | None
    """Cap on accepted tokens; None: until a stop token or until the model's context is full."""
    stop: Iterable[int] | None
    """Stop tokens beside those of the model and the template."""
    seed: int | None
    """Used as given, 0 included; None: derived from the launch seed and what the context holds."""
    auto_flush: bool
    """Cue the model where a chat turn stands last, and stop at the template's stop tokens. Default: True."""
    ignore_eos: bool
    """Stop at no token of the model and the template. Default: False."""


def _raw_options(options: GenerateOptions) -> _generation.Options:
    for name in options.keys() - GenerateOptions.__optional_keys__:
        raise TypeError(f"Context.generate() got an unexpected keyword argument {name!r}")
    max_tokens, stop, seed = options.get("max_tokens"), options.get("stop"), options.get("seed")
    return _generation.Options(
        max_tokens=None if max_tokens is None else _arguments.count("max_tokens", max_tokens),
        stop=[] if stop is None else _arguments.tokens("stop", stop),
        seed=None if seed is None else _arguments.seed("seed", seed),
        auto_flush=bool(options.get("auto_flush", True)),
        ignore_eos=bool(options.get("ignore_eos", False)),
        logit_mask=[],
        drafting=_generation.Drafting_None_(),
    )


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
        """Runs the step and returns what it accepted.

        A step that was cancelled comes again unchanged; executing one twice is the error `step-pending`.
        """
        return Output._of(await resolve(self._generator._raw.step()))


class Generator:
    """The generation of one context; `Context.generate` makes it.

    `async for step in g` with `await step.execute()` goes step by step, `collect_text` and `collect_tokens` run what is
    left inside the engine. A plain `for tokens in g`, `text()` and `tokens()` do the same and block the whole program.
    Leaving a loop leaves the context usable. A newer generator of the context retires an idle older one:
    `generator-retired`.
    """

    def __init__(self, raw: _generation.Generator, owner: _Owner) -> None:
        self._raw = raw
        self._owner = owner
        self._tokens: list[int] | None = None

    @classmethod
    def _create(cls, owner: _Owner, context: _context.Context, sampler: Sampler, options: GenerateOptions) -> Generator:
        _arguments.of_type("sampler", sampler, Sampler)
        return cls(host(_generation.Generator.create, context, sampler._raw, _raw_options(options)), owner)

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

    def seed(self, seed: int) -> Generator:
        """Draws from this seed, as given, 0 included; a seed of the sampler comes before it.

        Once a step was opened it is the error `invalid-argument`.
        """
        host(self._raw.set_seed, _arguments.seed("seed", seed))
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
        """Why it ended; None while it has not."""
        return FinishReason._of(host(self._raw.finish_reason))

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
        return await resolve(self._raw.collect_tokens())

    async def collect_text(self) -> str:
        """Runs to the end; the text of the tokens that were left, as the chat decoder shows it."""
        return await resolve(self._raw.collect_text())

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> list[int]:
        output = self._block_for_step()
        if output is None:
            raise StopIteration
        return output.tokens

    def tokens(self) -> list[int]:
        """Blocks until the end and returns the tokens that were left; again the same when called again."""
        if self._tokens is None:
            self._tokens = block_on(self._raw.collect_tokens())
        return list(self._tokens)

    def text(self) -> str:
        """The text of `tokens()`, as `collect_text` gives it."""
        return chat.visible_text(self.model, Output(self.tokens(), self.finish_reason))

    def _block_for_step(self) -> Output | None:
        """The next step; None after the end."""
        if host(self._raw.next_step) is None:
            return None
        return Output._of(block_on(self._raw.step()))

    def _block_for_text(self) -> str:
        return block_on(self._raw.collect_text())


TokenStream = Generator
"""The name of older programs."""
