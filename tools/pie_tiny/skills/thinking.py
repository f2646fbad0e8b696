"""Thinking in a block before the answer, when asked to, or when the template opened it."""

from __future__ import annotations

from typing import NamedTuple

from ..conversation import Exchange, Message, by_letters, pick
from ..draw import Draw
from ..lexicon.pools import ITEMS, letter_word, person
from .facts import random_fact
from .sums import operands


class _Problem(NamedTuple):
    question: str
    thinking: str
    answer: str
    value: str


_PLACES = ("ones", "tens", "hundreds")


def _column_sum(rng: Draw) -> _Problem:
    while True:
        a, b = operands(rng, "+")
        if max(a, b) >= 10:
            break
    steps, carry = [], 0
    for place in range(max(len(str(a)), len(str(b)))):
        x, y = a // 10**place % 10, b // 10**place % 10
        total = x + y + carry
        with_carry = f" + {carry}" if carry else ""
        steps.append(f"{_PLACES[place].capitalize()}: {x} + {y}{with_carry} = {total}.")
        carry = total // 10
    thinking = " ".join([*steps, f"So the sum is {a + b}."])
    question = rng.wording(
        *(f"What is {a} + {b}?",) * 3,
        f"Calculate {a} + {b}.",
        f"Add {a} and {b}.",
        f"How much is {a} + {b}?",
        f"Tell me the sum {a} + {b}.",
        f"What do you get for {a} + {b}?",
    )
    return _Problem(question, thinking, f"{a} + {b} = {a + b}.", str(a + b))


def _column_difference(rng: Draw) -> _Problem:
    while True:
        a, b = operands(rng, "-")
        if a >= 10:
            break
    steps, borrow = [], 0
    for place in range(len(str(a))):
        x, y = a // 10**place % 10, b // 10**place % 10
        left = f"{x} - {y}{' - 1' if borrow else ''}"
        digit = x - y - borrow
        borrow = int(digit < 0)
        steps.append(f"{_PLACES[place].capitalize()}: {left} = {digit}{f', so {digit + 10} and borrow 1' if borrow else ''}.")
    thinking = " ".join([*steps, f"So the difference is {a - b}."])
    question = rng.wording(
        f"What is {a} - {b}?",
        f"Calculate {a} - {b}.",
        f"Subtract {b} from {a}.",
        f"Tell me the difference {a} - {b}.",
        f"What do you get for {a} - {b}?",
    )
    return _Problem(question, thinking, f"{a} - {b} = {a - b}.", str(a - b))


def _letters(rng: Draw) -> _Problem:
    word = letter_word(rng)
    letter = rng.choice(word)
    steps, found = [], 0
    for character in word:
        found += character == letter
        steps.append(f"{character}: {found}")
    times = "once" if found == 1 else f"{found} times"
    question = rng.wording(
        *(
            f"How many times is the letter {letter} in {word}?",
            f"How often is the letter {letter} in {word}?",
            f"How many times does {letter} appear in {word}?",
        ),
        *(f"Count the letter {letter} in {word}.", f"How often does the letter {letter} appear in the word {word}?"),
    )
    return _Problem(question, f"I go through {word}. {', '.join(steps)}.", f"The letter {letter} is in {word} {times}.", f" {times}.")


def _backwards(rng: Draw) -> _Problem:
    word = letter_word(rng)
    thinking = f"The letters are {'-'.join(word)}. Backwards they are {'-'.join(word[::-1])}."
    question = rng.wording(
        f"Write {word} backwards.",
        f"Reverse the word {word}.",
        f"What is {word} backwards?",
        f"Say {word} backwards.",
        f"Turn {word} around, letter by letter.",
    )
    return _Problem(question, thinking, f"{word} backwards is{by_letters(word[::-1])}.", word[::-1])


def _story_sum(rng: Draw) -> _Problem:
    name, things = person(rng), f"{rng.entry(ITEMS)}s"
    a, b = operands(rng, "-")
    verb = rng.wording("gives away", "loses", "sells", "breaks", "throws away", "lends out", "hands out")
    thinking = f"{name} had {a} {things} and {verb} {b}. So I subtract: {a} - {b} = {a - b}."
    question = f"{name} has {a} {things} and {verb} {b}. How many {things} are left?"
    return _Problem(question, thinking, f"{name} has {a - b} {things} left.", str(a - b))


def _fact(rng: Draw) -> _Problem:
    fact = random_fact(rng)
    thinking = pick(
        rng,
        f"The user asks: {fact.question} The answer is {fact.short}.",
        f"I am asked: {fact.question} I know that the answer is {fact.short}.",
    )
    return _Problem(fact.question, thinking, fact.sentence, fact.expects)


_MAKERS = (_column_sum, _column_sum, _column_difference, _letters, _backwards, _story_sum, _fact)


def think(rng: Draw) -> Exchange:
    """A problem that is thought through first."""
    problem = rng.choice(_MAKERS)(rng)
    answer = Message("assistant", problem.answer, thinking=problem.thinking)
    if rng.random() < 0.4:
        return Exchange((Message("user", problem.question), answer), "", forced_thinking=True, expects=problem.value)
    instruction = rng.wording(
        "Think first.",
        "Think step by step.",
        "Think before you answer.",
        "Think carefully.",
        "Let's think step by step.",
        "Please think first.",
        "Take your time and think.",
        "Think about it first.",
        "Think it through before you answer.",
        sealed=("Think about this step by step.", "Please think before answering."),
    )
    if rng.random() < 0.25:
        system = pick(rng, instruction, f"You are a helpful assistant. {instruction}")
        return Exchange((Message("user", problem.question), answer), "", system=system, expects=problem.value)
    question = pick(rng, f"{problem.question} {instruction}", f"{instruction} {problem.question}")
    return Exchange((Message("user", question), answer), "", expects=problem.value)
