"""Rehearses launches before the snapshot, on a faked engine: what a first launch would allocate is then shared by all of them."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import re
import sys
from asyncio import events
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from componentize_py_types import Err, Ok
from wit_world.imports import chat, context, generation, model, monotonic_clock, poll, runtime, session, source

import inferlet
from inferlet._runtime import stdio

_LAUNCHES = 40

_PROGRAM = b"""
import asyncio
import json
from inferlet import Context, Model, Sampler, chat, runtime, session

class Shape:
    def __init__(self, a):
        self.a = a

async def branch(ctx):
    await asyncio.sleep(0)
    return await ctx.fork().generate(Sampler.top_k(0.5, 4), max_tokens=4).collect_text()

async def main(input):
    data = json.loads('{"a": [1, 2, 3], "b": {"c": null, "d": "\\u00e9"}}')
    model = Model.load(runtime.models()[0])
    ctx = Context(model)
    ctx.system("s").user(f"{sum(data['a'])} {input}").append(model.tokenizer().encode("x"))
    await ctx.flush()
    await asyncio.gather(branch(ctx), branch(ctx))
    async with asyncio.TaskGroup() as group:
        group.create_task(branch(ctx))
    await asyncio.wait_for(session.receive(), 1.0)
    session.send_file(await session.receive_file())
    await asyncio.sleep(0.001)
    decoder = chat.Decoder(model)
    g = ctx.generate(Sampler.top_p(0.8, 0.95), max_tokens=2)
    async for step in g:
        out = await step.execute()
        match decoder.feed(out.tokens):
            case chat.Event.Delta(text=text):
                session.send(text)
    await g.collect_tokens()
    print("done", Shape(1).a)
    if input == "fail":
        raise ValueError("rehearsed")
    return {"answer": data, "reason": g.finish_reason}
"""
_SCRIPT = b"def broken():\n    return 1 / 0\n\nbroken()\n"


def rehearse(run: Callable[[str], str]) -> None:
    """Runs programs that succeed and programs that fail through `run`, and leaves no trace of them.

    Raises RuntimeError where a rehearsal does not go as it must, so that a broken component is never built.
    """
    streams = sys.stdout, sys.stderr
    main_module = sys.modules.get("__main__")
    with _faked_engine():
        for launch in range(_LAUNCHES):
            fails = launch % 4 == 1
            outcome = _launch(run, {"main.py": _PROGRAM}, '"fail"' if fails else '"x"')
            if ("ValueError" in outcome) != fails or (not fails and "answer" not in outcome):
                raise RuntimeError(f"rehearsal {launch} went wrong: {outcome}")
            outcome = _launch(run, {"main.py": _SCRIPT}, "null")
            if "ZeroDivisionError" not in outcome:
                raise RuntimeError(f"rehearsal {launch} of a script went wrong: {outcome}")
    sys.stdout, sys.stderr = streams
    sys.modules.pop("main", None)
    if main_module is not None:
        sys.modules["__main__"] = main_module
    inferlet.input = None
    inferlet.context._numbers = itertools.count(1)
    linecache.clearcache()
    re.purge()
    events.set_event_loop(None)


def _launch(run: Callable[[str], str], files: dict[str, bytes], input_json: str) -> str:
    source.files = lambda: [source.File(path, content) for path, content in files.items()]
    try:
        return run(input_json)
    except Err as failure:
        return str(failure.value)


class _Resource:
    """What every faked handle can do."""

    def __exit__(self, *_: object) -> None: ...


class _Pollable(_Resource):
    def ready(self) -> bool:
        return True

    def block(self) -> None: ...


class _Future(_Resource):
    def __init__(self, value: object) -> None:
        self._value = value

    def pollable(self) -> _Pollable:
        return _Pollable()

    def get(self) -> Ok[Any]:
        return Ok(self._value)


class _Tokenizer(_Resource):
    def encode(self, text: str) -> list[int]:
        return list(text.encode())


class _Model(_Resource):
    @classmethod
    def load(cls, name: str) -> _Model:
        return cls()

    def tokenizer(self) -> _Tokenizer:
        return _Tokenizer()


class _Context(_Resource):
    @classmethod
    def create(cls, model: object) -> _Context:
        return cls()

    def fork(self) -> _Context:
        return _Context()

    def append(self, tokens: list[int]) -> None: ...

    def flush(self) -> _Future:
        return _Future(None)


class _Generator(_Resource):
    def __init__(self) -> None:
        self._left = 2

    @classmethod
    def create(cls, context: object, sampler: object, options: object) -> _Generator:
        return cls()

    def next_step(self) -> int | None:
        self._left -= 1
        return self._left if self._left >= 0 else None

    def advance(self, until: generation.Until) -> _Future:
        events_by_until = {
            generation.Until.STEP: generation.Event_Step(generation.Output([1], None)),
            generation.Until.TOKENS: generation.Event_Tokens([1, 2]),
            generation.Until.TEXT: generation.Event_Text("text"),
        }
        return _Future(events_by_until[until])

    def finish_reason(self) -> generation.FinishReason:
        return generation.FinishReason.LENGTH


class _Decoder(_Resource):
    @classmethod
    def create(cls, model: object) -> _Decoder:
        return cls()

    def feed(self, tokens: list[int]) -> chat.Event:
        return chat.Event_Delta("d")


def _poll_all(pollables: Sequence[object]) -> list[int]:
    return list(range(len(pollables)))


@contextlib.contextmanager
def _faked_engine() -> Iterator[None]:
    """Puts fakes in the place of every function of the engine that a rehearsal calls."""
    fakes: list[tuple[Any, str, object]] = [
        (chat, "Decoder", _Decoder),
        (chat, "fill", lambda context, role, text: None),
        (context, "Context", _Context),
        (generation, "Generator", _Generator),
        (model, "Model", _Model),
        (monotonic_clock, "subscribe_duration", lambda duration: _Pollable()),
        (poll, "poll", _poll_all),
        (runtime, "models", lambda: ["rehearsal"]),
        (session, "send", lambda message: None),
        (session, "receive", lambda: _Future("message")),
        (session, "receive_file", lambda: _Future(b"file")),
        (session, "send_file", lambda data: None),
        (source, "entry", lambda: "main.py"),
        (source, "files", lambda: []),
        (stdio, "_write_stderr", lambda text: None),
    ]
    real = [(owner, name, getattr(owner, name)) for owner, name, _ in fakes]
    for owner, name, fake in fakes:
        setattr(owner, name, fake)
    try:
        yield
    finally:
        for owner, name, value in real:
            setattr(owner, name, value)
