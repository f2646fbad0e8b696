"""The agent example: the model calls the function, and answers with what it gave."""

from __future__ import annotations

import json

import pytest

from pie.engine import Engine
from support.launching import LANGUAGES, example, run

PRICES = {"guitar": 180, "hammer": 12, "jacket": 59, "violin": 340}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_model_calls_the_function_and_answers_with_what_it_gave(tiny: Engine, language: str) -> None:
    for item, price in PRICES.items():
        for question in (f"How much does a {item} cost?", f"What is the price of a {item}?"):
            outcome = run(tiny, example("agent", language), {"prompt": question})
            assert outcome.code is None, outcome.message
            assert [json.loads(text) for text in outcome.sent] == [{"calls": "get_price", "item": item}]
            assert outcome.value == f"The price of a {item} is {price} euros."


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_needs_no_function_is_answered_at_once(tiny: Engine, language: str) -> None:
    outcome = run(tiny, example("agent", language), {"prompt": "What is the capital of France?"})
    assert (outcome.sent, outcome.value) == ([], "The capital of France is Paris.")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_that_must_call_a_function_does(tiny: Engine, language: str) -> None:
    """What needs no function is called for too, by one of the two, with arguments that fit."""
    wanted = {"get_price": "item", "get_time": "city"}
    for question in ("What is the capital of France?", "Hello!", "What is 2 + 3?"):
        outcome = run(tiny, example("agent", language), {"prompt": question, "tool_choice": "required"})
        assert outcome.code is None, outcome.message
        first, *_ = [json.loads(text) for text in outcome.sent]
        assert isinstance(first.pop(wanted[first.pop("calls")]), str)
        assert first == {}
    outcome = run(tiny, example("agent", language), {"prompt": "How much does a violin cost?", "tool_choice": "required"})
    assert [json.loads(text) for text in outcome.sent] == [{"calls": "get_price", "item": "violin"}]
    assert outcome.value == "The price of a violin is 340 euros."


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_function_says_of_its_failure_is_in_the_answer(tiny: Engine, language: str) -> None:
    outcome = run(tiny, example("agent", language), {"prompt": "How much does a piano cost?"})
    assert [json.loads(text) for text in outcome.sent] == [{"calls": "get_price", "item": "piano"}]
    assert (outcome.code, outcome.value) == (None, "That did not work: there is no piano.")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_that_only_calls_is_stopped(tiny: Engine, language: str) -> None:
    outcome = run(tiny, example("agent", language), {"max_turns": 1})
    assert outcome.message is not None
    assert "allow it more turns with max_turns" in outcome.message
    assert outcome.code == "program-error"
