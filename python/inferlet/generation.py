"""Generators: a program tells the engine how far to run a context, and sleeps until then."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol, TypedDict

from componentize_py_types import Err
from wit_world.imports import context as _context
from wit_world.imports import generation as _generation

from inferlet import _absent, _arguments, chat, tools
from inferlet._steering import Constrain, Steering, check_speculator, constraints_of
from inferlet._texts import TextStream
from inferlet._typed import Typed, is_type
from inferlet._wait import block_on, failed, resolve
from inferlet.adapter import Adapter, raw_adapter
from inferlet.constraint import Schema
from inferlet.errors import ArgumentTypeError, ErrorCode, InferletError, InvalidArgumentError, JsonCutError, from_host, host
from inferlet.grammar import AnyJson, GrammarConstraint, JsonSchema
from inferlet.model import Model
from inferlet.output import FinishReason, Output, ProbeHandle, StepSlots
from inferlet.probe import Probe
from inferlet.sampler import Sampler, check_sampler
from inferlet.spec import Speculator

__all__ = ["FinishReason", "GenStep", "GenerateOptions", "Generator", "Output", "Stops", "TextStream", "TokenStream"]

Stops = str | Iterable[int | str]
"""What a generation stops at: a text, or a list of token ids and texts."""
told_collected: set[str] = set()
"""The call that came when a generation was collected already, of which the program was told."""


class GenerateOptions(TypedDict, total=False):
    """The options of `Context.generate`, by their names."""

    max_tokens: int | None
    """Cap on accepted tokens; None: until a stop token or until the model's context is full. At 0 nothing runs."""
    stop: Stops | None
    """Stop tokens and stop texts beside the tokens of the model and the template: `stop="\\n"`, `stop=["END", 7]`.

    At the token that completes a stop text the generation ends, and the text of the generation ends before the stop
    text. At most 64 texts, of 1 to 256 bytes each.
    """
    seed: int | None
    """Used as given, 0 included; None: derived from the launch seed and what the context holds."""
    auto_flush: bool
    """Cue the model where a chat turn stands last, and stop at the template's stop tokens. Default: True."""
    ignore_eos: bool
    """Stop at no token of the model and the template. Default: False."""
    logit_mask: Iterable[int] | None
    """The tokens that may be drawn in every step, as run lengths (`inferlet.brle`)."""
    constrain: Constrain
    """Who says in each step which tokens may be drawn; of several, what all of them allow.

    A type, as `collect_json` takes one, allows its documents.
    """
    tool_choice: tools.Choice | None
    """Whether the model is to call one of the tools that it was given in the context: "auto", "none", "required", or a
    tool. No call is malformed then. None: it says what it likes.
    """
    speculator: Speculator | None
    """Who proposes tokens in each step. Speculation never changes a token."""
    system_speculation: bool | str | None
    """True: the engine proposes tokens, from what stood in the context before; a text: a smaller model of that name
    does. It excludes `speculator`. Default: False.
    """
    adapter: Adapter | None
    """Computes every step with an adapter."""
    zo_seed: int | None
    """Perturbs the adapter by this seed; without an adapter the first step fails with `invalid-argument`."""
    horizon: int | None
    """How long the text is thought to become: the bid by default for its pages follows from it. It never ends the
    generation.
    """
    rebid_each_step: bool
    """False: a bid that `Context.set_bid` gave holds for all steps. Default: True, for one."""


def check_options(options: GenerateOptions, callee: str = "generate()") -> None:
    """Refuses options that there are not, with the nearest one."""
    for name in options.keys() - GenerateOptions.__optional_keys__:
        _refuse_option(name, callee)


def _raw_options(options: GenerateOptions) -> _generation.Options:
    check_options(options)
    max_tokens, seed, stop = options.get("max_tokens"), options.get("seed"), options.get("stop")
    stop_tokens, stop_texts = _arguments.stops("stop", () if stop is None else stop)
    return _generation.Options(
        max_tokens=None if max_tokens is None else _arguments.count("max_tokens", max_tokens),
        stop=stop_tokens,
        stop_texts=stop_texts,
        seed=None if seed is None else _arguments.seed("seed", seed),
        auto_flush=bool(options.get("auto_flush", True)),
        ignore_eos=bool(options.get("ignore_eos", False)),
        logit_mask=_arguments.runs("logit_mask", options.get("logit_mask") or []),
        drafting=_drafting(options.get("system_speculation"), has_speculator=options.get("speculator") is not None),
    )


