"""Sums and differences up to three digits, comparisons, counting on and back."""

from __future__ import annotations

from ..conversation import Exchange, ask
from ..draw import Draw
from ..lexicon.pools import ITEMS
from ..words import person


def _number(rng: Draw) -> int:
    return rng.randrange(10 ** rng.choices((1, 2, 3), (2, 4, 5))[0])


def _calculations(what: str) -> tuple[str, ...]:
    """Commands to work something out."""
    return (
        *(f"calculate {what}", f"work out {what}", f"compute {what}", f"solve {what}", f"tell me what {what} is"),
        *(f"find the result of {what}", f"tell me how much {what} is", f"give me the answer to {what}"),
    )


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


def calculation(rng: Draw, sign: str) -> tuple[str, int]:
    """A sum or a difference as it is written, and its result."""
    a, b = operands(rng, sign)
    return f"{a} {sign} {b}", a + b if sign == "+" else a - b


def plain_sum(rng: Draw) -> Exchange:
    """`a + b` or `a - b` with a result that is not negative."""
    if rng.random() < 0.5:
        a, b = operands(rng, "+")
        question = rng.wording(
            *(f"What is {a} + {b}?",) * 3,
            *(f"{a} + {b} = ?", f"{a} + {b}", f"{a}+{b}"),
            *(f"What is {a}+{b}?", f"How much is {a} + {b}?", f"Add {a} and {b}."),
            *(f"What is {a} plus {b}?", f"Calculate {a} + {b}.", f"Compute {a} + {b}."),
            *(f"What is the sum of {a} and {b}?", f"{a} plus {b}", f"Can you add {b} to {a}?"),
            *(f"Tell me the sum {a} + {b}.", f"{a} + {b} makes what?", f"Work out {a} + {b}."),
            *(f"Can you work out {a} + {b}?", f"Could you add {a} and {b}?", f"I would like to know what {a} plus {b} is."),
            *(f"{a} and {b} together?", f"{a} and {b} make how much?", f"What do you get when you add {a} and {b}?"),
            *(f"What does {a} + {b} come to?", f"Sum: {a} + {b}", f"Find {a} + {b}."),
            *(f"Solve {a} + {b}.", f"Give me the result of {a} + {b}.", f"Put {a} and {b} together. What is the sum?"),
            *(f"Tell me how much {a} plus {b} is.", f"Start with {a} and add {b}.", f"If I add {b} to {a}, what do I get?"),
            *(f"I have {a} and get {b} more. How much is that?", f"How many are {a} and {b}?", f"{a} + {b}, please."),
            f"What is the total of {a} and {b}?",
            f"I need the sum of {a} and {b}.",
            f"How much do {a} and {b} make together?",
            sealed=(f"Please add {a} and {b}.", f"Could you tell me what {a} + {b} is?"),
            commands=(
                *(*_calculations(f"{a} + {b}"), f"add {a} and {b}", f"add {b} to {a}", f"find the sum of {a} and {b}"),
                f"tell me what {a} plus {b} makes",
            ),
        )
        return ask(question, f"{a} + {b} = {a + b}.", expects=str(a + b))
    a, b = operands(rng, "-")
    question = rng.wording(
        *(f"What is {a} - {b}?",) * 3,
        *(f"{a} - {b} = ?", f"{a} - {b}", f"{a}-{b}"),
        *(f"How much is {a} - {b}?", f"Subtract {b} from {a}.", f"What is {a} minus {b}?"),
        *(f"Calculate {a} - {b}.", f"What is the difference between {a} and {b}?", f"{a} minus {b}"),
        *(f"Take {b} away from {a}.", f"Tell me the difference {a} - {b}.", f"Can you work out {a} - {b}?"),
        *(f"Could you take {b} from {a}?", f"I would like to know what {a} minus {b} is.", f"What's {a}-{b}?"),
        *(f"What is {b} less than {a}?", f"What do you get when you subtract {b} from {a}?", f"What does {a} - {b} come to?"),
        *(f"Difference: {a} - {b}", f"Find {a} - {b}.", f"Solve {a} - {b}."),
        *(f"Give me the result of {a} - {b}.", f"Compute {a} - {b}.", f"Tell me how much {a} minus {b} is."),
        *(f"Start with {a} and subtract {b}.", f"If I take {b} away from {a}, what is left?"),
        *(f"I have {a} and give away {b}. How much is left?", f"By how much is {a} larger than {b}?", f"{a} - {b}, please."),
        f"What remains of {a} when {b} is taken away?",
        f"Work out {a} - {b}.",
        f"How much is left of {a} without {b}?",
        sealed=(f"Please subtract {b} from {a}.", f"Could you tell me what {a} - {b} is?"),
        commands=(
            *(
                *_calculations(f"{a} - {b}"),
                f"subtract {b} from {a}",
                f"take {b} away from {a}",
                f"find the difference between {a} and {b}",
            ),
            f"tell me what {a} minus {b} makes",
        ),
    )
    return ask(question, f"{a} - {b} = {a - b}.", expects=str(a - b))


