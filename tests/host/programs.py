"""Programs of the tests, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pie import _engine
from pie.events import AnyEvent, Event
from pie.launch import Launch

PATIENCE_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "python" / "pie" / "pie_tiny"
VOCAB_SIZE = 4096

GENERATE = """
from inferlet import Context, Model, Sampler

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append([1, 2, 3])
    return await ctx.generate(Sampler.argmax(), max_tokens=input["n"], stop=[], auto_flush=False).collect_tokens()
"""


def launch(engine: _engine.Engine, source: str, input: Any = None, *, seed: int | None = 7) -> _engine.Process:
    """Launches a Python program of one file."""
    return engine.launch(("python", {"main.py": source.encode()}, "main.py"), Launch(json.dumps(input), seed=seed))


def events(process: _engine.Process) -> list[AnyEvent]:
    """Every event, to the last."""
    collected = []
    while not process.ended:
        event = process.next_event(PATIENCE_S)
        if event is not None:
            collected.append(event)
        else:
            assert process.ended, f"nothing came within {PATIENCE_S} s after {collected}"
    return collected


def returned(process: _engine.Process) -> Any:
    """The return value of a program that succeeds."""
    last = events(process)[-1]
    assert isinstance(last, Event.Return), last
    return last.value


def failed(process: _engine.Process) -> Event.Error:
    """The error of a program that fails."""
    last = events(process)[-1]
    assert isinstance(last, Event.Error), last
    return last
