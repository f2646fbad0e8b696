"""Runs a hostile program beside one that behaves."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from hostile.cases import Case
from pie._engine import Process
from pie.engine import Engine
from pie.programs import Component
from support.launching import Outcome, finish, python_source

NEIGHBOUR = python_source(
    """
from inferlet import Context, Model, Sampler

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.user("tell me of the sea")
    generator = ctx.generate(Sampler.top_p(0.8, 0.95), max_tokens=48)
    return [token async for step in generator for token in (await step.execute()).tokens]
"""
)
SEED = 11


@dataclass(frozen=True)
class Met:
    """What became of a hostile program, and of its neighbour."""

    outcome: Outcome
    neighbour: Outcome
    duration_s: float
    rss_before_bytes: int
    rss_after_bytes: int


def launch(engine: Engine, case: Case, folder: Path) -> Process:
    """Launches the program of a case; `folder` takes the file of one that is a component."""
    program = case.program
    if isinstance(program, bytes):
        path = folder / "program.wasm"
        path.write_bytes(program)
        program = Component(path)
    return engine.launch(program, input=case.input, seed=SEED, limits=dict(case.limits), token_budget=case.token_budget)


def meet(engine: Engine, case: Case, folder: Path) -> Met:
    """Runs the program of a case beside the neighbour, both to their ends."""
    before = _rss_bytes()
    neighbour = engine.launch(NEIGHBOUR, seed=SEED)
    started = time.monotonic()
    outcome = finish(launch(engine, case, folder))
    duration_s = time.monotonic() - started
    return Met(outcome, finish(neighbour), duration_s, before, _rss_bytes())


def _rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("/proc/self/status has no VmRSS")


def shown(case: Case, met: Met) -> str:
    """One line of a report, as JSON."""
    return json.dumps(
        {
            "program": case.name,
            "got": met.outcome.code,
            "after_s": round(met.duration_s, 3),
            "rss_before_mb": met.rss_before_bytes >> 20,
            "rss_after_mb": met.rss_after_bytes >> 20,
        }
    )
