"""The market for pages, as programs meet it where pages are short: what they bid decides who waits, and no token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.config import Config, EngineConfig, ModelConfig, ServerConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.stats import ModelStats
from support.command import pie
from support.isolated import VOCAB_SIZE, Doing, wait_for
from support.launching import LANGUAGES, finish, load_interpreter, python_source, run

PAGE, N_PAGES = 16, 12
N_TOKENS = 28
"""Of each generation: whoever is refused for that long was not yet passed over too often."""
ROOMY = 400


def contexts(last: dict[str, Any]) -> list[dict[str, Any]]:
    """Three contexts that fill the pool between them, and then go on at once: two of them fit. The program bids for the
    first two; the last does what is asked.
    """
    ops: list[dict[str, Any]] = []
    for salt, name in enumerate("abc"):
        tokens = [(salt * 997 + token * 7) % 3000 for token in range(4 * PAGE)]
        ops += [{"op": "context", "as": name}, {"op": "append", "ctx": name, "tokens": tokens}, {"op": "flush", "ctx": name}]
    for name, bid in (("a", 3), ("b", 2)):
        ops += [{"op": "set_bid", "ctx": name, "bid": bid}]
    for name in "abc":
        ops += [
            {"op": "generate", "ctx": name, "as": name, "sampler": {"kind": "argmax"}, "max_tokens": N_TOKENS},
            {"op": "rebid_each_step", "gen": name, "value": False},
        ]
    return [*ops, {"op": "all", "ops": [[collect("a")], [collect("b")], [last]]}]


def collect(name: str) -> dict[str, Any]:
    return {"op": "collect_tokens", "gen": name}


def said(
    language: str, last: dict[str, Any], n_pages: int, *, then: Sequence[dict[str, Any]] = (), **options: Any
) -> tuple[Any, ModelStats]:
    """What the three contexts say, or what the last operation of `then` answers, and the counters afterwards. All of
    them wait when the first begins to generate: a context whose program is still to come back keeps its pages for a
    while, whatever others bid.
    """

    def all_ask() -> bool:
        return model.stats()["n_requests"] >= 3

    with Engine() as engine:
        # Each prompt is a batch.
        driver = Doing(DummyDriver("dummy", vocab_size=VOCAB_SIZE, n_pages=n_pages), 4, lambda: wait_for(all_ask, "three requests"))
        model = engine.add_model(driver=driver)
        engine.start()
        outcome = finish(engine.launch(load_interpreter(language), input={"ops": [*contexts(last), *then]}, seed=7, **options))
        assert outcome.code is None, outcome.message
        model.check()
        return outcome.value[-1], model.stats()


@pytest.mark.rows("JS-211 PY-203 RS-189 RS-190 RS-192")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_context_bids_by_itself_and_nothing_within_a_scope(language: str) -> None:
    idle = {"op": "idle", "ctx": "c", "within": [collect("c")]}
    roomy, stats = said(language, collect("c"), ROOMY)
    assert (stats["n_auctions"], stats["rented_microcredits"]) == (0, 0)
    # All of them bid, so that whoever loses has those pay that hold the pages.
    bidding, stats = said(language, collect("c"), N_PAGES)
    assert stats["n_auctions"] > 0
    assert stats["rented_microcredits"] > 0
    # Within the scope it bids nothing, and nobody pays.
    idling, stats = said(language, idle, N_PAGES)
    assert stats["n_auctions"] > 0
    assert stats["rented_microcredits"] == 0
    # No token follows from any of it.
    assert bidding == roomy
    assert idling == [*roomy[:2], [roomy[2]]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_dividend_is_nothing_until_pages_were_short(language: str) -> None:
    asked = [{"op": "dividend"}]
    nothing, _ = said(language, collect("c"), ROOMY, then=asked)
    assert nothing == 0
    share, stats = said(language, collect("c"), N_PAGES, then=asked)
    assert 0 < round(share * 1e6) <= stats["rented_microcredits"]


def test_a_program_without_credits_loses_and_gets_its_tokens() -> None:
    roomy, _ = said("python", collect("c"), ROOMY)
    ruined, stats = said("python", collect("c"), N_PAGES, credits=0)
    assert ruined == roomy
    assert stats["n_auctions"] > 0
    assert stats["rented_microcredits"] == 0


CONTENDS = """
import asyncio
from inferlet import *


