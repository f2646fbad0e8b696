"""Every hostile program meets its limit by name, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile import binaries
from hostile.cases import CASES, Case
from hostile.running import NEIGHBOUR, SEED, meet
from pie.config import ModelConfig
from pie.engine import Engine
from pie.programs import Component
from support.engines import started
from support.launching import finish, python_source, run


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The dummy driver, and room for programs that want too much."""
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine


@pytest.fixture(scope="module")
def alone(engine: Engine) -> list[int]:
    """What the neighbour says when nobody else runs."""
    tokens: list[int] = finish(engine.launch(NEIGHBOUR, seed=SEED)).value
    return tokens


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_hostile_program_meets_its_limit_and_its_neighbour_does_not_notice(
    engine: Engine, alone: list[int], case: Case, tmp_path: Path
) -> None:
    met = meet(engine, case, tmp_path)
    assert met.outcome.code == case.code, met.outcome.message
    for name in case.limits:
        if case.code.startswith("limit-"):
            assert name in (met.outcome.message or "")
    assert met.neighbour.value == alone


def test_a_budget_caps_the_tokens_that_enter() -> None:
    program = python_source(
        """
from inferlet import Context, Model, Sampler, InferletError

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append([5] * 30)
    got = await ctx.generate(Sampler.argmax(), max_tokens=10, stop=[], auto_flush=False).collect_tokens()
    codes = []
    for attempt in (lambda: ctx.append([5] * 20), lambda: ctx.append([5] * 10)):
        try:
            attempt()
            codes.append("fits")
        except InferletError as error:
            codes.append(error.code)
    try:
        await ctx.generate(Sampler.argmax(), max_tokens=10, stop=[], auto_flush=False).collect_tokens()
        codes.append("fits")
    except InferletError as error:
        codes.append(error.code)
    return [len(got), codes]
"""
    )
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        assert finish(engine.launch(program, token_budget=50)).value == [10, ["token-budget", "fits", "token-budget"]]
        assert finish(engine.launch(program, token_budget=49)).value == [10, ["token-budget", "token-budget", "token-budget"]]
        assert finish(engine.launch(program, token_budget=1000)).value == [10, ["fits", "fits", "fits"]]


def test_a_compilation_that_takes_too_long_ends_by_name(tmp_path: Path) -> None:
    path = tmp_path / "large.wasm"
    path.write_bytes(binaries.component(binaries.module(n_functions=50_000, n_sums=150)))
    with Engine(limits={"compile_s": 0.1}) as engine:
        # Where others had the processor meanwhile, it is told to try again.
        while (outcome := run(engine, Component(path))).code == "limit-queue":
            pass
        assert outcome.code == "limit-compile", outcome.message
        assert "limits.compile_s = 0.1" in (outcome.message or "")
