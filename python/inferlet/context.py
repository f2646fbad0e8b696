"""A context: a sequence of tokens with its keys and values in pages."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Literal, NoReturn, ParamSpec, Unpack, overload

from wit_world.imports import chat as _chat
from wit_world.imports import context as _context
from wit_world.imports import model as _model
from wit_world.imports import tools as _tools

from inferlet import _absent, _arguments
from inferlet._error_codes import ErrorCode
from inferlet._wait import resolve_or_block
from inferlet.errors import ArgumentTypeError, InferletError, host
from inferlet.events import Decoder, Event, EventStream
from inferlet.forward import Forward
from inferlet.generation import GenerateOptions, Generator, TokenStream, check_options
from inferlet.model import Model
from inferlet.sampler import Sampler, check_sampler
from inferlet.tools import Schema as ToolSchema
from inferlet.tools import Tool, answer_text, call_id, schema_texts

__all__ = ["Context", "Decoder", "Event", "EventStream", "TokenStream"]

_P = ParamSpec("_P")
_numbers = itertools.count(1)
_BUSY = (
    "the context cannot be appended to while a collector runs that asks the program; go step by step to append between "
    "steps, or wait for its end"
)
"""Why nothing is filled in while a collector runs step by step."""
told: set[str] = set()
"""The functions whose likely misuse was told of, each once."""


class Context:
    """A fresh, empty context of a model.

    `name` is a label for the program's own use, given if absent; `save` uses it where it is given no other name.
    Dropping the context, leaving its `with` block or `release` frees its pages. The filling methods write to a buffer
    that the next pass takes, and return the context itself. While a pass is under way `fork`, `save`, `snapshot`,
    `suspend`, `truncate` and another pass are the error `context-busy`, and so are the filling methods while a
    collector runs. One context more than a program may hold is the error `limit-resources`.
    """

    def __init__(self, model: Model, name: str | None = None) -> None:
        _arguments.of_type("model", model, Model)
        self._bind(host(_context.Context.create, model._raw), model, name)

    def _bind(self, raw: _context.Context, model: Model, name: str | None) -> None:
        self._raw = raw
        self._model = model
        self._name = f"context-{next(_numbers)}" if name is None else _arguments.text("name", name)
        self._has_own_label = name is not None
        self._n_collectors = 0
        """How many collectors run in which the program has a part."""

    @property
    def model(self) -> Model:
        """The model that it is bound to."""
        return self._model

    @property
    def name(self) -> str:
        """The label of the context."""
        return self._name

    @property
    def page_size(self) -> int:
        """How many tokens a page holds."""
        return self._raw.page_size()

    @property
    def seq_len(self) -> int:
        """Tokens in pages, and the pending one; the buffer is not counted."""
        return host(self._raw.seq_len)

    @property
    def cached_tokens(self) -> int:
        """How many of the tokens in pages were not computed for this context.

        A program of the same user had computed the same tokens before. A fork has the count of its original. It depends
        on what other programs did: do not let tokens follow from it.
        """
        return host(self._raw.cached_tokens)

    def buffer(self) -> list[int]:
        """The tokens that the program appended and that no pass has taken."""
        return list(host(self._raw.buffer))

    def fork(self, name: str | None = None) -> Context:
        """A copy of everything: tokens, pending token, buffer and turn state. Pages are shared until written.

        `name` is the label of the copy, given if absent. Errors: `context-busy`, `limit-resources`.
        """
        copy = Context.__new__(Context)
        copy._bind(host(self._raw.fork), self._model, name)
        return copy

    @staticmethod
    def open(model: Model, name: str) -> Context | None:
        """A context with everything that the snapshot of that name holds, which stays; None where there is none.

        Snapshots belong to the user, whichever of his programs saved them. The tokens count against the token budget of
        the program. Errors: `token-budget`, `limit-resources`; `invalid-argument` for a name that is empty or longer
        than 256 bytes.
        """
        return _of_snapshot("Context.open", _context.Context.open, model, name)

    @staticmethod
    def take(model: Model, name: str) -> Context | None:
        """As `open`, and the snapshot is removed: of two programs that take it one gets it, and the other None."""
        return _of_snapshot("Context.take", _context.Context.take, model, name)

    @staticmethod
    def delete(model: Model, name: str) -> None:
        """Forgets the snapshot of that name; where there is none, the error is `snapshot-missing`."""
        _arguments.of_type("model", model, Model)
        host(_context.Context.delete, model._raw, _arguments.text("name", name))

    @staticmethod
    def snapshots(model: Model) -> list[str]:
        """The names of all snapshots of the user, sorted."""
        _arguments.of_type("model", model, Model)
        return list(host(_context.Context.snapshots, model._raw))

    def save(self, name: str | None = None) -> None:
        """Keeps a copy of everything under a name, in place of an older one, until it is deleted. It uses no page.

        Without a name it is kept under the label of the context. Of a label that was made up, another program may have
        kept a context too: a warning says so where that is replaced. Errors: `limit-snapshots`, `context-busy`;
        `invalid-argument` for a name that is empty or longer than 256 bytes.
        """
        given = self._name if name is None else _arguments.text("name", name)
        may_be_of_another = name is None and not self._has_own_label and self._name in Context.snapshots(self._model)
        host(self._raw.save, given)
        # From here on what lies under the label is this context's own.
        self._has_own_label = self._has_own_label or name is None
        if may_be_of_another:
            replaced = f"`ctx.save()` replaced the snapshot {json.dumps(given)}, a name that was made up"
            _tell_once("save", f"{replaced}; give a name, as in `ctx.save('notes')`")

    def snapshot(self) -> str:
        """Keeps a copy under a name that is made up, and returns that name. It lasts as long as the engine runs.

        Errors: `limit-snapshots`, `context-busy`.
        """
        return host(self._raw.snapshot)

    def suspend(self) -> None:
        """Gives up all pages, so that others have room. Nothing else changes, and the next pass takes pages again."""
        host(self._raw.suspend)

    def set_bid(self, value: float) -> None:
        """Bids for each page of the next pass, in credits, in place of the bid by default.

        Where pages are short, contexts that bid less give way to those that bid more; nobody bids more than the program
        can pay. In a generation it holds for one step, or with `rebid_each_step=False` for all. Errors:
        `invalid-argument` for what is not a number from 0 on, `context-busy`.
        """
        host(self._raw.set_bid, _arguments.number("value", value))

    def idle(self) -> AbstractContextManager[None]:
        """Bids nothing inside of the block, `with ctx.idle():`, and what it did before behind it."""
        return _Idle(self._raw)

    def release(self) -> None:
        """Frees the pages now.

        A second release does nothing; every other use afterwards is the error `context-released`.
        """
        self._raw.release()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.release()

    def system(self, text: str) -> Context:
        """Adds a system message. Its text never becomes a control token, here and in the other messages."""
        return self._fill(_chat.Role.SYSTEM, text)

    def user(self, text: str) -> Context:
        """Adds a user message, closing an open assistant turn first."""
        return self._fill(_chat.Role.USER, text)

    def assistant(self, text: str) -> Context:
        """Adds an assistant message that was said before."""
        return self._fill(_chat.Role.ASSISTANT, text)

    def equip(self, tools: Iterable[ToolSchema | Tool[..., Any]]) -> Context:
        """Gives the model tools: the message that comes next is written with them, as the template does it.

        Each is a function under `inferlet.tools.tool`, or a schema as a dict or JSON text. Errors: `invalid-argument`,
        and `template-error` where the template has no place for tools.
        """
        return self._change(_tools.equip, self._raw, schema_texts(tools))

    def answer(self, name: str, value: object, *, id: str | None = None) -> Context:  # noqa: A002
        """Adds the answer of a tool, closing the turn that called it.

        `value` is a text, or anything that JSON can hold; `id` is that of the call, where the model gave one.
        """
        return self._change(_tools.answer, self._raw, _arguments.text("name", name), answer_text(value), call_id(id))

    equip_tools = equip

    def answer_tool(self, name: str, value: object) -> Context:
        """As `answer`, by the name of older programs."""
        return self.answer(name, value)

    def cue(self) -> Context:
        """Opens the assistant's turn, where the model starts speaking. A second cue does nothing."""
        return self._change(_chat.cue, self._raw)

    def seal(self) -> Context:
        """Closes an open assistant turn; what the model itself wrote of the closing tokens is not written again."""
        return self._change(_chat.seal, self._raw)

    def append(self, tokens: Iterable[int]) -> Context:
        """Adds token ids as they are; one outside the vocabulary is the error `invalid-token`."""
        return self._change(self._raw.append, _arguments.tokens("tokens", tokens))

    def append_text(self, text: str) -> Context:
        """Encodes text, control tokens included, and adds it without any template."""
        return self._change(self._raw.append_text, _arguments.text("text", text))

    fill = append_text
    fill_tokens = append

    def flush(self) -> Coroutine[Any, Any, None]:
        """Awaits a pass over what is pending and buffered, and commits the full pages.

        With nothing to compute, no pass runs. The pass is under way when this returns. Outside of a running event loop
        it blocks instead. Errors: `context-busy`, `context-full`, `out-of-pages`, `driver-failed`; the context is as
        before then.
        """
        return resolve_or_block(self._raw.flush(), self, "ctx.flush()")

    def truncate(self, n: int) -> None:
        """Drops the last `n` tokens: the pending one first, then those in working pages; the buffer is untouched.

        Reaching into committed pages is the error `truncate-range`. An idle generator of the context is retired.
        """
        host(self._raw.truncate, _arguments.count("n", n))

    @overload
    def generate(
        self,
        sampler: Sampler,
        *,
        decode: Literal[False] = False,
        **options: Unpack[GenerateOptions],
    ) -> Generator: ...

    @overload
    def generate(
        self,
        sampler: Sampler,
        *,
        decode: Literal[True],
        reasoning: bool = False,
        tool_use: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> EventStream: ...

    def generate(
        self,
        sampler: Sampler,
        *unnamed: object,
        decode: bool = False,
        reasoning: bool = False,
        tool_use: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Generator | EventStream:
        """A generator over this context; it runs nothing, the first step prefills.

        The options are those of `GenerateOptions`.

        `decode` gives the events of older programs in place of the generator; `reasoning` and `tool_use` tell thoughts
        and calls apart, as by `Decoder`, and are for `decode` only. Errors: `empty-context`, `invalid-sampler`,
        `context-busy`. A constraint or a speculator that raises an exception ends the step that asked it, and the
        context is as before.
        """
        if unnamed:
            _arguments.refuse("an option without a name", unnamed[0], "given by its name, as in generate(sampler, max_tokens=64)")
        if (reasoning or tool_use) and not decode:
            _arguments.refuse("decode", decode, "True where reasoning or tool_use is")
        generator = Generator._create(self, self._raw, sampler, options)
        return EventStream(generator, reasoning=reasoning, tool_use=tool_use) if decode else generator

    async def ask(self, text: str, sampler: Sampler | None = None, **options: Unpack[GenerateOptions]) -> str:
        """Adds a user message and returns the whole answer: `answer = await ctx.ask("Hello!")`.

        It stays in the context, so that the next question follows it. Without a sampler it takes the likeliest tokens;
        the options are those of `generate`.
        """
        # What is refused leaves the context without the message.
        if callable(sampler):
            check_sampler(sampler)
        if sampler is not None and not isinstance(sampler, Sampler):
            _arguments.refuse("sampler", sampler, "a Sampler; options have names, as in ask(text, max_tokens=64)")
        check_options(options, "ask()")
        return await self.user(text).generate(Sampler.argmax() if sampler is None else sampler, **options).collect_text()

    def generate_text(self, sampler: Sampler, **options: Unpack[GenerateOptions]) -> str:
        """Generates to the end and returns the text; blocks the whole program. Options as in `generate`."""
        return self.generate(sampler, **options)._block_for_text()

    def forward(self) -> Forward:
        """A forward pass over this context that the program puts together by itself; it computes nothing yet."""
        return Forward(self)

    @property
    def _committed_pages(self) -> int:
        return host(self._raw.committed_page_count)

    @property
    def _working_pages(self) -> int:
        return host(self._raw.working_page_count)

    @property
    def _working_tokens(self) -> int:
        return host(self._raw.working_page_token_count)

    def _fill(self, role: _chat.Role, text: str) -> Context:
        return self._change(_chat.fill, self._raw, role, _arguments.text("text", text))

    def _change(self, fill: Callable[_P, None], *arguments: _P.args, **options: _P.kwargs) -> Context:
        """Fills the context.

        It is refused while a collector runs step by step, as the engine refuses it while one of its own runs.
        """
        if self._n_collectors:
            # A context that was released is told so.
            host(self._raw.seq_len)
            raise InferletError(ErrorCode.CONTEXT_BUSY, _BUSY)
        host(fill, *arguments, **options)
        return self

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """A block in which a collector runs step by step."""
        self._n_collectors += 1
        try:
            yield
        finally:
            self._n_collectors -= 1

    def __repr__(self) -> str:
        return f"Context({self._model!r}, name={self._name!r})"


class _Idle(AbstractContextManager[None]):
    """A block in which a context bids nothing."""

    def __init__(self, raw: _context.Context) -> None:
        self._raw = raw
        self._is_entered = False

    def __enter__(self) -> None:
        self._is_entered = True
        host(self._raw.begin_idle)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._raw.end_idle()

    def __aenter__(self) -> NoReturn:
        # It is told here, and need not be told again.
        self._is_entered = True
        message = "a context is idle in a plain block, which waits for nothing: write `with ctx.idle():` in place of `async with`"
        raise ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, message)

    def __aexit__(self, *_: object) -> NoReturn:
        raise AssertionError("no such block is entered")

    def __del__(self) -> None:
        if not self._is_entered:
            remedy = "write `with ctx.idle():` above the lines in which the context bids nothing"
            _tell_once("idle", f"`ctx.idle()` alone changes no bid, and was dropped; {remedy}")


def _tell_once(function: str, message: str) -> None:
    """Warns of a likely misuse of a function, the first time."""
    if function not in told:
        told.add(function)
        print(f"warning: {message}", file=sys.stderr)


def _of_snapshot(call: str, make: Callable[[_model.Model, str], _context.Context], model: Model, name: str) -> Context | None:
    """The context that `make` makes from a snapshot; None where there is no such snapshot. Its label is the name.

    `call` is what the program calls, for messages.
    """
    _arguments.of_type("model", model, Model)
    try:
        raw = host(make, model._raw, _arguments.text("name", name))
    except InferletError as error:
        if error.code != ErrorCode.SNAPSHOT_MISSING:
            raise
        _absent.note(call, name, lambda: Context.snapshots(model))
        return None
    context = Context.__new__(Context)
    context._bind(raw, model, name)
    return context