async def main(input):
    model, contexts = Model.load("default"), []
    for salt in range(3):
        ctx = Context(model).append([(salt * 997 + token * 7) % 3000 for token in range(64)])
        await ctx.flush()
        contexts.append(ctx)

    async def said(ctx, bid):
        ctx.set_bid(bid)
        g = ctx.generate(Sampler.argmax(), max_tokens=28, ignore_eos=True, rebid_each_step=False)
        return len(await g.collect_tokens())

    return await asyncio.gather(*(said(ctx, bid) for ctx, bid in zip(contexts, (3, 2, 1))))
"""


def test_commands_show_balances_bids_and_rent_while_pages_are_short(tmp_path: Path) -> None:
    """They are run before a batch for which rent was paid: nothing changes until it is computed."""
    shown: list[CompletedProcess[str]] = []

    class Showing(Doing):
        def run(self, batch: Batch) -> Any:
            if not shown and model.stats()["rent_microcredits"] > 0:
                for command in (["stats"], ["ps", "--json"], ["ps"]):
                    shown.append(pie(*command, "--server", address, "--user", "root"))
            return super().run(batch)

    config = Config(engine=EngineConfig(data_dir=tmp_path / "data", driver_timeout_s=0), server=ServerConfig(port=0, operators=("root",)))
    with Engine(config.engine) as engine:
        driver = DummyDriver("dummy", vocab_size=VOCAB_SIZE, n_pages=N_PAGES)
        model = engine.add_model(driver=Showing(driver, 4, lambda: wait_for(lambda: model.stats()["n_requests"] >= 3, "three requests")))
        engine.start()
        server = engine.serve(config)
        address = f"ws://{server.address}"
        (tmp_path / "contends.py").write_text(CONTENDS)
        options = ("--server", address, "--user", "root", "--credits", "900")
        done = pie("run", "contends.py", *options, cwd=tmp_path)
        server.stop()
    assert (done.returncode, json.loads(done.stdout)) == (0, [N_TOKENS] * 3), done.stderr
    assert [one.returncode for one in shown] == [0, 0, 0], shown
    told, listed, table = (one.stdout for one in shown)
    ((name, stats),) = json.loads(told)["server"]["models"].items()
    assert stats["n_auctions"] > 0
    # The highest bid that lost is one of the three.
    assert stats["rent_microcredits"] in {1_000_000, 2_000_000, 3_000_000}
    (process,) = json.loads(listed)
    assert process["bids"] == {name: 3}
    # It has paid for twelve pages at least, and rent returns to whoever pays it where there is nobody else.
    assert 0 < process["credits"][name] <= 900 - N_PAGES
    _, row = table.splitlines()
    assert row.split()[-2:] == [f"{process['credits'][name]:.6g}", "3"]


BALANCE = """
from inferlet import *

def main(input):
    return scheduling.balance(Model.load("default"))
"""


@pytest.mark.parametrize(("given", "had"), [(None, 1000), (0, 0), (2.5, 2.5), (1e9, 1e9)])
def test_a_launch_says_what_a_program_begins_with(dummy: Engine, given: float | None, had: float) -> None:
    assert finish(dummy.launch(python_source(BALANCE), credits=given)).value == had


@pytest.mark.parametrize("credits", [float("nan"), float("inf"), -1, 2.0**63])
def test_a_launch_with_what_is_no_amount_is_refused(dummy: Engine, credits: float) -> None:
    with pytest.raises(PieError) as refused:
        dummy.launch(python_source(BALANCE), credits=credits)
    assert refused.value.code == "invalid-argument"
    assert "give a number from 0 to 1000000000" in refused.value.message


FILL = """
from inferlet import *

def main(input):
    ctx = Context(Model.load("default"))
    try:
        ctx.append([5] * input)
    except InferletError as error:
        return error.code
    return len(ctx.buffer())
"""


@pytest.mark.parametrize(("budget", "expected"), [(0, "token-budget"), (2, "token-budget"), (3, 3), (2**63, 3), (2**64 - 1, 3)])
def test_a_token_budget_may_be_nothing_and_as_large_as_a_number(dummy: Engine, budget: int, expected: object) -> None:
    assert finish(dummy.launch(python_source(FILL), input=3, token_budget=budget)).value == expected


def test_the_configuration_says_what_a_launch_does_not() -> None:
    with Engine(EngineConfig(credits=7, page_price=2, token_budget=20)) as engine:
        engine.add_model(options=ModelConfig(driver="dummy"))
        engine.start()
        assert run(engine, python_source(BALANCE)).value == 7
        assert run(engine, python_source("from inferlet import *\ndef main(input): return scheduling.price()")).value == 2
        assert run(engine, python_source(FILL), 21).value == "token-budget"
        assert finish(engine.launch(python_source(FILL), input=21, token_budget=21)).value == 21
