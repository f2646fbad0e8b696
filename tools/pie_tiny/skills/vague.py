"""Requests that leave out what a tool must know, which the assistant then asks for."""

from __future__ import annotations

from typing import NamedTuple

from ..conversation import Message
from ..draw import Draw


class Vague(NamedTuple):
    """Requests without the first argument, what the assistant asks then, and how the value is said, beside alone."""

    requests: tuple[str, ...]
    asks: str
    replies: tuple[str, ...]

    def turns(self, rng: Draw) -> tuple[Message, Message]:
        """A request and what the assistant asks."""
        return Message("user", rng.choice([one for one in self.requests if rng.may_say(one)])), Message("assistant", self.asks)

    def reply(self, rng: Draw, value: str | int) -> str:
        """The value as somebody says it who was asked for it."""
        return rng.choice([one for one in (*self.replies, "{}") if rng.may_say(one.format(value))]).format(value)


def _of_a_city(*requests: str) -> Vague:
    return Vague(requests, "In which city?", ("In {}.", "For {}.", "I mean {}."))


def _of_an_item(*requests: str) -> Vague:
    return Vague(requests, "Which item do you mean?", ("The {}.", "I mean the {}."))


WEATHER = _of_a_city(
    "What is the weather?", "How is the weather today?", "Tell me the weather.", "Is it cold outside?", "Is it raining?", "Weather?"
)
TIME = _of_a_city("What time is it?", "Tell me the time.", "How late is it now?", "What is the time, please?", "Look at the clock.")
PRICE = _of_an_item(
    "What does it cost?", "How much is it?", "I need a price.", "Is it expensive?", "I want to buy something. What does it cost?"
)
STOCK = _of_an_item("How many are in stock?", "Check the stock.", "Is it in stock?", "How many do we have?", "Do we have enough?")
TIMER = Vague(
    ("Set a timer.", "Start a timer, please.", "Wake me.", "I need a timer."),
    "For how many minutes?",
    ("{} minutes.", "For {} minutes.", "Make it {}."),
)
SEARCH = Vague(
    ("Search the web.", "Look something up for me.", "Find something on the web."),
    "What shall I look for?",
    ("For {}.", "I want to read about {}."),
)