def _refuse_option(name: str, callee: str) -> NoReturn:
    names = sorted(GenerateOptions.__optional_keys__)
    near = difflib.get_close_matches(name, names, 1)
    meant = f"did you mean {near[0]!r}?" if near else f"its options are {', '.join(names)}"
    raise ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, f"{callee} has no option {name!r}; {meant}")


def _drafting(wanted: object, *, has_speculator: bool) -> _generation.Drafting:
    if wanted is None or wanted is False:
        return _generation.Drafting_None_()
    if not isinstance(wanted, bool | str):
        _arguments.refuse("system_speculation", wanted, "True, False, or the name of a model")
    if has_speculator:
        message = "speculator and system_speculation both propose tokens; give one of them"
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message)
    if isinstance(wanted, str):
        return _generation.Drafting_Model(_arguments.text("system_speculation", wanted))
    return _generation.Drafting_NGram()


class _Owner(Protocol):
    """The context of a generator, which the generator keeps alive."""

    @property
    def model(self) -> Model: ...

    def _collecting(self) -> AbstractContextManager[None]: ...


class GenStep:
    """One step that has been opened; `execute` runs it. It keeps its generator alive."""

    def __init__(self, generator: Generator, index: int) -> None:
        self._generator = generator
        self._index = index
        self._own_slots: StepSlots | None = None

    @property
    def _slots(self) -> StepSlots:
        """Made where it is asked for: few steps have a probe of their own."""
        if self._own_slots is None:
            self._own_slots = StepSlots(self._generator._every_step)
        return self._own_slots

    @property
    def index(self) -> int:
        """The number of the step, counted from 0."""
        return self._index

    def clear_sampler(self) -> GenStep:
        """Has the step draw nothing: read a probe, and say by `Generator.accept` which tokens follow."""
        self._check_newest()
        host(self._generator._raw.clear_sampler)
        self._slots.draws = False
        return self

    def probe(self, idx: int, probe: Probe) -> ProbeHandle:
        """Reads a row in this step: 0 is the one from which the step draws, or the first from which it does."""
        _arguments.of_type("probe", probe, Probe)
        self._check_newest()
        slot = host(self._generator._raw.probe, _arguments.count("idx", idx), probe._raw)
        return self._slots.probe_at(slot, self._generator._n_every_step)

    def execute(self) -> Coroutine[Any, Any, Output]:
        """Begins the step, and returns what to await for what it accepts.

        A step that was cancelled, or whose constraint raised an exception, comes again unchanged; executing one twice
        is the error `step-pending`.
        """
        generator = self._generator
        try:
            if generator._step is not self:
                self._check_newest()
            future = generator._start()
        except Exception as error:
            return failed(error)
        return self._finish(future)

    async def _finish(self, future: _generation.FutureOutput) -> Output:
        return self._generator._finish(self, await resolve(future))

    def __str__(self) -> str:
        """Refuses to be put into a text: a step has to be executed, and texts come from elsewhere."""
        message = "a step is not a text; `async for text in g.texts()` gives those, and `out = await step.execute()` has out.tokens"
        raise ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, message)

    def _check_newest(self) -> None:
        """Refuses a step behind which another one was opened: the engine knows the newest alone."""
        newest = self._generator._step
        if newest is not None and newest is not self:
            message = f"step {self._index} of this generator is over, since step {newest._index} was opened; use the newest step"
            raise InferletError(ErrorCode.STEP_PENDING, message, {"step": self._index})