def sums_in_a_row(rng: Draw) -> Exchange:
    """Several sums and differences in one request."""
    signs = [rng.choice("+-") for _ in range(rng.randint(2, 8))]
    calculations = [calculation(rng, sign) for sign in signs]
    given = ", ".join(written for written, _ in calculations)
    question = rng.wording(
        *(f"Calculate: {given}.", f"What is {given}?", f"Solve these: {given}"),
        *(f"Please work these out: {given}.", f"Give me the results of {given}.", f"Can you calculate {given}?"),
        *(f"Could you work out all of these: {given}?", f"I would like the results of these: {given}.", f"{given}"),
        *(f"{given} = ?", f"Solve {given}.", f"What do these make: {given}?"),
        *(f"Do these sums for me: {given}.", f"How much is {given}?", f"Please calculate {given}, one by one."),
        *(f"Work out each of these: {given}", f"My homework is {given}. Please solve it.", f"Find the answers: {given}."),
        *(f"Tell me the answers to {given}.", f"One after another: {given}"),
        f"Compute all of these: {given}.",
        f"Here are some sums: {given}. What are the results?",
        commands=(
            *("calculate {}", "work these out", "solve these", "give me the results of {}", "compute each of these", "do these sums"),
            *("find the results", "solve {}", "work out {}"),
        ),
        over=given,
    )
    return ask(question, "\n".join(f"{written} = {result}" for written, result in calculations))


