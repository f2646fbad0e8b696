"""Sums and differences up to three digits, comparisons, counting on and back."""

from __future__ import annotations

from ..conversation import Exchange, ask
from ..draw import Draw
from ..lexicon.pools import ITEMS, person


def _number(rng: Draw) -> int:
    return rng.randrange(10 ** rng.choices((1, 2, 3), (2, 4, 5))[0])


def operands(rng: Draw, sign: str) -> tuple[int, int]:
    """Two numbers of up to three digits, the larger first for a difference; no two splits share a pair."""
    while True:
        a, b = _number(rng), _number(rng)
        if rng.split != "train" and min(a, b) < 10:
            continue
        if sign == "-":
            a, b = max(a, b), min(a, b)
        if rng.falls_here(f"{a}{sign}{b}"):
            return a, b


def plain_sum(rng: Draw) -> Exchange:
    """`a + b` or `a - b` with a result that is not negative."""
    if rng.random() < 0.5:
        a, b = operands(rng, "+")
        question = rng.wording(
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
            f"{a} plus {b}",
            f"Can you add {b} to {a}?",
            f"Tell me the sum {a} + {b}.",
            f"{a} + {b} makes what?",
            f"Work out {a} + {b}.",
            f"I need the sum of {a} and {b}.",
            f"How much do {a} and {b} make together?",
            sealed=(f"Please add {a} and {b}.", f"Could you tell me what {a} + {b} is?"),
        )
        return ask(question, f"{a} + {b} = {a + b}.", expects=str(a + b))
    a, b = operands(rng, "-")
    question = rng.wording(
        *(f"What is {a} - {b}?",) * 3,
        f"{a} - {b} = ?",
        f"{a} - {b}",
        f"{a}-{b}",
        f"How much is {a} - {b}?",
        f"Subtract {b} from {a}.",
        f"What is {a} minus {b}?",
        f"Calculate {a} - {b}.",
        f"What is the difference between {a} and {b}?",
        f"{a} minus {b}",
        f"Take {b} away from {a}.",
        f"Tell me the difference {a} - {b}.",
        f"Work out {a} - {b}.",
        f"How much is left of {a} without {b}?",
        sealed=(f"Please subtract {b} from {a}.", f"Could you tell me what {a} - {b} is?"),
    )
    return ask(question, f"{a} - {b} = {a - b}.", expects=str(a - b))


def sums_in_a_row(rng: Draw) -> Exchange:
    """Several sums and differences in one request."""
    signs = [rng.choice("+-") for _ in range(rng.randint(2, 5))]
    pairs = [(*operands(rng, sign), sign) for sign in signs]
    given = ", ".join(f"{a} {sign} {b}" for a, b, sign in pairs)
    question = rng.wording(
        f"Calculate: {given}.",
        f"What is {given}?",
        f"Solve these: {given}",
        f"Please work these out: {given}.",
        f"Give me the results of {given}.",
        f"Compute all of these: {given}.",
        f"Here are some sums: {given}. What are the results?",
    )
    return ask(question, "\n".join(f"{a} {sign} {b} = {a + b if sign == '+' else a - b}" for a, b, sign in pairs))


def times(rng: Draw) -> Exchange:
    """The multiplication table up to ten."""
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    question = rng.wording(
        *(f"What is {a} * {b}?", f"What is {a} times {b}?", f"{a} x {b}", f"Multiply {a} by {b}.", f"{a} times {b}"),
        *(f"How much is {a} times {b}?", f"Tell me {a} times {b}."),
    )
    return ask(question, f"{a} times {b} is {a * b}.", key="", expects=str(a * b))


def word_problem(rng: Draw) -> Exchange:
    """A small story with one addition or subtraction."""
    name, things = person(rng), f"{rng.entry(ITEMS)}s"
    while True:
        a, b = rng.randint(2, 99), rng.randint(1, 60)
        if rng.falls_here(f"{a}+{b}"):
            break
    if rng.random() < 0.5:
        verb = rng.wording("gets", "buys", "finds", "makes", "receives", "collects", "picks up")
        question = f"{name} has {a} {things} and {verb} {b} more. How many {things} does {name} have?"
        return ask(question, f"{a} + {b} = {a + b}. {name} has {a + b} {things}.", expects=str(a + b))
    a, b = max(a, b), min(a, b)
    verb = rng.wording("gives away", "loses", "sells", "breaks", "throws away", "lends out", "hands out")
    question = f"{name} has {a} {things} and {verb} {b}. How many {things} are left?"
    return ask(question, f"{a} - {b} = {a - b}. {name} has {a - b} {things} left.", expects=str(a - b))


