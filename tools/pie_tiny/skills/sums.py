"""Sums and differences up to three digits, comparisons, counting on and back."""

from __future__ import annotations

from random import Random

from ..conversation import Exchange, ask, pick
from ..lexicon.people import NAMES
from ..lexicon.things import CATEGORIES


def _number(rng: Random) -> int:
    return rng.randrange(10 ** rng.choices((1, 2, 3), (4, 4, 2))[0])


def plain_sum(rng: Random) -> Exchange:
    """`a + b` or `a - b` with a result that is not negative."""
    a, b = _number(rng), _number(rng)
    if rng.random() < 0.6:
        question = pick(
            rng,
            *(f"What is {a} + {b}?",) * 3,
            f"{a} + {b} = ?",
            f"{a} + {b}",
            f"{a}+{b}",
            f"What is {a}+{b}?",
            f"How much is {a} + {b}?",
            f"Add {a} and {b}.",
            f"What is {a} plus {b}?",
            f"Calculate {a} + {b}.",
            f"Compute {a} + {b}.",
            f"What is the sum of {a} and {b}?",
        )
        return ask(question, f"{a} + {b} = {a + b}.", key=f"{a}+{b}")
    a, b = max(a, b), min(a, b)
    question = pick(
        rng,
        *(f"What is {a} - {b}?",) * 3,
        f"{a} - {b} = ?",
        f"{a} - {b}",
        f"{a}-{b}",
        f"How much is {a} - {b}?",
        f"Subtract {b} from {a}.",
        f"What is {a} minus {b}?",
        f"Calculate {a} - {b}.",
        f"What is the difference between {a} and {b}?",
    )
    return ask(question, f"{a} - {b} = {a - b}.", key=f"{a}-{b}")


def times(rng: Random) -> Exchange:
    """The multiplication table up to ten."""
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    question = pick(rng, f"What is {a} * {b}?", f"What is {a} times {b}?", f"{a} x {b}", f"Multiply {a} by {b}.")
    return ask(question, f"{a} times {b} is {a * b}.", key="")


def word_problem(rng: Random) -> Exchange:
    """A small story with one addition or subtraction."""
    name = rng.choice(NAMES)
    things = pick(rng, *(f"{fruit}s" for fruit in CATEGORIES["fruits"][:4]), "books", "coins")
    a, b = rng.randint(2, 60), rng.randint(1, 40)
    if rng.random() < 0.5:
        verb = pick(rng, "gets", "buys", "finds")
        question = f"{name} has {a} {things} and {verb} {b} more. How many {things} does {name} have?"
        return ask(question, f"{a} + {b} = {a + b}. {name} has {a + b} {things}.")
    a, b = max(a, b), min(a, b)
    verb = pick(rng, "gives away", "loses", "sells")
    question = f"{name} has {a} {things} and {verb} {b}. How many {things} are left?"
    return ask(question, f"{a} - {b} = {a - b}. {name} has {a - b} {things} left.")


def compare(rng: Random) -> Exchange:
    """Which of two numbers is larger or smaller, or whether one is even."""
    a, b = _number(rng), _number(rng)
    if a == b:
        b += 1
    topic = rng.randrange(3)
    if topic == 0:
        question = pick(rng, f"Which is larger, {a} or {b}?", f"Which is bigger: {a} or {b}?")
        return ask(question, f"{max(a, b)} is larger than {min(a, b)}.", key=f"{a}?{b}")
    if topic == 1:
        question = pick(rng, f"Which is smaller, {a} or {b}?", f"Which number is less, {a} or {b}?")
        return ask(question, f"{min(a, b)} is smaller than {max(a, b)}.", key=f"{a}?{b}")
    kind = "even" if a % 2 == 0 else "odd"
    return ask(f"Is {a} even or odd?", f"{a} is {kind}.", key=f"{a}?")


def count(rng: Random) -> Exchange:
    """Counting up, down, or in steps."""
    topic = rng.randrange(4)
    if topic == 0:
        start, length = (1 if rng.random() < 0.6 else rng.randrange(2, 90)), rng.randint(2, 12)
        end = start + length
        prompt = pick(rng, "Count from {} to {}.", "Count {} to {}.", "Please count from {} to {}.")
        numbers = range(start, end + 1)
        return ask(prompt.format(start, end), ", ".join(map(str, numbers)) + ".")
    if topic == 1:
        end, length = rng.randrange(1, 40), rng.randint(2, 10)
        start = end + length
        prompt = pick(rng, "Count down from {} to {}.", "Count backwards from {} to {}.")
        numbers = range(start, end - 1, -1)
        return ask(prompt.format(start, end), ", ".join(map(str, numbers)) + ".")
    if topic == 2:
        end = rng.randint(2, 15)
        question = pick(rng, f"Count to {end}.", f"Can you count to {end}?", f"Count up to {end}.")
        return ask(question, ", ".join(map(str, range(1, end + 1))) + ".")
    number = _number(rng)
    question, answer = rng.choice(
        (
            (f"What number comes after {number}?", f"After {number} comes {number + 1}."),
            (f"What number comes before {number + 1}?", f"Before {number + 1} comes {number}."),
        )
    )
    return ask(question, answer)


def describe_number(rng: Random) -> Exchange:
    """What there is to say about a number."""
    number = 1 + _number(rng)
    kind = "even" if number % 2 == 0 else "odd"
    question = pick(rng, f"Tell me about the number {number}.", f"Tell me about number {number}.", f"What do you know about {number}?")
    answer = f"{number} is an {kind} number. Before it comes {number - 1}, and after it comes {number + 1}."
    return ask(question, answer)
