"""Working on words and lists: spelling, reversing, sorting, first and last, letters."""

from __future__ import annotations

from random import Random

from ..conversation import Exchange, a_or_an, ask, join_and, pick
from ..lexicon.people import NAMES
from ..lexicon.things import CATEGORIES, WORDS


def _word(rng: Random) -> str:
    return rng.choice(WORDS)


def _words(rng: Random, smallest: int, largest: int) -> list[str]:
    pool = NAMES if rng.random() < 0.25 else WORDS
    return rng.sample(pool, rng.randint(smallest, largest))


def spell(rng: Random) -> Exchange:
    """A word letter by letter."""
    word = _word(rng)
    question = pick(
        rng,
        f"Spell {word}.",
        f"Spell the word {word}.",
        f'Spell "{word}".',
        f"How do you spell {word}?",
        f"Please spell '{word}'.",
    )
    return ask(question, f"{'-'.join(word)}.")


def reverse_word(rng: Random) -> Exchange:
    """A word backwards, spelt out first."""
    word = _word(rng)
    question = pick(
        rng,
        f"Reverse the word {word}.",
        f"Write {word} backwards.",
        f'Reverse "{word}".',
        f"What is {word} backwards?",
    )
    return ask(question, f"{'-'.join(reversed(word))}: {word[::-1]}.")


def count_letters(rng: Random) -> Exchange:
    """How many letters, or which letter is first or last."""
    word = _word(rng)
    topic = rng.randrange(3)
    if topic == 0:
        question = pick(rng, f"How many letters does {word} have?", f"How many letters are in '{word}'?")
        return ask(question, f"{'-'.join(word)}: {len(word)} letters.")
    if topic == 1:
        question = pick(rng, f"What is the first letter of {word}?", f"With which letter does {word} begin?")
        return ask(question, f"The first letter of {word} is {word[0]}.")
    question = pick(rng, f"What is the last letter of {word}?", f"What letter does {word} end with?")
    return ask(question, f"The last letter of {word} is {word[-1]}.")


def sort_list(rng: Random) -> Exchange:
    """Words by the alphabet or numbers by size."""
    if rng.random() < 0.5:
        words = _words(rng, 3, 5)
        given = ", ".join(words)
        question = pick(
            rng,
            f"Sort these words: {given}.",
            f"Sort alphabetically: {given}",
            f"Put these words in alphabetical order: {given}.",
            f"Order by alphabet: {given}.",
        )
        return ask(question, ", ".join(sorted(words)) + ".")
    largest = rng.choice((10, 100, 1000))
    numbers = rng.sample(range(largest), rng.randint(3, 5))
    given = ", ".join(map(str, numbers))
    down = rng.random() < 0.3
    if down:
        question = pick(rng, f"Sort from large to small: {given}.", f"Sort in descending order: {given}")
    else:
        question = pick(
            rng,
            f"Sort these numbers: {given}.",
            f"Sort: {given}",
            f"Put these numbers in order: {given}.",
            f"Sort from small to large: {given}.",
        )
    return ask(question, ", ".join(map(str, sorted(numbers, reverse=down))) + ".")


def list_ends(rng: Random) -> Exchange:
    """The first, last, longest or number of items of a list, or the list reversed."""
    words = _words(rng, 3, 6)
    given = ", ".join(words)
    topic = rng.randrange(4)
    if topic == 0:
        question = pick(rng, f"What is the first word of: {given}?", f"First of this list: {given}")
        return ask(question, f"The first is {words[0]}.")
    if topic == 1:
        question = pick(rng, f"What is the last word of: {given}?", f"Last of this list: {given}")
        return ask(question, f"The last is {words[-1]}.")
    if topic == 2:
        question = pick(rng, f"How many words are in this list: {given}?", f"Count these words: {given}.")
        return ask(question, f"There are {len(words)} words.")
    question = pick(rng, f"Reverse this list: {given}.", f"Write this list backwards: {given}")
    return ask(question, ", ".join(reversed(words)) + ".")


_COMMON_CATEGORIES = ("colours", "animals", "fruits", "countries", "cities", "birds")
_SINGULAR = {"clothes": "piece of clothing", "days of the week": "day of the week", "countries": "country", "cities": "city"}


def name_some(rng: Random) -> Exchange:
    """Naming a few members of a category, in prose, as a JSON list or line by line."""
    category = rng.choice(_COMMON_CATEGORIES if rng.random() < 0.4 else tuple(CATEGORIES))
    members = CATEGORIES[category]
    wanted = rng.choices((1, 2, 3, 4, 5), (7, 4, 8, 3, 3))[0]
    chosen = rng.sample(members, min(wanted, len(members) - 1))
    amount = ("zero", "one", "two", "three", "four", "five")[len(chosen)]
    shown = pick(rng, amount, str(len(chosen))) if rng.random() < 0.3 else amount
    noun = category
    if len(chosen) == 1:
        noun = _SINGULAR.get(category, category[:-1])
        if rng.random() < 0.6:
            shown = a_or_an(noun).split(" ")[0]
    question = pick(
        rng,
        *(f"Name {shown} {noun}.",) * 3,
        f"Give me {shown} {noun}.",
        f"List {shown} {noun}.",
        f"Tell me {shown} {noun}.",
        f"Can you name {shown} {noun}?",
        f"I need {shown} {noun}.",
        f"Write down {shown} {noun}.",
    )
    if noun == "colours" and rng.random() < 0.2:
        question = question.replace("colours", "colors")
    form = rng.random()
    if form < 0.12:
        question += pick(rng, " Answer as a JSON list.", " Use a JSON list.", " As a JSON array.")
        return ask(question, "[" + ", ".join(f'"{item}"' for item in chosen) + "]")
    if form < 0.2:
        question += pick(rng, " One per line.", " Put each on its own line.")
        return ask(question, "\n".join(chosen))
    text = join_and(chosen)
    return ask(question, text[:1].upper() + text[1:] + ".")
