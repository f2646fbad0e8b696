"""The agent whose tools are those of MCP servers."""

from __future__ import annotations

import json

import pytest

from pie.engine import Engine
from support.launching import example, run
from support.price_server import PRICES


@pytest.mark.parametrize("item", PRICES)
def test_the_model_calls_the_tool_of_a_server_and_answers_with_what_it_gave(tiny: Engine, item: str) -> None:
    outcome = run(tiny, example("mcp_agent", "python"), {"prompt": f"How much does a {item} cost?"})
    assert outcome.code is None, outcome.message
    assert [json.loads(text) for text in outcome.sent] == [{"calls": "get_price", "item": item}]
    assert outcome.value == f"The price of a {item} is {PRICES[item]} euros."


def test_what_a_tool_says_of_its_failure_is_in_the_answer(tiny: Engine) -> None:
    outcome = run(tiny, example("mcp_agent", "python"), {"prompt": "How much does a piano cost?"})
    assert (outcome.code, outcome.value) == (None, "That did not work: there is no piano.")