class Generator:
    """The generation of one context; `Context.generate` makes it.

    `async for text in g.texts()` gives the text as it comes, `async for step in g` with `await step.execute()` goes
    step by step, `collect_text` and `collect_tokens` run what is left inside the engine. A plain `for tokens in g`,
    `text()` and `tokens()` do the same and block the whole program. Leaving a loop leaves the context usable. A newer
    generator of the context retires an idle older one: `generator-retired`. Errors of a step and of a collector:
    `context-busy`, `context-full`, `out-of-pages`, `driver-failed`, `limit-pass`; the context is as before then.
    """

    def __init__(self, raw: _generation.Generator, owner: _Owner, steering: Steering) -> None:
        self._raw = raw
        self._owner = owner
        self._steering = steering
        self._every_step = object()
        self._n_every_step = 0
        self._step: GenStep | None = None
        self._tokens: list[int] | None = None
        self._rest: chat.Decoder | None = None
        """Shows the text of `_tokens`, until it has."""
        self._text = ""
        self._document: str | None = None
        """The schema under which the last `collect_json` ran."""
        self._is_collected = False
        """Whether a collector or a stream of texts was asked for."""

    @classmethod
    def _create(cls, owner: _Owner, context: _context.Context, sampler: Sampler, options: GenerateOptions) -> Generator:
        if isinstance(sampler, Probe):
            remedy = "a Sampler: a probe draws nothing, give it to probe_each_step or Forward.sample"
            _arguments.refuse("sampler", sampler, remedy)
        check_sampler(sampler)
        raw_options = _raw_options(options)
        # A generator that is made retires the one before: nothing is refused behind that.
        speculator, adapter = options.get("speculator"), options.get("adapter")
        zo_seed, horizon = options.get("zo_seed"), options.get("horizon")
        rebids = bool(options.get("rebid_each_step", True))
        if speculator is not None:
            check_speculator(speculator)
        if adapter is not None:
            raw_adapter("adapter", adapter)
        elif "adapter" in options:
            _absent.tell_of_no_adapter()
        if zo_seed is not None:
            _arguments.signed("zo_seed", zo_seed)
        if horizon is not None:
            _arguments.horizon("horizon", horizon)
        constraints = constraints_of(options.get("constrain"), owner.model)
        constraints += tools.constraints_of_choice(context, owner.model, options.get("tool_choice"))
        raw = host(_generation.Generator.create, context, sampler._raw, raw_options)
        made = cls(raw, owner, Steering(raw, owner.model))
        made._steering.constrain(constraints)
        if speculator is not None:
            made._steering.speculate(speculator)
        if adapter is not None:
            made.adapter(adapter)
        if zo_seed is not None:
            made.zo_seed(zo_seed)
        if horizon is not None:
            made.horizon(horizon)
        if not rebids:
            made.rebid_each_step(False)
        return made

    def max_tokens(self, n: int) -> Generator:
        """Caps the accepted tokens at `n`; at 0 nothing runs."""
        host(self._raw.set_max_tokens, _arguments.count("n", n))
        return self

    def stop(self, tokens: Stops) -> Generator:
        """Puts stop tokens and stop texts in place of the template's stop tokens.

        An empty list removes those of the model too.
        """
        ids, texts = _arguments.stops("tokens", tokens)
        # Texts come first: beside them an empty list of ids leaves those of the model.
        host(self._raw.set_stop_texts, texts)
        host(self._raw.set_stop, ids)
        return self

    def add_stop(self, tokens: Stops) -> Generator:
        """Adds stop tokens and stop texts to those that it has."""
        ids, texts = _arguments.stops("tokens", tokens)
        if texts:
            host(self._raw.add_stop_texts, texts)
        host(self._raw.add_stop, ids)
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

    def logit_mask(self, mask: Iterable[int]) -> Generator:
        """Puts a mask in place of the option of that name; an empty one allows any token.

        Once a step was opened it is the error `invalid-argument`.
        """
        host(self._raw.set_logit_mask, _arguments.runs("mask", mask))
        return self

    def system_speculation(self, proposer: bool | str = True) -> Generator:
        """Has the engine propose tokens, or a smaller model of that name, in place of the option of that name.

        Once a step was opened it is the error `invalid-argument`.
        """
        host(self._raw.set_drafting, _drafting(proposer, has_speculator=self._steering.has_speculator))
        return self

    def constrain(self, c: Constrain) -> Generator:
        """Adds constraints to those that it has: what all of them allow may be drawn."""
        self._steering.constrain(constraints_of(c, self.model))
        return self

    def adapter(self, a: Adapter) -> Generator:
        """Computes every step with an adapter."""
        host(self._raw.set_adapter, raw_adapter("a", a))
        return self

    def zo_seed(self, seed: int) -> Generator:
        """Perturbs the adapter by this seed; without an adapter the next step fails with `invalid-argument`."""
        host(self._raw.set_zo_seed, _arguments.signed("seed", seed))
        return self

    def horizon(self, n: int) -> Generator:
        """How long the text is thought to become, at least 1: the bid by default follows from it. It ends nothing."""
        host(self._raw.set_horizon, _arguments.horizon("n", n))
        return self

    def rebid_each_step(self, rebid: bool = True) -> Generator:
        """False keeps a bid that `Context.set_bid` gave for all steps that follow; True has each step bid anew."""
        host(self._raw.rebid_each_step, bool(rebid))
        return self

    def probe_each_step(self, idx: int, probe: Probe) -> ProbeHandle:
        """Reads a row in every step: 0 is the one from which the step draws, or the first from which it does.

        A step that has no such row is the error `invalid-argument`. Collectors read it and show nothing of it.
        """
        _arguments.of_type("probe", probe, Probe)
        # The sampler of the generator is the slot before.
        self._n_every_step = host(self._raw.probe_each_step, _arguments.count("idx", idx), probe._raw)
        return ProbeHandle(self._every_step, self._n_every_step - 1)

    def accept(self, tokens: Iterable[int]) -> list[int]:
        """Puts these tokens in place of what the last step accepted, until the next one is opened.

        Returns the tokens that are kept: cut behind a stop token, and at the cap. Constraints see those.
        """
        kept = list(host(self._raw.accept, _arguments.tokens("tokens", tokens)))
        self._steering.replace(kept)
        return kept

    @property
    def model(self) -> Model:
        """The model of the context that it continues."""
        return self._owner.model

    @property
    def tokens_generated(self) -> int:
        """How many tokens were accepted so far."""
        return host(self._raw.tokens_generated)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; None while it has not."""
        return FinishReason._of(host(self._raw.finish_reason))

    @property
    def is_done(self) -> bool:
        """Whether it has ended: there is a `finish_reason`."""
        return self.finish_reason is not None

    def texts(self) -> TextStream:
        """The text that is left to generate, in pieces as they come: `async for text in g.texts()`.

        All of them together are what `collect_text` returns.
        """
        self._note_collected("texts()")
        return TextStream(self, self.decoder)

    def decoder(self, *, hide_thoughts: bool = False, hide_calls: bool = False) -> chat.Decoder:
        """A `chat.Decoder` of what it accepts from now on, for a program that goes step by step.

        It knows the stop texts that the generator has now, and shows none of them.
        """
        return chat.Decoder._of_generator(self._raw, hide_thoughts=hide_thoughts, hide_calls=hide_calls)

    def __aiter__(self) -> Generator:
        return self

    async def __anext__(self) -> GenStep:
        step = self._open_step()
        if step is None:
            raise StopAsyncIteration
        return step

    async def collect_tokens(self) -> list[int]:
        """Runs to the end; returns the tokens that were left, a stop token included as the last."""
        self._note_collected("collect_tokens()")
        return await self._collect_tokens()

    async def _collect_tokens(self) -> list[int]:
        if self._steering.is_asked:
            with self._owner._collecting():
                return [token async for step in self for token in (await step.execute()).tokens]
        return await resolve(self._raw.collect_tokens())

    async def collect_text(self) -> str:
        """Runs to the end; returns the text of the tokens that were left, as the chat decoder shows it."""
        self._note_collected("collect_text()")
        return await self._collect_text()

    async def _collect_text(self) -> str:
        if self._steering.is_asked:
            decoder = self.decoder()
            return chat.visible_text(decoder, Output(await self._collect_tokens(), self.finish_reason))
        return await resolve(self._raw.collect_text())

    async def collect_json(self, *, schema: Any = None, parse: Callable[[str], Any] | None = None) -> Any:
        """Runs to the end under a JSON Schema beside what constrains it already; returns the value of the document.

        `schema` is a JSON Schema as text or as an object, or a type: a dataclass, a TypedDict, an Enum, a Literal, what
        is made of them, or a class with `model_json_schema`. The result is a value of that type. Without one the
        document is any JSON. `parse` gets the text of the document, and what it returns is the result. A document that
        was cut by `max_tokens` is the error `json-cut`, which has the text; a schema that cannot be enforced is
        `invalid-grammar`. One that is cancelled leaves no trace: the schema is not a constraint of the generator then.
        """
        build: Callable[[str], Any] = json.loads
        if schema is None:
            text = await self._collect_document(AnyJson(), "")
        elif hasattr(schema, "model_json_schema"):
            text = await self._collect_document(*_json_schema(schema.model_json_schema()))
            build = schema.model_validate_json
        elif is_type(schema):
            typed = Typed(schema)
            text = await self._collect_document(*_json_schema(typed.schema))
            build = lambda text: typed.build(json.loads(text))  # noqa: E731 - the shortest way to say it
        else:
            text = await self._collect_document(*_json_schema(schema))
        if self.finish_reason not in (FinishReason.CONSTRAINT, FinishReason.STOP):
            raise JsonCutError(text, self.tokens_generated)
        return (parse or build)(text)

    async def _collect_document(self, schema: Schema, text: str) -> str:
        """Collects a text under the schema of a document, which the document before may have had already."""
        if text == self._document:
            return await self._collect_text()
        (constraint,) = constraints_of(schema, self.model)
        if self._steering.is_asked or type(constraint) is not GrammarConstraint:
            self._steering.constrain([constraint])
            self._document = text
            return await self._collect_text()
        document = await resolve(self._raw.collect_document(constraint._matcher._raw))
        self._document = text
        return document

    def _note_collected(self, call: str) -> None:
        """Tells, once, of a collector that comes when another one has given all that there is."""
        # One that was retired is an error of the collector itself.
        if self._is_collected and not told_collected and self.finish_reason not in (None, FinishReason.CLOSED):
            told_collected.add(call)
            remedy = "keep what the first call gave, or begin another generation by ctx.generate(...)"
            message = f"the generation has ended and was collected already, so that {call} gives nothing; {remedy}"
            print(f"warning: {message}", file=sys.stderr)
        self._is_collected = True

    def __str__(self) -> str:
        """Refuses to be put into a text: what it generates has to be awaited."""
        message = "a generator is not a text; run it and await what it gives: await g.collect_text()"
        raise ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, message)

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> list[int]:
        output = self._block_for_step()
        if output is None:
            raise StopIteration
        return output.tokens

    def tokens(self) -> list[int]:
        """Blocks until the end and returns the tokens that were left; when called again it returns the same."""
        if self._tokens is None:
            self._rest = self.decoder()
            if self._steering.is_asked:
                with self._owner._collecting():
                    self._tokens = [token for tokens in self for token in tokens]
            else:
                self._tokens = block_on(self._raw.collect_tokens())
        return list(self._tokens)

    def text(self) -> str:
        """The text of `tokens()`, as `collect_text` gives it."""
        tokens = self.tokens()
        if self._rest is not None:
            self._text = chat.visible_text(self._rest, Output(tokens, self.finish_reason))
            self._rest = None
        return self._text

    def _open_step(self) -> GenStep | None:
        """The next step; None after the end. One that was cancelled comes again, with its probes."""
        # Every step comes by here: as `host` does it, without its call.
        try:
            index = self._raw.next_step()
        except Err as error:
            raise from_host(error.value) from None
        if index is None:
            return None
        step = self._step
        if step is None or step._index != index:
            step = self._step = GenStep(self, index)
        return step

    def _start(self) -> _generation.FutureOutput:
        steering = self._steering
        return steering.start() if steering.is_asked else self._raw.step()

    def _finish(self, step: GenStep, answer: _generation.Output) -> Output:
        if self._steering.is_asked:
            self._steering.take(answer)
        slots = step._own_slots
        if slots is None:
            return Output._of_step(answer, (self._every_step, self._n_every_step))
        slots.n_every_step = self._n_every_step
        return Output._of_step(answer, slots)

    def _block_for_step(self) -> Output | None:
        """The next step; None after the end."""
        step = self._open_step()
        return None if step is None else self._finish(step, block_on(self._start()))

    def _block_for_text(self) -> str:
        if self._steering.is_asked:
            return self.text()
        return block_on(self._raw.collect_text())


def _json_schema(schema: Any) -> tuple[Schema, str]:
    """A JSON Schema as a constraint, and as a text to be compared."""
    if not isinstance(schema, str | Mapping | bool):
        _arguments.refuse("schema", schema, "a JSON Schema as text or as a dict, or a type that has one, such as a dataclass")
    return JsonSchema(schema), schema if isinstance(schema, str) else json.dumps(schema, default=repr)


TokenStream = Generator
"""Another name of `Generator`, of older programs."""
