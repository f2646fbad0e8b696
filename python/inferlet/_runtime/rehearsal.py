"""A faked engine, behind the one function through which the bindings call the real one.

So the code of the bindings is rehearsed as well.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import componentize_py_runtime
from componentize_py_types import Ok
from wit_world.imports import chat, context, futures, generation, http, http_server, model, poll, sampling, source, tokenizer

from inferlet._runtime import stdio

_H = TypeVar("_H")
_STEPS = 2
_STEP = generation.Output([1], None, [], sampling.Speculation(0, 0))
_FUTURES = (
    futures.FutureUnit,
    futures.FutureString,
    futures.FutureBlob,
    generation.FutureOutput,
    generation.FutureTokens,
    generation.FutureText,
    http.FuturePart,
    http.FutureWritten,
    http_server.FutureRequest,
)
_HEADERS = [http.Header("host", "localhost:8000"), http.Header("content-type", "application/json")]
_HEAD = http_server.RequestHead("POST", "http://localhost:8000/ask?q=1", _HEADERS, "127.0.0.1:40000")


class FakedEngine:
    """Answers every call at once: futures are ready, generators make two steps."""

    def __init__(self) -> None:
        self.files: Mapping[str, bytes] = {}
        self.entry = "main.py"
        self.n_requests = 0
        """How many requests by HTTP come."""
        self.status = 0
        """That of the last answer to one; 0 until it is complete."""
        self._numbers = itertools.count(1)
        self._values: weakref.WeakKeyDictionary[object, object] = weakref.WeakKeyDictionary()
        self._parts: list[bytes] = []
        self._statuses: list[int] = []
        self._steps: weakref.WeakKeyDictionary[object, Iterator[int]] = weakref.WeakKeyDictionary()
        self._answers: dict[str, Callable[..., object]] = {
            "files": lambda: [source.File(path, content) for path, content in self.files.items()],
            "entry": lambda: self.entry,
            "models": lambda: ["rehearsal"],
            "args": lambda: [],
            "send": lambda message: None,
            "print": lambda text: None,
            "send_file": lambda data: None,
            "receive": lambda: self._future(futures.FutureString, "message"),
            "receive_file": lambda: self._future(futures.FutureBlob, b"file"),
            "subscribe_duration": lambda when: self._handle(poll.Pollable),
            "poll": lambda pollables: list(range(len(pollables))),
            "fill": lambda context, role, text: None,
            "Pollable.ready": lambda pollable: True,
            "Pollable.block": lambda pollable: None,
            "Model.load": lambda name: self._handle(model.Model),
            "Model.tokenizer": lambda model: self._handle(tokenizer.Tokenizer),
            "Tokenizer.try_encode": lambda tokenizer, text: list(text.encode()),
            "Context.create": lambda model: self._handle(context.Context),
            "Context.fork": lambda one: self._handle(context.Context),
            "Context.append": lambda context, tokens: None,
            "Context.flush": lambda context: self._future(futures.FutureUnit, None),
            "Generator.create": lambda context, sampler, options: self._generator(),
            "Generator.next_step": lambda generator: next(self._steps[generator], None),
            "Generator.ignore_eos": lambda generator, ignore: None,
            "Generator.step": lambda generator: self._future(generation.FutureOutput, _STEP),
            "Generator.collect_tokens": lambda generator: self._future(generation.FutureTokens, [1, 2]),
            "Generator.collect_text": lambda generator: self._future(generation.FutureText, "text"),
            "Generator.finish_reason": lambda generator: generation.FinishReason.LENGTH,
            "is_serving": lambda: self.n_requests > 0,
            "next_request": lambda: self._future(http_server.FutureRequest, self._request()),
            "IncomingRequest.head": lambda request: _HEAD,
            "IncomingRequest.read": lambda request: self._future(http.FuturePart, self._parts.pop() if self._parts else None),
            "IncomingRequest.respond": lambda request, status, headers: self._statuses.append(status),
            "IncomingRequest.write_part": lambda request, part: self._future(http.FutureWritten, None),
            "IncomingRequest.finish": lambda request: self._finish(),
            "IncomingRequest.abandon": lambda request: None,
            "IncomingRequest.gone": lambda request: self._handle(http_server.FutureGone),
            "FutureGone.pollable": lambda future: self._handle(poll.Pollable),
            "FutureGone.get": lambda future: Ok(None) if self.status else None,
            "Decoder.create": lambda model: self._handle(chat.Decoder),
            "Decoder.feed": lambda decoder, tokens: chat.Event_Delta("d"),
        }
        for kind in _FUTURES:
            self._answers[f"{kind.__name__}.pollable"] = lambda future: self._handle(poll.Pollable)
            self._answers[f"{kind.__name__}.get"] = lambda future: Ok(self._values[future])

    def call(self, _index: int, arguments: list[Any] | int) -> object:
        """What both functions of the bindings end in.

        It is a call of an import, whose name the caller has, or the drop of a handle.
        """
        if isinstance(arguments, int):
            return None
        code = sys._getframe(1).f_code
        answer = self._answers[code.co_qualname](*arguments)
        # A function that can fail has its result taken apart by the bindings.
        return Ok(answer) if "Err" in code.co_names else answer

    def _future(self, kind: type[_H], value: object) -> _H:
        future = self._handle(kind)
        self._values[future] = value
        return future

    def _generator(self) -> generation.Generator:
        generator = self._handle(generation.Generator)
        self._steps[generator] = iter(range(_STEPS))
        return generator

    def _request(self) -> http_server.IncomingRequest | None:
        if self.n_requests == 0:
            return None
        self.n_requests -= 1
        self._parts, self.status = [b'{"n": 1}'], 0
        return self._handle(http_server.IncomingRequest)

    def _finish(self) -> None:
        self.status = self._statuses.pop()

    def _handle(self, kind: type[_H]) -> _H:
        """A handle as componentize-py makes them."""
        handle: Any = kind.__new__(kind)
        handle.handle = next(self._numbers)
        handle.finalizer = weakref.finalize(handle, breakpoint, 0, handle.handle)
        made: _H = handle
        return made


@contextlib.contextmanager
def faked_engine() -> Iterator[FakedEngine]:
    """Puts a fake in the place of the engine and of the file descriptor of standard error."""
    engine = FakedEngine()
    # The interpreter adapts code to the kind of function that it calls. `breakpoint` is of the kind of those it stands
    # for, and hands its arguments on to any other.
    fakes: list[tuple[Any, str, object]] = [
        (sys, "breakpointhook", engine.call),
        (componentize_py_runtime, "call_import", breakpoint),
        (componentize_py_runtime, "drop_resource", breakpoint),
        (stdio, "_write_stderr", lambda text: None),
    ]
    real = [(owner, name, getattr(owner, name)) for owner, name, _ in fakes]
    for owner, name, fake in fakes:
        setattr(owner, name, fake)
    try:
        yield engine
    finally:
        for owner, name, value in real:
            setattr(owner, name, value)
