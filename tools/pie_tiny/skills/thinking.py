"""Thinking in a block before the answer, when asked to, or when the template opened it."""

from __future__ import annotations

from typing import NamedTuple

from ..conversation import Exchange, Message, by_letters, pick
from ..draw import Draw
from ..lexicon.pools import ITEMS
from ..words import letter_word, person
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
        *(f"Calculate {a} + {b}.", f"Add {a} and {b}.", f"How much is {a} + {b}?"),
        *(f"{a} + {b} = ?", f"{a} + {b}", f"{a} plus {b} is what?"),
        *(f"What is {a} plus {b}?", f"Can you add {a} and {b}?", f"Could you work out {a} + {b}?"),
        *(f"I would like to know what {a} + {b} is.", f"What is the sum of {a} and {b}?", f"Work out {a} + {b}."),
        *(f"Compute {a} + {b}.", f"Find the sum of {a} and {b}.", f"If I add {b} to {a}, what do I get?"),
        f"What does {a} + {b} make?",
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
        *(f"What is {a} - {b}?", f"Calculate {a} - {b}.", f"Subtract {b} from {a}."),
        *(f"{a} - {b} = ?", f"{a} minus {b} is what?", f"What is {a} minus {b}?"),
        *(f"Can you take {b} from {a}?", f"Could you work out {a} - {b}?", f"I would like to know what {a} - {b} is."),
        *(f"How much is {a} - {b}?", f"What is the difference between {a} and {b}?", f"Find the result of {a} - {b}."),
        *(f"Compute {a} - {b}.", f"Take {b} away from {a}.", f"If I subtract {b} from {a}, what is left?"),
        f"What does {a} - {b} make?",
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
        *(f"How many times is the letter {letter} in {word}?", f"How often is the letter {letter} in {word}?"),
        *(f"How many times does {letter} appear in {word}?", f"Can you count how often {letter} is in {word}?"),
        *(f"Could you tell me how many times {letter} is in {word}?", f"I would like to know how often {word} has the letter {letter}."),
        *(f"How many {letter}s are in {word}?", f"In {word}, how many times do you find {letter}?"),
        *(f"Tell me how often the word {word} has a {letter}.", f"The letter {letter} is in {word} how many times?"),
        *(f"Find the letter {letter} in {word} and count it.", f"Number of {letter} in {word}?"),
        *(f"How often do you see {letter} in {word}?", f"{word}: how many times does it have the letter {letter}?"),
        f"How many times do I write {letter} when I write {word}?",
        f"Count the letter {letter} in {word}.",
        f"How often does the letter {letter} appear in the word {word}?",
    )
    return _Problem(question, f"I go through {word}. {', '.join(steps)}.", f"The letter {letter} is in {word} {times}.", f" {times}.")


def _backwards(rng: Draw) -> _Problem:
    word = letter_word(rng)
    thinking = f"The letters are {'-'.join(word)}. Backwards they are {'-'.join(word[::-1])}."
    question = rng.wording(
        *(f"Write {word} backwards.", f"Reverse the word {word}.", f"What is {word} backwards?"),
        *(f"Can you reverse {word}?", f"Could you write {word} from back to front?", f"I would like to have {word} backwards."),
        *(f"{word} in reverse, please.", f"What does {word} read like from the end?", f"Put the letters of {word} in reverse order."),
        *(f"Reverse the letters of {word}.", f"Spell {word} from the last letter to the first.", f"Read {word} from right to left."),
        *(f"What do you get if you reverse {word}?", f"Give me {word} backwards.", f"Flip the word {word}."),
        f"Write {word} in the opposite direction.",
        f"Say {word} backwards.",
        f"Turn {word} around, letter by letter.",
    )
    return _Problem(question, thinking, f"{word} backwards is{by_letters(word[::-1])}.", word[::-1])


def _story_sum(rng: Draw) -> _Problem:
    name, things = person(rng), f"{rng.entry(ITEMS)}s"
    a, b = operands(rng, "-")
    verb = rng.wording(
        *("gives away", "loses", "sells"),
        *("breaks", "throws away", "gives back"),
        *("drops", "donates", "burns"),
        *("wastes", "returns", "destroys"),
        *("leaves behind", "ships off", "trades away"),
        "passes on",
        "lends out",
        "hands out",
    )
    thinking = f"{name} had {a} {things} and {verb} {b}. So I subtract: {a} - {b} = {a - b}."
    question = f"{name} has {a} {things} and {verb} {b}. How many {things} are left?"
    return _Problem(question, thinking, f"{name} has {a - b} {things} left.", str(a - b))


def _fact(rng: Draw) -> _Problem:
    fact = random_fact(rng)
    short = fact.short.removesuffix(".")
    thinking = pick(
        rng,
        f"The user asks: {fact.question} The answer is {short}.",
        f"I am asked: {fact.question} I know that the answer is {short}.",
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
        *("Think first.", "Think step by step.", "Think before you answer."),
        *("Think carefully.", "Let's think step by step.", "Please think first."),
        *("Take your time and think.", "Think hard.", "Please think it over."),
        *("Think a little, then answer.", "Can you think first?", "Could you think about it first?"),
        *("I would like you to think first.", "Reason first.", "Reason step by step."),
        *("Use a thinking step first.", "Work through it first.", "Go through it slowly."),
        *("Go step by step.", "Take it one step at a time.", "Show your thinking."),
        *("Do not answer before you have thought.", "First think, then answer.", "First reason, then say the answer."),
        *("Do your thinking first.", "Think as long as you need.", "Give it some thought."),
        *("Consider it well before the answer.", "Be careful and think.", "One step after another, please."),
        "Think aloud.",
        "Think about it first.",
        "Think it through before you answer.",
        sealed=("Think about this step by step.", "Please think before answering."),
        commands=(
            *("think first", "think before you answer", "reason first", "take your time", "think carefully about it", "think it over"),
            *("go through it step by step", "show how you think", "work it out in your thoughts", "reason step by step"),
            *("think about it before you say anything", "begin by thinking", "give it a thought before you reply"),
        ),
    )
    if rng.random() < 0.25:
        system = pick(rng, instruction, f"You are a helpful assistant. {instruction}")
        return Exchange((Message("user", problem.question), answer), "", system=system, expects=problem.value)
    question = pick(rng, f"{problem.question} {instruction}", f"{instruction} {problem.question}")
    return Exchange((Message("user", question), answer), "", expects=problem.value)