def compare(rng: Draw) -> Exchange:
    """Which of two numbers is larger or smaller, or whether one is even."""
    a, b = _number(rng), _number(rng)
    if a == b:
        b += 1
    topic = rng.randrange(3)
    if topic == 0:
        question = rng.wording(
            *(f"Which is larger, {a} or {b}?", f"Which is bigger: {a} or {b}?", f"Which number is greater, {a} or {b}?"),
            *(f"What is more, {a} or {b}?", f"Of {a} and {b}, which is the larger number?"),
        )
        return ask(question, f"{max(a, b)} is larger than {min(a, b)}.", key=f"{a}?{b}", expects=str(max(a, b)))
    if topic == 1:
        question = rng.wording(
            *(f"Which is smaller, {a} or {b}?", f"Which number is less, {a} or {b}?", f"What is less: {a} or {b}?"),
            *(f"Which is the lower number, {a} or {b}?", f"Of {a} and {b}, which is the smaller number?"),
        )
        return ask(question, f"{min(a, b)} is smaller than {max(a, b)}.", key=f"{a}?{b}", expects=str(min(a, b)))
    kind = "even" if a % 2 == 0 else "odd"
    question = rng.wording(
        *(f"Is {a} even or odd?", f"Is {a} an even number or an odd one?", f"Is the number {a} odd or even?"),
        *(f"{a}: even or odd?", f"Tell me whether {a} is even or odd."),
    )
    return ask(question, f"{a} is {kind}.", key=f"{a}?", expects=kind)


def count(rng: Draw) -> Exchange:
    """Counting up, down, or in steps."""
    topic = rng.randrange(5)
    if topic == 0:
        start, length = (1 if rng.random() < 0.4 else rng.randrange(2, 990)), rng.randint(2, 12)
        end = start + length
        prompt = rng.wording(
            *("Count from {} to {}.", "Count {} to {}.", "Please count from {} to {}.", "Can you count from {} to {}?"),
            *("Write the numbers from {} to {}.", "List all numbers from {} to {}.", "Count upwards, beginning with {}, up to {}."),
        )
        answer = ", ".join(map(str, range(start, end + 1))) + "."
        return ask(prompt.format(start, end), answer, key=f"{start}..{end}", expects=answer)
    if topic == 1:
        end, length = rng.randrange(1, 90), rng.randint(2, 10)
        start = end + length
        prompt = rng.wording(
            *("Count down from {} to {}.", "Count backwards from {} to {}.", "Please count down from {} to {}."),
            *("Count from {} down to {}.", "Can you count backwards, from {} to {}?"),
        )
        answer = ", ".join(map(str, range(start, end - 1, -1))) + "."
        return ask(prompt.format(start, end), answer, key=f"{start}..{end}", expects=answer)
    if topic == 2:
        end = rng.randint(2, 20)
        question = rng.wording(
            *(f"Count to {end}.", f"Can you count to {end}?", f"Count up to {end}.", f"Please count to {end}."),
            *(f"Count from one up to {end}.", f"I would like you to count to {end}."),
        )
        answer = ", ".join(map(str, range(1, end + 1))) + "."
        return ask(question, answer, key=f"1..{end}" if rng.split == "train" else "", expects=answer)
    if topic == 3:
        step, start = rng.choice((2, 2, 3, 5, 10)), rng.randrange(0, 60)
        n_numbers = rng.randint(4, 7)
        question = rng.wording(
            *(f"Count in steps of {step} from {start}, {n_numbers} numbers.", f"Count by {step}s from {start}. Give {n_numbers} numbers."),
            *(f"Starting at {start}, count in steps of {step}: {n_numbers} numbers.",),
            *(
                f"Give me {n_numbers} numbers from {start} in steps of {step}.",
                f"Begin at {start} and count by {step}s until you have {n_numbers} numbers.",
            ),
        )
        answer = ", ".join(str(start + i * step) for i in range(n_numbers)) + "."
        return ask(question, answer, key=f"{start}/{step}/{n_numbers}", expects=answer)
    number = _number(rng)
    if rng.random() < 0.5:
        question = rng.wording(
            *(f"What number comes after {number}?", f"Which number follows {number}?", f"What comes after {number}?"),
            *(f"What is the next number after {number}?", f"Which number is one more than {number}?"),
        )
        return ask(question, f"After {number} comes {number + 1}.", key=f"{number}>", expects=str(number + 1))
    question = rng.wording(
        *(f"What number comes before {number + 1}?", f"Which number is before {number + 1}?", f"What comes before {number + 1}?"),
        *(f"What is the number just before {number + 1}?", f"Which number is one less than {number + 1}?"),
    )
    return ask(question, f"Before {number + 1} comes {number}.", key=f"{number}<", expects=str(number))


def describe_number(rng: Draw) -> Exchange:
    """What there is to say about a number."""
    number = 1 + _number(rng)
    kind = "even" if number % 2 == 0 else "odd"
    question = rng.choice((f"Tell me about the number {number}.", f"Tell me about number {number}.", f"What do you know about {number}?"))
    answer = f"{number} is an {kind} number. Before it comes {number - 1}, and after it comes {number + 1}."
    return ask(question, answer)
