"""Conversations from skills: how many exchanges, which system turn, which side of the split."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from .conversation import Conversation, Exchange, Message, Tool
from .draw import Draw, Split, draw
from .skills import SKILLS, explain, facts, stories, unknown

_SKILLS = tuple(SKILLS)
_WEIGHTS = tuple(SKILLS.values())

_PLAIN_SHARE = 0.02
_ROUGHENED_LENGTH = 120

_BEFORE = (
    "Quick question: ",
    "I have a question. ",
    "Please help me. ",
    "Hi. ",
    "Hello! ",
    "Next question: ",
    "Another one: ",
)
"""What somebody might say before a question."""
_AFTER = (" Thanks!", " Thank you.", " Please.", " I am curious.", " Thanks a lot!")
"""What somebody might say after a question."""

_SYSTEMS = (
    "You are helpful.",
    "You are a helpful assistant.",
    "You are a helpful, concise assistant.",
    "You are pie-tiny, a small and friendly assistant.",
    "You are a friendly chat model.",
    "Be helpful and kind.",
    "You are a helpful AI assistant. Answer clearly.",
    "Answer briefly.",
    "You are a polite assistant that answers questions.",
)


def draw_exchange(rng: Draw) -> Exchange:
    """One exchange of any skill that falls on the split of the draw."""
    while True:
        rng.held_out.clear()
        exchange = rng.choices(_SKILLS, _WEIGHTS)[0](rng)
        if not exchange.key or rng.falls_here(exchange.key):
            return exchange


def _roughen(rng: Random, text: str) -> str:
    """The same request as somebody else might type it."""
    fate = rng.random()
    may_beg = "please" not in text.lower() and not text.startswith(("I ", "I'm", "My "))
    if fate < 0.06:
        return text[:1].lower() + text[1:]
    if fate < 0.10 and text[-1] in ".?!":
        return text[:-1]
    if fate < 0.12:
        return text.lower()
    if fate < 0.14 and text[-1] == "." and may_beg:
        return text[:-1] + ", please."
    if fate < 0.16 and text[0].isupper() and may_beg:
        return "Please " + text[0].lower() + text[1:] if text[-1] == "." else text
    if fate < 0.20 and text[-1] == "?":
        return rng.choice(_BEFORE) + text
    if fate < 0.23 and text[-1] == "?":
        return text + rng.choice(_AFTER)
    return text


def spoken(rng: Draw, exchange: Exchange) -> list[Message]:
    """The messages of the exchange; what it asks may be said otherwise, as somebody else might type it."""
    messages = list(exchange.messages)
    first = messages[0]
    if not exchange.verbatim and '"' not in first.content and ":" not in first.content and len(first.content) < _ROUGHENED_LENGTH:
        rough = _roughen(rng, first.content)
        if rng.may_say(rough):
            messages[0] = Message("user", rough)
    return messages


def _plain_text(rng: Draw) -> str:
    """A story, an explanation or a few facts, as they would stand in a book."""
    skill = rng.choice((stories.story, explain.explain, explain.describe_animal, facts.fact))
    sentences: list[str] = []
    while len(sentences) < (rng.randint(1, 4) if skill is facts.fact else 1):
        exchange = skill(rng)
        if not exchange.key or rng.falls_here(exchange.key):
            sentences.append(exchange.messages[-1].content)
    return " ".join(sentences)


def compose(rng: Draw) -> Conversation:
    """A conversation of one to five exchanges under one system turn, or a plain text."""
    if rng.random() < _PLAIN_SHARE:
        return Conversation((), plain=_plain_text(rng))
    wanted = rng.choices((1, 2, 3, 4, 5), (55, 20, 12, 8, 5))[0]
    opener = draw_exchange(rng)
    messages: list[Message] = []
    tools: tuple[Tool, ...] = opener.tools
    if opener.system is not None:
        return Conversation((Message("system", opener.system), *opener.messages), tools, frozenset())
    if rng.random() < 0.3:
        messages.append(Message("system", rng.choice(_SYSTEMS)))
    forced: set[int] = set()
    exchange = opener
    for turn in range(wanted):
        if turn:
            exchange = draw_exchange(rng)
            # A tool of the opener's may know what the model does not.
            a_tool_may_know = tools and exchange.messages[-1].content in unknown.ANSWERS
            if exchange.system is not None or exchange.tools or exchange.opens or a_tool_may_know:
                continue
        if exchange.forced_thinking:
            forced.add(len(messages) + 1)
        messages += spoken(rng, exchange)
    return Conversation(tuple(messages), tools, frozenset(forced))


def conversations(seed: int, split: Split) -> Iterator[Conversation]:
    """An endless stream that depends on its arguments alone."""
    rng = draw(str(seed), split)
    while True:
        yield compose(rng)
