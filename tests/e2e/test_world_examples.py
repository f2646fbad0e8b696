"""The examples of programs and their world: files, broadcasts and requests to servers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pie.engine import Engine
from support.launching import Outcome, example, finish, run
from support.price_server import PRICES
from support.web import Web, web

# The passage of the transcript in docs/guide/pie-tiny.md, whose answer is known.
INGRID = (
    "Ingrid lives in Uppsala. She works as a librarian. In March Ingrid travels to Toledo. Rain is water that falls from clouds. "
    "Norbert has been a roofer for years. The hobby of Norbert is bowling. Norbert is 51 years old. Every Friday Norbert meets Katya."
)
NOTES = {
    "ingrid": INGRID,
    "owls": "An owl eats mice. It sleeps in the day.",
    "rivers": "The river rose in the night, and stayed in the fields.",
}


@pytest.fixture
def shop() -> Iterator[Web]:
    with web() as opened:
        yield opened


def ask(engine: Engine, given: object) -> Outcome:
    """A launch of the program that reads notes, of a user of its own."""
    return finish(engine.launch(example("retrieval", "python"), input=given, seed=1, username="reader"))


def test_what_one_launch_keeps_another_finds_and_reads(tiny: Engine) -> None:
    assert ask(tiny, {"question": "Where does Ingrid travel?"}).value == {"notes": [], "answer": None}
    assert ask(tiny, {"keep": NOTES}).value == sorted(NOTES)
    assert ask(tiny, {"question": "Where does Ingrid travel?"}).value == {"notes": ["ingrid"], "answer": "Ingrid travels to Toledo."}
    assert ask(tiny, {"question": "What does an owl eat?", "notes": 2, "max_tokens": 1}).value["notes"] == ["owls"]
    # Words that every note has decide nothing against one that few have.
    assert ask(tiny, {"question": "Where is the river in the day?", "notes": 3, "max_tokens": 1}).value["notes"][0] == "rivers"
    assert ask(tiny, {"question": "Quantum chromodynamics?"}).value["answer"] is None
    wrong = ask(tiny, {"keep": {"../up": "x"}})
    assert (wrong.code, "'../up' cannot be the name of a note" in (wrong.message or "")) == ("program-error", True)


def test_three_agents_take_turns_and_hear_each_other_in_both_languages(tiny: Engine) -> None:
    given = {"subject": "Name an animal.", "turns": 6}
    outcomes = {language: run(tiny, example("round_table", language), given, seed=5) for language in ("python", "typescript")}
    for outcome in outcomes.values():
        assert outcome.code is None, outcome.message
        assert [message["turn"] for message in outcome.value] == list(range(7))
        assert [message["from"] for message in outcome.value] == ["Host", "Ann", "Bob", "Cyd", "Ann", "Bob", "Cyd"]
        assert outcome.stdout == [f"{message['from']}: {message['text']}\n" for message in outcome.value]
        assert outcome.value[1]["text"] not in {"", given["subject"]}
    assert outcomes["python"].value == outcomes["typescript"].value


@pytest.mark.parametrize("item", PRICES)
def test_an_agent_asks_a_shop_by_http_and_answers_with_what_it_gave(tiny: Engine, shop: Web, item: str) -> None:
    given = {"prompt": f"How much does a {item} cost?", "shop": shop.url}
    outcome = run(tiny, example("http_agent", "python"), given)
    assert outcome.code is None, outcome.message
    assert [json.loads(text) for text in outcome.sent] == [{"calls": "get_price", "item": item}]
    assert shop.requests == [f"GET /prices/{item}"]
    assert outcome.value == f"The price of a {item} is {PRICES[item]} euros."


def test_what_a_shop_has_not_is_in_the_answer(tiny: Engine, shop: Web) -> None:
    given = {"prompt": "How much does a piano cost?", "shop": shop.url}
    outcome = run(tiny, example("http_agent", "python"), given)
    assert (outcome.code, outcome.value) == (None, "That did not work: there is no piano.")


def test_a_shop_that_is_not_allowed_is_an_error_for_the_model_too(tiny: Engine) -> None:
    given = {"prompt": "How much does a violin cost?", "shop": "http://192.0.2.1", "max_turns": 1}
    outcome = run(tiny, example("http_agent", "python"), given)
    # It was told to the model, and ended nothing: what fails is that the model may not speak again.
    assert outcome.sent == ['{"calls":"get_price","item":"violin"}']
    assert (outcome.code, "allow it more turns" in (outcome.message or "")) == ("program-error", True)
