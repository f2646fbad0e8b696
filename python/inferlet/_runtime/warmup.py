"""Rehearses launches before the snapshot, on a faked engine.

What a first launch would allocate is then shared by all of them.
"""

from __future__ import annotations

import itertools
import linecache
import re
import sys
import urllib.parse
from asyncio import events
from collections.abc import Callable

from componentize_py_types import Err

import inferlet
from inferlet._runtime import heap, hot_code
from inferlet._runtime.rehearsal import FakedEngine, faked_engine

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
_LEAST = b"""
from inferlet import session

async def main(input):
    session.send("message")
    return {"answer": await session.receive()}
"""
_SERVED = b"""
from inferlet.http_server import Request, Response

async def fetch(request: Request) -> Response:
    sent = await request.json()
    kind = request.headers["content-type"]
    return Response.json({"path": request.path, "query": request.query, "sent": sent, "kind": kind}, status=201)
"""
_SCRIPT = b"def broken():\n    return 1 / 0\n\nbroken()\n"


def rehearse(run: Callable[[str], str]) -> None:
    """Runs programs that succeed and programs that fail through `run`, and leaves no trace of them.

    Raises RuntimeError where a rehearsal does not go as it must, so that a broken component is never built.
    """
    streams = sys.stdout, sys.stderr
    main_module = sys.modules.get("__main__")
    with faked_engine() as engine:
        _gather_code(engine, run)
        for launch in range(_LAUNCHES):
            _succeed(engine, run, _PROGRAM)
            _succeed(engine, run, _LEAST)
            _serve(engine, run)
            _fail(engine, run, _SCRIPT, "ZeroDivisionError")
            if launch % 4 == 1:
                _fail(engine, run, _PROGRAM, "ValueError")
    sys.stdout, sys.stderr = streams
    sys.modules.pop("main", None)
    if main_module is not None:
        sys.modules["__main__"] = main_module
    inferlet.input = None
    inferlet.context._numbers = itertools.count(1)
    linecache.clearcache()
    re.purge()
    urllib.parse.urlsplit.cache_clear()  # type: ignore[attr-defined]  # it is an lru_cache
    events.set_event_loop(None)


def _gather_code(engine: FakedEngine, run: Callable[[str], str]) -> None:
    """Finds out which code launches run, and gathers it.

    What every launch runs comes first, then what programs commonly do.
    """
    # The first launch does what is only done once.
    _succeed(engine, run, _PROGRAM)
    _serve(engine, run)
    hot_code.renew()
    _succeed(engine, run, _LEAST)
    heap.fill_holes()
    gathered = hot_code.renew()
    _succeed(engine, run, _PROGRAM)
    _serve(engine, run)
    hot_code.renew(kept=gathered)


def _succeed(engine: FakedEngine, run: Callable[[str], str], program: bytes) -> None:
    outcome = _launch(engine, run, program, '"x"')
    if '"answer"' not in outcome:
        raise RuntimeError(f"a rehearsal went wrong: {outcome}")


def _serve(engine: FakedEngine, run: Callable[[str], str]) -> None:
    engine.n_requests = 1
    outcome = _launch(engine, run, _SERVED, "null")
    if (outcome, engine.status) != ("null", 201):
        raise RuntimeError(f"a rehearsal of a request went wrong: {outcome}")


def _fail(engine: FakedEngine, run: Callable[[str], str], program: bytes, kind: str) -> None:
    outcome = _launch(engine, run, program, '"fail"')
    if kind not in outcome:
        raise RuntimeError(f"a rehearsal of {kind} went wrong: {outcome}")


def _launch(engine: FakedEngine, run: Callable[[str], str], program: bytes, input_json: str) -> str:
    engine.files = {engine.entry: program}
    try:
        return run(input_json)
    except Err as failure:
        return str(failure.value)