def times(rng: Draw) -> Exchange:
    """The multiplication table up to ten."""
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    question = rng.wording(
        *(f"What is {a} * {b}?", f"What is {a} times {b}?", f"{a} x {b}"),
        *(f"Multiply {a} by {b}.", f"{a} times {b}", f"{a} * {b}"),
        *(f"{a} * {b} = ?", f"Can you multiply {a} by {b}?", f"Could you work out {a} x {b}?"),
        *(f"I would like to know what {a} times {b} is.", f"What is the product of {a} and {b}?", f"Calculate {a} * {b}."),
        *(f"{a} multiplied by {b}?", f"What do you get for {a} times {b}?", f"What is {a} x {b}?"),
        *(f"Give me the product of {a} and {b}.", f"{a} times {b} makes what?"),
        f"How much is {a} times {b}?",
        f"Tell me {a} times {b}.",
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
        verb = rng.wording(
            *("gets", "buys", "finds"),
            *("makes", "receives", "gains"),
            *("wins", "gathers", "borrows"),
            *("orders", "inherits", "takes"),
            *("brings", "pays for", "adds"),
            "earns",
            "collects",
            "picks up",
        )
        question = f"{name} has {a} {things} and {verb} {b} more. How many {things} does {name} have?"
        return ask(question, f"{a} + {b} = {a + b}. {name} has {a + b} {things}.", expects=str(a + b))
    a, b = max(a, b), min(a, b)
    verb = rng.wording(
        *("gives away", "loses", "sells"),
        *("breaks", "throws away", "gives back"),
        *("drops", "donates", "burns"),
        *("wastes", "returns", "destroys"),
        *("spends", "leaves behind", "ships off"),
        *("trades away", "passes on"),
        "lends out",
        "hands out",
    )
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
            *(f"Tell me the larger number: {a} or {b}.", f"Can you tell me which is larger, {a} or {b}?"),
            *(f"Could you say which number is bigger, {a} or {b}?", f"I would like to know which is more, {a} or {b}."),
            *(f"{a} or {b}: which is greater?", f"{a} and {b}: which one is bigger?", f"Name the greater of {a} and {b}."),
            *(f"Which one is higher, {a} or {b}?", f"Larger: {a} or {b}?", f"Compare {a} and {b}. Which is larger?"),
            *(f"Is {a} larger, or is {b}?", f"Which of the numbers {a} and {b} is the greatest?"),
            f"What is more, {a} or {b}?",
            f"Of {a} and {b}, which is the larger number?",
        )
        return ask(question, f"{max(a, b)} is larger than {min(a, b)}.", key=f"{a}?{b}", expects=str(max(a, b)))
    if topic == 1:
        question = rng.wording(
            *(f"Which is smaller, {a} or {b}?", f"Which number is less, {a} or {b}?", f"What is less: {a} or {b}?"),
            *(f"Tell me the smaller number: {a} or {b}.", f"Can you tell me which is smaller, {a} or {b}?"),
            *(f"Could you say which number is less, {a} or {b}?", f"I would like to know which is less, {a} or {b}."),
            *(f"{a} or {b}: which is smaller?", f"{a} and {b}: which one is less?", f"Name the lesser of {a} and {b}."),
            *(f"Which one is lower, {a} or {b}?", f"Smaller: {a} or {b}?", f"Compare {a} and {b}. Which is smaller?"),
            *(f"Is {a} smaller, or is {b}?", f"Which of the numbers {a} and {b} is the least?"),
            f"Which is the lower number, {a} or {b}?",
            f"Of {a} and {b}, which is the smaller number?",
        )
        return ask(question, f"{min(a, b)} is smaller than {max(a, b)}.", key=f"{a}?{b}", expects=str(min(a, b)))
    kind = "even" if a % 2 == 0 else "odd"
    question = rng.wording(
        *(f"Is {a} even or odd?", f"Is {a} an even number or an odd one?", f"Is the number {a} odd or even?"),
        *(f"Even or odd: {a}?", f"Can you say if {a} is odd or even?", f"Could you tell me what {a} is, odd or even?"),
        *(f"I would like to know if {a} is even.", f"Do you call {a} odd or even?", f"What kind of number is {a}: odd or even?"),
        *(f"Please say if {a} is an odd number or an even one.", f"Does {a} count as odd or as even?", f"Is {a} odd?"),
        *(f"Is {a} an even number?", f"Which is {a}, an odd or an even number?", f"The number {a}: is it odd?"),
        f"{a}: even or odd?",
        f"Tell me whether {a} is even or odd.",
    )
    return ask(question, f"{a} is {kind}.", key=f"{a}?", expects=kind)


