"""Working on words and lists: spelling, reversing, sorting, first and last, letters."""

from __future__ import annotations

from ..conversation import Exchange, a_or_an, ask, by_letters, join_and, pick
from ..draw import Draw
from ..lexicon.pools import PERSONS, letter_word
from ..lexicon.things import CATEGORIES


def _words(rng: Draw, smallest: int, largest: int) -> list[str]:
    wanted = rng.randint(smallest, largest)
    if rng.random() < 0.25:
        return rng.some(PERSONS, wanted)
    words: dict[str, None] = {}
    while len(words) < wanted:
        words[letter_word(rng)] = None
    return list(words)


def spell(rng: Draw) -> Exchange:
    """A word letter by letter."""
    word = letter_word(rng)
    question = rng.wording(
        f"Spell {word}.",
        f"Spell the word {word}.",
        f'Spell "{word}".',
        f"How do you spell {word}?",
        f"Please spell '{word}'.",
        f"Can you spell {word}?",
        f"Spell {word} for me.",
        f'How is "{word}" spelt?',
        f"Spell out {word}.",
        f"Give me the letters of {word}.",
        f"What letters make up the word {word}?",
        f"Which letters are in the word {word}, one by one?",
        sealed=(f"Could you spell {word} letter by letter?", f"Write the word {word} as single letters."),
    )
    return ask(question, f"{'-'.join(word)}.", expects="-".join(word))


def spell_several(rng: Draw) -> Exchange:
    """Some words, each letter by letter."""
    words = [letter_word(rng) for _ in range(rng.randint(2, 5))]
    given = ", ".join(words)
    question = rng.wording(
        *(f"Spell these words: {given}.", f"Spell each of these: {given}", f"Please spell {given}."),
        *(f"How are these words spelt: {given}?", f"Spell all of these words: {given}."),
    )
    return ask(question, "\n".join(f"{word}: {'-'.join(word)}" for word in words))


def reverse_word(rng: Draw) -> Exchange:
    """A word backwards, after its letters; the reversed word is learnt letter by letter, for it has no tokens of its own."""
    word = letter_word(rng)
    question = rng.wording(
        f"Reverse the word {word}.",
        f"Write {word} backwards.",
        f'Reverse "{word}".',
        f"What is {word} backwards?",
        f"Reverse {word}.",
        f"Say {word} backwards.",
        f"Turn the word {word} around.",
        f"Spell {word} backwards.",
        f"How is {word} written backwards?",
        f"Give me {word} in reverse.",
        f"What does {word} look like in reverse?",
        f"Please write the word {word} from back to front.",
        sealed=(f"Could you reverse {word} for me?", f"Spell the word {word} in reverse."),
    )
    return ask(question, f"{'-'.join(word)} backwards is{by_letters(word[::-1])}.", expects=word[::-1])


def count_letters(rng: Draw) -> Exchange:
    """How many letters, or which letter is first or last."""
    word = letter_word(rng)
    topic = rng.randrange(3)
    if topic == 0:
        question = rng.wording(
            *(f"How many letters does {word} have?", f"How many letters are in '{word}'?", f"Count the letters of {word}."),
            *(
                f"How long is the word {word}?",
                f"What is the number of letters in {word}?",
                f"How many letters do you need to write {word}?",
            ),
        )
        return ask(question, f"{'-'.join(word)}: {len(word)} letters.", expects=str(len(word)))
    if topic == 1:
        question = rng.wording(
            *(f"What is the first letter of {word}?", f"With which letter does {word} begin?", f"Which letter does {word} start with?"),
            *(f"What letter comes first in {word}?", f"The word {word} begins with which letter?"),
        )
        return ask(question, f"The first letter of {word} is {word[0]}.", expects=f" {word[0]}.")
    question = rng.wording(
        *(f"What is the last letter of {word}?", f"What letter does {word} end with?", f"With which letter does {word} end?"),
        *(f"What letter comes last in {word}?", f"The word {word} ends with which letter?"),
    )
    return ask(question, f"The last letter of {word} is {word[-1]}.", expects=f" {word[-1]}.")


