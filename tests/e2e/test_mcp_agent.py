"""The agent whose tools are those of MCP servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from pie.config import EngineConfig, McpServerConfig
from pie.engine import Engine
from support.engines import started
from support.launching import ROOT, example, run
from support.price_server import PRICES


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The embedded model, and a server on the library that most are made with."""
    prices = McpServerConfig(command=(sys.executable, "-m", "support.real_price_server"), cwd=str(ROOT / "tests"))
    engine = Engine(EngineConfig(data_dir=tmp_path_factory.mktemp("library")), mcp={"prices": prices})
    engine.add_model()
    with started(engine):
        yield engine


@pytest.mark.parametrize("item", PRICES)
def test_the_model_calls_the_tool_of_a_server_and_answers_with_what_it_gave(tiny: Engine, item: str) -> None:
    outcome = run(tiny, example("mcp_agent", "python"), {"prompt": f"How much does a {item} cost?"})
    assert outcome.code is None, outcome.message
    assert [json.loads(text) for text in outcome.sent] == [{"calls": "get_price", "item": item}]
    assert outcome.value == f"The price of a {item} is {PRICES[item]} euros."


def test_what_a_tool_says_of_its_failure_is_in_the_answer(tiny: Engine) -> None:
    outcome = run(tiny, example("mcp_agent", "python"), {"prompt": "How much does a piano cost?"})
    assert (outcome.code, outcome.value) == (None, "That did not work: there is no piano.")


@pytest.mark.parametrize(
    ("item", "answer"),
    [("violin", f"The price of a violin is {PRICES['violin']} euros."), ("piano", "That did not work: there is no piano.")],
)
def test_the_tools_may_be_those_of_a_server_on_the_library_of_others(library: Engine, item: str, answer: str) -> None:
    # The library writes schemas in another order of keys: the small model knows what to do with this wording.
    outcome = run(library, example("mcp_agent", "python"), {"prompt": f"What is the price of a {item}?"})
    assert outcome.code is None, outcome.message
    assert [json.loads(text) for text in outcome.sent] == [{"calls": "get_price", "item": item}]
    assert outcome.value == answer