def count(rng: Draw) -> Exchange:
    """Counting up, down, or in steps."""
    topic = rng.randrange(5)
    if topic == 0:
        start, length = (1 if rng.random() < 0.4 else rng.randrange(2, 990)), rng.randint(2, 12)
        end = start + length
        prompt = rng.wording(
            *("Count from {} to {}.", "Count {} to {}.", "Please count from {} to {}."),
            *("Can you count from {} to {}?", "Write the numbers from {} to {}.", "Can you count up from {} to {}?"),
            *("Could you list the numbers from {} to {}?", "I would like you to count from {} up to {}."),
            *("Start at {} and count until you reach {}.", "Begin with {} and count to {}.", "Which numbers are there from {} to {}?"),
            *("From {} to {}, please count.", "Give me all the numbers between {} and {}, with both ends."),
            *("Say every number from {} to {}.", "Count on from {}, and stop at {}.", "Show me how you count from {} to {}."),
            *("Numbers from {} to {}", "Go from {} to {}, one number at a time."),
            "List all numbers from {} to {}.",
            "Count upwards, beginning with {}, up to {}.",
            commands=(
                *("count from {} to {}", "count from {} up to {}", "say the numbers from {} to {}", "list the numbers from {} to {}"),
                *("write the numbers {} to {}", "start at {} and count to {}", "begin with {} and count until {}"),
                *("name every number from {} to {}", "give me the numbers from {} to {}"),
            ),
        )
        answer = ", ".join(map(str, range(start, end + 1))) + "."
        return ask(prompt.format(start, end), answer, key=f"{start}..{end}", expects=answer)
    if topic == 1:
        end, length = rng.randrange(1, 90), rng.randint(2, 10)
        start = end + length
        prompt = rng.wording(
            *("Count down from {} to {}.", "Count backwards from {} to {}.", "Please count down from {} to {}."),
            *("Could you count down from {} to {}?", "Could you go back from {} to {}, number by number?"),
            *("I would like you to count down from {} to {}.", "Start at {} and count down until you reach {}."),
            *("Begin with {} and count backwards to {}.", "Write the numbers from {} to {} in descending order."),
            *("From {} back to {}, please count.", "List the numbers from {} down to {}.", "Do a countdown from {} to {}."),
            *("Say the numbers backwards, starting at {} and ending at {}.", "Countdown: {} to {}"),
            *("Give me all numbers from {} to {}, going down.", "Count in reverse from {} to {}."),
            "Count from {} down to {}.",
            "Can you count backwards, from {} to {}?",
            commands=(
                *("count down from {} to {}", "count backwards from {} to {}", "count from {} back to {}", "go down from {} to {}"),
                *("say the numbers from {} down to {}", "list the numbers from {} back to {}", "start at {} and count down to {}"),
                *("begin with {} and count backwards until {}", "give me the numbers from {} down to {}"),
            ),
        )
        answer = ", ".join(map(str, range(start, end - 1, -1))) + "."
        return ask(prompt.format(start, end), answer, key=f"{start}..{end}", expects=answer)
    if topic == 2:
        end = rng.randint(2, 20)
        question = rng.wording(
            *(f"Count to {end}.", f"Can you count to {end}?", f"Count up to {end}."),
            *(f"Please count to {end}.", f"Count from 1 to {end}.", f"Could you count up to {end}?"),
            *(f"I want you to count to {end}.", f"Say the numbers up to {end}.", f"List the numbers from 1 to {end}."),
            *(f"Start at one and count to {end}.", f"Begin with 1 and count until {end}.", f"Show me that you can count to {end}."),
            *(f"Give me the numbers from one to {end}.", f"Which numbers do you say when you count to {end}?", f"Let us count to {end}."),
            *(f"Counting to {end}, please.", f"Write all numbers from 1 up to {end}."),
            f"Count from one up to {end}.",
            f"I would like you to count to {end}.",
            commands=(
                *(
                    f"count to {end}",
                    f"count up to {end}",
                    f"count from 1 to {end}",
                    f"say the numbers up to {end}",
                    f"start at 1 and go to {end}",
                ),
                *(f"list the numbers from one to {end}", f"write the numbers until {end}", f"begin with one and count to {end}"),
            ),
        )
        answer = ", ".join(map(str, range(1, end + 1))) + "."
        return ask(question, answer, key=f"1..{end}" if rng.split == "train" else "", expects=answer)
    if topic == 3:
        step, start = rng.choice((2, 2, 3, 5, 10)), rng.randrange(0, 60)
        n_numbers = rng.randint(4, 7)
        question = rng.wording(
            *(f"Count in steps of {step} from {start}, {n_numbers} numbers.", f"Count by {step}s from {start}. Give {n_numbers} numbers."),
            f"Starting at {start}, count in steps of {step}: {n_numbers} numbers.",
            f"From {start}, count by {step}s. I want {n_numbers} numbers.",
            f"Can you count by {step}s from {start} and give {n_numbers} numbers?",
            f"Could you write {n_numbers} numbers in steps of {step}, starting at {start}?",
            f"I would like {n_numbers} numbers, beginning with {start}, each {step} more.",
            f"Start with {start} and add {step} each time, {n_numbers} numbers in all.",
            f"List {n_numbers} numbers that go up by {step}, from {start}.",
            f"In steps of {step}, from {start}: {n_numbers} numbers, please.",
            f"Write down {n_numbers} numbers: the first is {start}, and each step is {step}.",
            f"Take {start} and go on by {step}s. Stop after {n_numbers} numbers.",
            f"Say {n_numbers} numbers, counting by {step}s and starting from {start}.",
            f"Beginning at {start}, count up by {step} and show {n_numbers} numbers.",
            f"Go up in {step}s from {start} for {n_numbers} numbers.",
            f"Give me {n_numbers} numbers from {start} in steps of {step}.",
            f"Begin at {start} and count by {step}s until you have {n_numbers} numbers.",
            commands=(
                f"count in steps of {step} from {start}, {n_numbers} numbers",
                f"count by {step}s from {start} and stop after {n_numbers} numbers",
                f"start at {start} and add {step} until there are {n_numbers} numbers",
                f"write {n_numbers} numbers in steps of {step}, the first of which is {start}",
                f"list {n_numbers} numbers from {start}, each {step} more than the one before",
            ),
        )
        answer = ", ".join(str(start + i * step) for i in range(n_numbers)) + "."
        return ask(question, answer, key=f"{start}/{step}/{n_numbers}", expects=answer)
    number = _number(rng)
    if rng.random() < 0.5:
        question = rng.wording(
            *(f"What number comes after {number}?", f"Which number follows {number}?", f"What comes after {number}?"),
            *(f"Tell me the number after {number}.", f"Can you tell me which number follows {number}?"),
            *(f"Could you say what comes next after {number}?", f"I would like to know the number that comes after {number}."),
            *(f"After {number} comes which number?", f"{number} is followed by which number?", f"Next number after {number}?"),
            *(f"When you count, what do you say after {number}?", f"I count to {number}. What is next?"),
            *(f"Name the number that follows {number}.", f"Which one comes right after {number}?"),
            f"If you add one to {number}, where are you?",
            f"What is the next number after {number}?",
            f"Which number is one more than {number}?",
            commands=(
                *(f"tell me the number after {number}", f"name the number that follows {number}", f"say what comes after {number}"),
                *(
                    f"count one further than {number}",
                    f"go one up from {number}",
                    f"add one to {number}",
                    f"give me the next number after {number}",
                ),
            ),
        )
        return ask(question, f"After {number} comes {number + 1}.", key=f"{number}>", expects=str(number + 1))
    question = rng.wording(
        *(f"What number comes before {number + 1}?", f"Which number is before {number + 1}?", f"What comes before {number + 1}?"),
        *(f"Tell me the number before {number + 1}.", f"Can you tell me which number comes before {number + 1}?"),
        *(f"Could you say what is just before {number + 1}?", f"I would like to know the number that comes before {number + 1}."),
        *(f"Before {number + 1} comes which number?", f"{number + 1} comes after which number?", f"Which number does {number + 1} follow?"),
        *(f"When you count, what do you say before {number + 1}?", f"I count down to {number + 1}. What is next?"),
        *(f"Name the number that precedes {number + 1}.", f"Which one comes right before {number + 1}?"),
        f"If you take one from {number + 1}, where are you?",
        f"What is the number just before {number + 1}?",
        f"Which number is one less than {number + 1}?",
        commands=(
            *(
                f"tell me the number before {number + 1}",
                f"name the number that precedes {number + 1}",
                f"say what comes before {number + 1}",
            ),
            *(f"count one back from {number + 1}", f"go one down from {number + 1}", f"take one from {number + 1}"),
        ),
    )
    return ask(question, f"Before {number + 1} comes {number}.", key=f"{number}<", expects=str(number))


def describe_number(rng: Draw) -> Exchange:
    """What there is to say about a number."""
    number = 1 + _number(rng)
    kind = "even" if number % 2 == 0 else "odd"
    question = rng.choice(
        (
            *(f"Tell me about the number {number}.", f"Tell me about number {number}.", f"What do you know about {number}?"),
            *(f"Describe the number {number}.", f"What can you say about {number}?", f"Say something about the number {number}."),
            *(f"Can you tell me something about {number}?", f"I would like to know more about the number {number}."),
            *(f"What is there to know about {number}?", f"Please describe {number}.", f"What kind of number is {number}?"),
        )
    )
    answer = f"{number} is an {kind} number. Before it comes {number - 1}, and after it comes {number + 1}."
    return ask(question, answer)
