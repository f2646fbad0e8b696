"""Thinking in a block before the answer, when asked to, or when the template opened it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from ..conversation import Exchange, Message, pick
from ..lexicon.things import WORDS
from .facts import random_fact


class _Problem(NamedTuple):
    question: str
    thinking: str
    answer: str


def _column_sum(rng: Random) -> _Problem:
    a, b = rng.randint(10, 999), rng.randint(10, 999)
    steps, carry = [], 0
    names = ("ones", "tens", "hundreds")
    for place in range(max(len(str(a)), len(str(b)))):
        x, y = a // 10**place % 10, b // 10**place % 10
        total = x + y + carry
        with_carry = f" + {carry}" if carry else ""
        steps.append(f"{names[place].capitalize()}: {x} + {y}{with_carry} = {total}.")
        carry = total // 10
    thinking = " ".join([*steps, f"So the sum is {a + b}."])
    return _Problem(f"What is {a} + {b}?", thinking, f"{a} + {b} = {a + b}.")


def _letters(rng: Random) -> _Problem:
    word = rng.choice(WORDS)
    letter = rng.choice(word)
    steps, found = [], 0
    for character in word:
        found += character == letter
        steps.append(f"{character}: {found}")
    times = "once" if found == 1 else f"{found} times"
    return _Problem(
        f"How many times is the letter {letter} in {word}?",
        f"I go through {word}. {', '.join(steps)}.",
        f"The letter {letter} is in {word} {times}.",
    )


def _backwards(rng: Random) -> _Problem:
    word = rng.choice(WORDS)
    thinking = f"The letters are {'-'.join(word)}. Backwards they are {'-'.join(word[::-1])}."
    return _Problem(f"Write {word} backwards.", thinking, f"{word[::-1]}.")


def _fact(rng: Random) -> _Problem:
    fact = random_fact(rng)
    thinking = pick(
        rng,
        f"The user asks: {fact.question} The answer is {fact.short}.",
        f"I am asked: {fact.question} I know that the answer is {fact.short}.",
    )
    return _Problem(fact.question, thinking, fact.sentence)


def think(rng: Random) -> Exchange:
    """A problem that is thought through first."""
    problem = rng.choice((_column_sum, _column_sum, _letters, _backwards, _fact))(rng)
    answer = Message("assistant", problem.answer, thinking=problem.thinking)
    if rng.random() < 0.4:
        return Exchange((Message("user", problem.question), answer), problem.question, forced_thinking=True)
    instruction = pick(
        rng,
        "Think first.",
        "Think step by step.",
        "Think before you answer.",
        "Think carefully.",
        "Let's think step by step.",
    )
    if rng.random() < 0.25:
        system = pick(rng, instruction, f"You are a helpful assistant. {instruction}")
        return Exchange((Message("user", problem.question), answer), problem.question, system=system)
    question = pick(rng, f"{problem.question} {instruction}", f"{instruction} {problem.question}")
    return Exchange((Message("user", question), answer), problem.question)