def sort_words(rng: Draw) -> Exchange:
    """Words by the alphabet."""
    words = _words(rng, 3, 5)
    given = ", ".join(words)
    question = rng.wording(
        f"Sort these words: {given}.",
        f"Sort alphabetically: {given}",
        f"Put these words in alphabetical order: {given}.",
        f"Order by alphabet: {given}.",
        f"Sort the words {given}.",
        f"Sort this list alphabetically: {given}.",
        f"Sort from A to Z: {given}",
        f"Please sort: {given}.",
        f"Bring these words into alphabetical order: {given}.",
        f"Arrange these words by the alphabet: {given}.",
        sealed=(f"Please put {given} in alphabetical order.", f"Could you sort these words alphabetically: {given}?"),
    )
    answer = ", ".join(sorted(words)) + "."
    return ask(question, answer, key=answer, expects=answer)


def sort_numbers(rng: Draw) -> Exchange:
    """Numbers by size."""
    largest = rng.choice((10, 100, 100, 1000))
    numbers = rng.sample(range(largest), rng.randint(3, 5))
    given = ", ".join(map(str, numbers))
    down = rng.random() < 0.35
    if down:
        question = rng.wording(
            f"Sort from large to small: {given}.",
            f"Sort in descending order: {given}",
            f"Sort these numbers from large to small: {given}.",
            f"Order these numbers, largest first: {given}.",
            f"Put these numbers in descending order: {given}.",
            f"Arrange from the largest to the smallest: {given}.",
            sealed=(f"Sort {given}, beginning with the largest.",),
        )
    else:
        question = rng.wording(
            f"Sort these numbers: {given}.",
            f"Sort: {given}",
            f"Put these numbers in order: {given}.",
            f"Sort from small to large: {given}.",
            f"Sort in ascending order: {given}.",
            f"Please sort the numbers {given}.",
            f"Order these numbers, smallest first: {given}.",
            f"Arrange these numbers by size: {given}.",
            sealed=(f"Please sort {given} from small to large.", f"Could you put these numbers in ascending order: {given}?"),
        )
    answer = ", ".join(map(str, sorted(numbers, reverse=down))) + "."
    return ask(question, answer, key=answer, expects=answer)


def list_ends(rng: Draw) -> Exchange:
    """The first, last or number of items of a list, or the list reversed."""
    words = _words(rng, 3, 6)
    given = ", ".join(words)
    topic = rng.randrange(4)
    if topic == 0:
        question = rng.wording(
            *(f"What is the first word of: {given}?", f"First of this list: {given}", f"Which word comes first in this list: {given}?"),
            *(
                f"Give me the first item of {given}.",
                f"Name the first of these: {given}.",
                f"Which of these stands at the beginning: {given}?",
            ),
        )
        return ask(question, f"The first is {words[0]}.", key=given, expects=f"is {words[0]}.")
    if topic == 1:
        question = rng.wording(
            *(f"What is the last word of: {given}?", f"Last of this list: {given}", f"Which word comes last in this list: {given}?"),
            *(f"Give me the last item of {given}.", f"Name the last of these: {given}.", f"Which of these stands at the end: {given}?"),
        )
        return ask(question, f"The last is {words[-1]}.", key=given, expects=f"is {words[-1]}.")
    if topic == 2:
        question = rng.wording(
            *(f"How many words are in this list: {given}?", f"Count these words: {given}.", f"How many items are here: {given}?"),
            *(f"How many words do you count here: {given}?", f"What is the number of words in this list: {given}?"),
        )
        return ask(question, f"There are {len(words)} words.", key=given, expects=str(len(words)))
    question = rng.wording(
        *(f"Reverse this list: {given}.", f"Write this list backwards: {given}", f"Reverse the order of {given}."),
        *(
            f"Give me this list in reverse: {given}.",
            f"Turn this list around: {given}.",
            f"Write these words in the opposite order: {given}.",
        ),
    )
    answer = ", ".join(reversed(words)) + "."
    return ask(question, answer, key=given, expects=answer)


_COMMON_CATEGORIES = ("colours", "animals", "fruits", "countries", "cities", "birds")
_SINGULAR = {"clothes": "piece of clothing", "days of the week": "day of the week", "countries": "country", "cities": "city"}


def name_some(rng: Draw) -> Exchange:
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
