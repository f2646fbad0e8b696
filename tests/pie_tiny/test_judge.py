"""What counts as right, and what a card says of it."""

from __future__ import annotations

import pytest

from tools.pie_tiny.evaluation import Item
from tools.pie_tiny.judge import parsed_call, right
from tools.pie_tiny.score import Answered, score_card

CALL = '<tool_call>\n{"name": "f", "arguments": {"n": 3}}\n</tool_call>'


@pytest.mark.parametrize(
    ("rule", "expected", "answer", "verdict"),
    [
        ("says", "Paris", "The capital is paris.", True),
        ("says", "12", "7 + 5 = 12.", True),
        ("says", "12", "7 + 5 = 112.", False),
        ("says", " r.", "The last letter is r.", True),
        ("says", " r.", "The last letter is er.", False),
        ("exact", "PARIS", " PARIS ", True),
        ("exact", "PARIS", "Paris", False),
        ("one of", ["Hi!", "Hello!"], "Hello!", True),
        ("one of", ["Hi!", "Hello!"], "Hello", False),
        ("json", '{"a": 1, "b": "x"}', '{"b": "x", "a": 1}', True),
        ("json", '{"a": 1}', '{"a": "1"}', False),
        ("json", '{"a": 1}', '{"a": 1', False),
        ("call", {"name": "f", "arguments": {"n": 3}}, CALL, True),
        ("call", {"name": "f", "arguments": {"n": "3"}}, CALL, False),
        ("call", {"name": "f", "arguments": {"n": 3}}, f"Sure. {CALL}", False),
        ("story", "fox", "A fox woke. It ran. It ate. It slept.", True),
        ("story", "fox", "A fox woke. It ran. It ran. It ran.", False),
        ("story", "fox", "A wolf woke. It ran. It ate. It slept.", False),
        ("thinks", "12", "<think>\n7 and 5.\n</think>\n\nIt is 12.", True),
        ("thinks", "12", "7 and 5.\n</think>\n\nIt is 12.", True),
        ("thinks", "12", "It is 12.", False),
    ],
)
def test_rules(rule, expected, answer, verdict) -> None:
    assert right(rule, answer, expected) is verdict


@pytest.mark.parametrize("answer", ["", "f(3)", CALL.replace("arguments", "parameters"), CALL.replace('{"n": 3}', "[3]"), CALL + CALL])
def test_calls_that_are_not_well_formed(answer) -> None:
    assert parsed_call(answer) is None


def test_a_card_weighs_skills_alike_and_wants_an_end() -> None:
    def answered(skill: str, answer: str, *, stopped: bool = True) -> Answered:
        rule, expected = ("call", {"name": "f", "arguments": {"n": 3}}) if "calling" in skill else ("says", "yes")
        return Answered(Item(skill, rule, expected, [], []), answer, stopped)

    card = score_card(
        [
            *(answered("facts", "yes"), answered("facts", "yes", stopped=False), answered("facts", "no"), answered("facts", "no")),
            *(answered("calling known tools", CALL), answered("calling unseen tools", CALL.replace("3", "4"))),
        ]
    )
    assert card.by_skill == {"facts": 0.25, "calling known tools": 1.0, "calling unseen tools": 0.0}
    assert card.mean == pytest.approx(1.25 / 3)
    assert (card.well_formed_calls, card.right_known_calls, card.right_unseen_calls) == (1.0, 1.0, 0.0)
    assert card.stops == pytest.approx(5 / 6)
    assert "| facts | 25 % |" in card.lines()
