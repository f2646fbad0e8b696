"""Working on words and lists: spelling, reversing, sorting, first and last, letters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..conversation import Exchange, Message, a_or_an, ask, by_letters, join_and, pick
from ..draw import Draw
from ..lexicon.pools import PERSONS
from ..lexicon.things import CATEGORIES
from ..words import letter_word


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
        *(f"Spell {word}.", f"Spell the word {word}.", f'Spell "{word}".'),
        *(f"How do you spell {word}?", f"Please spell '{word}'.", f"Can you spell {word}?"),
        *(f"Spell {word} for me.", f'How is "{word}" spelt?', f"Spell out {word}."),
        *(f"Give me the letters of {word}.", f"{word}: how is it spelt?", f"Can you tell me how {word} is spelt?"),
        *(f"I would like to know how to spell {word}.", f"I do not know how to spell {word}. Can you help?"),
        *(f'Would you please spell "{word}"?', f"Break {word} into its letters.", f'List the letters of the word "{word}" in order.'),
        *(f"Show me the spelling of {word}.", f"What is the spelling of '{word}'?", f"Write {word} letter by letter."),
        *(f"Split the word {word} into letters.", f"Say the letters of {word} one after another.", f"The letters of {word}, please."),
        *(f"How would you spell the word {word}?", f"Please write out {word} with single letters.", f"{word}, letter by letter, please."),
        f"I need {word} spelt out.",
        f"What letters make up the word {word}?",
        f"Which letters are in the word {word}, one by one?",
        sealed=(f"Could you spell {word} letter by letter?", f"Write the word {word} as single letters."),
        commands=(
            *("spell {}", "spell the word {}", "spell out {}", 'spell "{}"', "write {} letter by letter", "give me the letters of {}"),
            *("break {} into letters", "say the letters of {} one by one", "list the letters of {}", "split {} into its letters"),
            *("tell me how to spell {}", "show me how {} is spelt", "take the word {} apart into letters", "spell this word"),
        ),
        over=word,
    )
    return ask(question, f"{'-'.join(word)}.", expects="-".join(word), verbatim=True)


def spell_several(rng: Draw) -> Exchange:
    """Some words, each letter by letter."""
    words = [letter_word(rng) for _ in range(rng.randint(2, 5))]
    given = ", ".join(words)
    question = rng.wording(
        *(f"Spell these words: {given}.", f"Spell each of these: {given}", f"Please spell {given}."),
        *(f"Spell the following: {given}.", f"{given}: spell each word.", f"Can you spell these for me: {given}?"),
        *(f"Could you spell {given}, one after another?", f"I would like to have these words spelt: {given}."),
        *(f"Write each of these words letter by letter: {given}", f"Give me the spelling of {given}.", f"How do you spell {given}?"),
        *(f"What is the spelling of each of these: {given}?", f"Please split these words into letters: {given}."),
        *(f"Show the letters of each word: {given}", f"Spell, one by one: {given}", f"I need the letters of these words: {given}."),
        *(f"For each word, list its letters: {given}", f"Here are some words: {given}. Spell them."),
        f"How are these words spelt: {given}?",
        f"Spell all of these words: {given}.",
        commands=(
            *("spell these words", "spell each of these words", "write each word letter by letter", "give me the letters of every word"),
            *("split each of these words into letters", "spell {}", "spell the following words, one by one"),
        ),
        over=given,
    )
    return ask(question, "\n".join(f"{word}: {'-'.join(word)}" for word in words))


def reverse_word(rng: Draw) -> Exchange:
    """A word backwards, after its letters.

    The reversed word is learnt letter by letter, for it has no tokens of its own.
    """
    word = letter_word(rng)
    question = rng.wording(
        *(f"Reverse the word {word}.", f"Write {word} backwards.", f'Reverse "{word}".'),
        *(f"What is {word} backwards?", f"Reverse {word}.", f"Say {word} backwards."),
        *(f"Turn the word {word} around.", f"Spell {word} backwards.", f"How is {word} written backwards?"),
        *(f"Give me {word} in reverse.", f"{word} backwards, please.", f"{word} in reverse?"),
        *(f"Can you write {word} backwards?", f"Could you turn {word} back to front?", f"I would like to see {word} written backwards."),
        *(f"Write the letters of {word} in reverse order.", f'Put the letters of "{word}" in the opposite order.'),
        *(f"Flip the word {word}.", f"Read {word} from the end to the beginning.", f"What do you get when you reverse {word}?"),
        *(f"What is the reverse of '{word}'?", f"Tell me how {word} reads from right to left."),
        *(f"Write {word} from its last letter to its first.", f"Please reverse the letters of {word}."),
        *(f"Show me {word} spelt from the end.", f"If you read {word} backwards, what does it say?"),
        *(f"Start at the end of {word} and write it backwards.", f"I need the word {word} reversed.", f"Mirror the word {word}."),
        f"Would you spell {word} from back to front?",
        f"What does {word} look like in reverse?",
        f"Please write the word {word} from back to front.",
        sealed=(f"Could you reverse {word} for me?", f"Spell the word {word} in reverse."),
        commands=(
            *("reverse {}", "reverse the word {}", "write {} backwards", "turn {} around", "spell {} backwards", "give me {} in reverse"),
            *("say the word {} backwards", "flip the letters of {}", "put the letters of {} in reverse order", "mirror {}", 'reverse "{}"'),
            *("read {} from right to left", "write {} starting with its last letter", "tell me what {} is backwards", "reverse this word"),
            *("show me {} from its end to its start", "tell me what {} becomes when it is turned around", "tell me how {} reads backwards"),
            *("show me what {} looks like from right to left", "write this word backwards"),
        ),
        over=word,
    )
    return ask(question, f"{'-'.join(word)} backwards is{by_letters(word[::-1])}.", expects=word[::-1], verbatim=True)


def _letter_commands(which: str, begins: str, starts: str) -> tuple[str, ...]:
    """Commands to name the first or the last letter."""
    return (
        *(
            f"tell me the {which} letter of {{}}",
            f"give me the letter with which {{}} {begins}",
            f"name the {which} letter of the word {{}}",
        ),
        *(f"say which letter {{}} {starts} with", f"look at {{}} and name its {which} letter", f"name the {which} letter of this word"),
    )


def count_letters(rng: Draw) -> Exchange:
    """How many letters, or which letter is first or last."""
    word = letter_word(rng)
    topic = rng.randrange(3)
    if topic == 0:
        question = rng.wording(
            *(f"How many letters does {word} have?", f"How many letters are in '{word}'?", f"Count the letters of {word}."),
            *(f"How long is the word {word}?", f"Tell me how many letters {word} has.", f"Can you count the letters in {word}?"),
            *(f"Could you tell me how many letters there are in {word}?", f"I would like to know how long the word {word} is."),
            *(f"The word {word} has how many letters?", f"{word}: how many letters?", f"Please count the letters in the word {word}."),
            *(f"Of how many letters is {word} made?", f"How many characters does the word {word} have?"),
            *(f"Give me the length of the word {word}.", f"What is the length of {word} in letters?", f"How many letters make up {word}?"),
            f'Do you know how many letters are in the word "{word}"?',
            f"What is the number of letters in {word}?",
            f"How many letters do you need to write {word}?",
            commands=(
                *("count the letters of {}", "tell me how many letters {} has", "tell me the number of letters in the word {}"),
                *("find out how long the word {} is", "say how many letters there are in {}", "count the letters of this word"),
            ),
            over=word,
        )
        return ask(question, f"{'-'.join(word)}: {len(word)} letters.", expects=str(len(word)))
    if topic == 1:
        question = rng.wording(
            *(f"What is the first letter of {word}?", f"With which letter does {word} begin?", f"Which letter does {word} start with?"),
            *(f"Tell me the first letter of {word}.", f"Can you tell me the letter with which {word} starts?"),
            *(f"Could you give me the first letter of {word}?", f"I would like to know what {word} starts with."),
            *(f"First letter of {word}?", f"{word}: which letter is first?", f"Name the letter at the beginning of {word}."),
            *(f"What letter is at the start of {word}?", f"What is the initial letter of the word {word}?"),
            *(f'Which letter stands at the beginning of "{word}"?', f"Give me the letter that {word} begins with."),
            *(f"Please name the first letter in {word}.", f"The first letter in '{word}' is which one?"),
            f"What letter does {word} begin with?",
            f"What letter comes first in {word}?",
            f"The word {word} begins with which letter?",
            commands=_letter_commands("first", "begins", "starts"),
            over=word,
        )
        return ask(question, f"The first letter of {word} is {word[0]}.", expects=f" {word[0]}.")
    question = rng.wording(
        *(f"What is the last letter of {word}?", f"What letter does {word} end with?", f"With which letter does {word} end?"),
        *(f"Tell me the last letter of {word}.", f"Can you tell me the letter with which {word} ends?"),
        *(f"Could you give me the last letter of {word}?", f"I would like to know what {word} ends in.", f"Last letter of {word}?"),
        *(f"{word}: which letter is last?", f"Name the letter at the end of {word}.", f"What letter is at the end of {word}?"),
        *(f"What is the final letter of the word {word}?", f'Which letter stands at the end of "{word}"?'),
        *(f"Give me the letter that {word} ends with.", f"Please name the last letter in {word}."),
        *(f"The last letter in '{word}' is which one?", f"Which letter finishes the word {word}?"),
        f"What letter comes last in {word}?",
        f"The word {word} ends with which letter?",
        commands=_letter_commands("last", "ends", "ends"),
        over=word,
    )
    return ask(question, f"The last letter of {word} is {word[-1]}.", expects=f" {word[-1]}.")


def sort_words(rng: Draw) -> Exchange:
    """Words by the alphabet."""
    words = _words(rng, 3, 5)
    given = ", ".join(words)
    question = rng.wording(
        *(f"Sort these words: {given}.", f"Sort alphabetically: {given}", f"Put these words in alphabetical order: {given}."),
        *(f"Order by alphabet: {given}.", f"Sort the words {given}.", f"Sort this list alphabetically: {given}."),
        *(f"Sort from A to Z: {given}", f"Please sort: {given}.", f"{given}: sort these by the alphabet."),
        *(f"{given} - put them in alphabetical order.", f"Can you sort these words for me: {given}?"),
        *(f"Could you arrange {given} from A to Z?", f"I would like these words in the order of the alphabet: {given}."),
        *(f"What is the alphabetical order of {given}?", f"How would {given} stand in a dictionary?"),
        *(f"List these words alphabetically: {given}.", f"Rank these words by their first letters, A to Z: {given}"),
        *(f"Give me {given} in the order of the alphabet.", f"Here are some words: {given}. Sort them from A to Z."),
        *(f"Which order do these words have in the alphabet: {given}?", f"Alphabetical order, please: {given}."),
        *(f"Order the following words from A to Z: {given}", f"In alphabetical order, what is this list: {given}?"),
        *(f"Would you bring this list into alphabetical order: {given}?", f"Arrange alphabetically, beginning with A: {given}"),
        *(f"I need this list sorted by the alphabet: {given}.", f"Alphabetize {given}."),
        f"Write these words as a dictionary would order them: {given}.",
        f"Bring these words into alphabetical order: {given}.",
        f"Arrange these words by the alphabet: {given}.",
        sealed=(f"Please put {given} in alphabetical order.", f"Could you sort these words alphabetically: {given}?"),
        commands=(
            *(
                "sort these words",
                "sort these words alphabetically",
                "put these words in alphabetical order",
                "order these words from A to Z",
            ),
            *("arrange the following words by the alphabet", "bring these into the order of the alphabet", "list these words from A to Z"),
            *("sort this list by the alphabet", "rank these words by their first letters", "write these words in alphabetical order"),
            *("give me these words in the order of a dictionary", "alphabetize this list", "sort {}", "sort {} alphabetically"),
            *("put {} in the order of the alphabet", "arrange {} from A to Z", "write {} alphabetically"),
        ),
        over=given,
    )
    answer = ", ".join(sorted(words)) + "."
    return ask(question, answer, key=answer, expects=answer, verbatim=True)


def _of_any_length(rng: Draw, wanted: int) -> list[int]:
    """Numbers of one to three digits, which the order of their first digits does not sort."""
    found: dict[int, None] = {}
    while len(found) < wanted:
        found[rng.randrange(10 ** rng.randint(1, 3))] = None
    return list(found)


def sort_numbers(rng: Draw) -> Exchange:
    """Numbers by size."""
    largest = rng.choice((10, 100, 100, 1000))
    wanted = rng.randint(3, 5)
    mixed = rng.split == "train" and rng.random() < 0.5
    numbers = _of_any_length(rng, wanted) if mixed else rng.sample(range(largest), wanted)
    given = ", ".join(map(str, numbers))
    down = rng.random() < 0.35
    if down:
        question = rng.wording(
            *(f"Sort from large to small: {given}.", f"Sort in descending order: {given}"),
            *(f"Sort these numbers from large to small: {given}.", f"Order these numbers, largest first: {given}."),
            *(f"{given}: sort them from high to low.", f"Can you sort these from the largest down: {given}?"),
            *(f"Could you put {given} in descending order?", f"I would like these numbers from highest to lowest: {given}."),
            *(f"Rank these numbers from high to low: {given}.", f"What is the descending order of {given}?"),
            *(f"List {given} with the biggest first.", f"Begin with the largest number: {given}."),
            *(f"Start with the biggest and end with the smallest: {given}", f"Arrange in falling order: {given}"),
            *(f"Please order {given} from big to small.", f"Largest first: {given}"),
            *(f"Write these numbers down, the largest one first: {given}.", f"How do {given} go from the largest to the smallest?"),
            *(f"Sort the numbers {given} downwards.", f"Give me {given} in order, highest number first."),
            f"Here are some numbers: {given}. Sort them, biggest first.",
            f"Sort these in reverse, from the greatest to the least: {given}.",
            f"Would you arrange {given} with the greatest number at the beginning?",
            f"Put these numbers in descending order: {given}.",
            f"Arrange from the largest to the smallest: {given}.",
            sealed=(f"Sort {given}, beginning with the largest.",),
            commands=(
                *("sort these numbers from large to small", "put these numbers in descending order", "order these numbers, largest first"),
                *("arrange the following numbers from the biggest to the smallest", "list these from high to low", "sort {} downwards"),
                *(
                    "sort this list in descending order",
                    "sort {} from high to low",
                    "put {} in falling order",
                    "begin with the biggest of {}",
                ),
                *("rank {} from the largest to the smallest", "write these numbers with the largest first", "sort {}, biggest first"),
            ),
            over=given,
        )
    else:
        question = rng.wording(
            *(f"Sort these numbers: {given}.", f"Sort: {given}", f"Put these numbers in order: {given}."),
            *(f"Sort from small to large: {given}.", f"Sort in ascending order: {given}.", f"Please sort the numbers {given}."),
            *(f"{given}: sort them from low to high.", f"Can you sort these numbers for me: {given}?", f"Could you put {given} in order?"),
            *(f"I would like these numbers from lowest to highest: {given}.", f"Rank these numbers from low to high: {given}."),
            *(f"What is the ascending order of {given}?", f"List {given} with the smallest first."),
            *(f"Begin with the smallest number: {given}.", f"Start with the lowest and end with the highest: {given}"),
            *(f"Arrange in rising order: {given}", f"Order {given} from little to big.", f"Smallest first: {given}"),
            *(f"Write these numbers down, the least one first: {given}.", f"How do {given} go from the smallest to the largest?"),
            *(f"Sort the numbers {given} upwards.", f"Give me {given} in order of size.", f"Here are some numbers: {given}. Sort them."),
            *(f"Please bring {given} into the right order.", f"Would you arrange {given} with the smallest number at the beginning?"),
            f"Put {given} in ascending order.",
            f"Order these numbers, smallest first: {given}.",
            f"Arrange these numbers by size: {given}.",
            sealed=(f"Please sort {given} from small to large.", f"Could you put these numbers in ascending order: {given}?"),
            commands=(
                *("sort these numbers", "put these numbers in order", "order these numbers, lowest first", "list these from low to high"),
                *("arrange the following numbers from the smallest to the biggest", "sort {} upwards", "sort this list in ascending order"),
                *(
                    "sort {} from low to high",
                    "put {} in rising order",
                    "begin with the smallest of {}",
                    "sort {}",
                    "sort {}, smallest first",
                ),
                *("rank {} from the smallest to the largest", "write these numbers with the smallest first"),
            ),
            over=given,
        )
    answer = ", ".join(map(str, sorted(numbers, reverse=down))) + "."
    return ask(question, answer, key=answer, expects=answer, verbatim=True)


def _item_commands(which: str, begins: str, start: str) -> tuple[str, ...]:
    """Commands to name the first or the last item of a list."""
    return (
        *(f"tell me the {which} word of this list", f"name the {which} item", f"give me the {which} word"),
        *(f"say which of these words comes {which}", f"pick out the {which} of these", f"look at this list and name its {which} word"),
        *(f"find the item at the {start} of {{}}", f"tell me with which word the list {begins}", f"name the {which} of {{}}"),
        f"show me only the {which} word",
    )


def list_ends(rng: Draw) -> Exchange:
    """The first, last or number of items of a list, or the list reversed."""
    words = _words(rng, 3, 6)
    given = ", ".join(words)
    topic = rng.randrange(4)
    if topic == 0:
        question = rng.wording(
            *(f"What is the first word of: {given}?", f"First of this list: {given}", f"Which word comes first in this list: {given}?"),
            *(f"Give me the first item of {given}.", f"Tell me the first word of this list: {given}."),
            *(f"Can you tell me which item comes first: {given}?", f"Could you name the first item in this list: {given}?"),
            *(f"I would like to know the first of these words: {given}.", f"{given}: which one is first?"),
            *(f"Here is a list: {given}. What is its first word?", f"What does this list begin with: {given}?"),
            *(f"With which word does this list start: {given}?", f"First item: {given}", f"Which item is at the start of {given}?"),
            *(f"What is the first entry in {given}?", f"Name the word at the beginning of this list: {given}."),
            *(f"Say only the first of these words: {given}.", f"Which of the words {given} do I mention first?"),
            *(f"The list is {given}. Give me the one at the top.", f"Please pick out the first word of {given}."),
            f"Name the first of these: {given}.",
            f"Which of these stands at the beginning: {given}?",
            commands=_item_commands("first", "begins", "start"),
            over=given,
        )
        return ask(question, f"The first is {words[0]}.", key=given, expects=f"is {words[0]}.", verbatim=True)
    if topic == 1:
        question = rng.wording(
            *(f"What is the last word of: {given}?", f"Last of this list: {given}", f"Which word comes last in this list: {given}?"),
            *(f"Give me the last item of {given}.", f"Tell me the last word of this list: {given}."),
            *(f"Can you tell me which item comes last: {given}?", f"Could you name the last item in this list: {given}?"),
            *(f"I would like to know the last of these words: {given}.", f"{given}: which one is last?"),
            *(f"Here is a list: {given}. What is its last word?", f"What does this list end with: {given}?"),
            *(f"With which word does this list finish: {given}?", f"Last item: {given}", f"Which item is at the end of {given}?"),
            *(f"What is the final entry in {given}?", f"Name the word at the end of this list: {given}."),
            *(f"Say only the last of these words: {given}.", f"Which of the words {given} do I mention last?"),
            *(f"The list is {given}. Give me the one at the bottom.", f"Please pick out the final word of {given}."),
            f"Name the last of these: {given}.",
            f"Which of these stands at the end: {given}?",
            commands=_item_commands("last", "ends", "end"),
            over=given,
        )
        return ask(question, f"The last is {words[-1]}.", key=given, expects=f"is {words[-1]}.", verbatim=True)
    if topic == 2:
        question = rng.wording(
            *(f"How many words are in this list: {given}?", f"Count these words: {given}.", f"How many items are here: {given}?"),
            *(f"Tell me how many words these are: {given}.", f"Can you count the words in this list: {given}?"),
            *(f"Could you tell me how many items this list has: {given}?", f"I would like to know how many words I wrote: {given}."),
            *(f"{given}: how many words is that?", f"Here is a list: {given}. How long is it?", f"How long is this list: {given}?"),
            *(f"What is the length of the list {given}?", f"Count the items: {given}", f"Please count {given}."),
            *(f"How many entries does this list have: {given}?", f"How many things do I name here: {given}?"),
            *(f"Number of words in this list: {given}", f"Give me the number of items in {given}."),
            f"How many words do you count here: {given}?",
            f"What is the number of words in this list: {given}?",
            commands=(
                *("count these words", "tell me how many words these are", "count the items of this list", "say how long this list is"),
                *("find out how many words there are", "count the entries", "tell me how many items {} has"),
            ),
            over=given,
        )
        return ask(question, f"There are {len(words)} words.", key=given, expects=str(len(words)))
    question = rng.wording(
        *(f"Reverse this list: {given}.", f"Write this list backwards: {given}", f"Reverse the order of {given}."),
        *(f"Give me this list in reverse: {given}.", f"Turn {given} around so that the last comes first."),
        *(f"Can you reverse this list: {given}?", f"Could you give me {given} from last to first?"),
        *(f"I would like this list backwards: {given}.", f"{given}: now in reverse, please."),
        *(f"Here is a list: {given}. Write it in reverse order.", f"List these from the end to the beginning: {given}"),
        *(f"What is this list in reverse order: {given}?", f"Reverse: {given}", f"Put these words in reverse order: {given}."),
        *(f"Start with the last word and go back to the first: {given}", f"How does this list read from the end: {given}?"),
        *(f"Please write {given} back to front.", f"Flip the order of this list: {given}."),
        *(f"Say these words from last to first: {given}.", f"Arrange these the other way round: {given}"),
        f"Turn this list around: {given}.",
        f"Write these words in the opposite order: {given}.",
        commands=(
            *(
                "reverse this list",
                "write this list backwards",
                "reverse the order of these words",
                "give me these words from last to first",
            ),
            *("turn {} around", "list these words from the end to the beginning", "put these in reverse order", "flip this list"),
            *("say {} in reverse order", "begin with the last of these and go back to the first", "write {} the other way round"),
        ),
        over=given,
    )
    answer = ", ".join(reversed(words)) + "."
    return ask(question, answer, key=given, expects=answer, verbatim=True)


class _Further(NamedTuple):
    """One more question about a list that was given before; `listed` are the items of an answer that is a list."""

    questions: tuple[str, ...]
    answer: str
    listed: tuple[str, ...] = ()


_UP = ("Sort them.", "Now sort the list.", "Put them in order.", "What is the right order?", "And sorted?", "Sort these, please.")
_DOWN = (
    "Now sort the list in descending order.",
    "Sort them in descending order.",
    "Put my list in falling order.",
    "And in descending order?",
)
_OTHER_WAY = ("And the other way round?", "Turn that around.", "The same from back to front.", "Now in the other direction.")


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items) + "."


def _further(given: list[str], ordered: list[str]) -> tuple[_Further, ...]:
    """What can be asked of a list, whatever was asked before."""
    back = ("Reverse my list.", "What is my list backwards?", "Turn my list around.", "Say my list from its end to its beginning.")
    orders = ((_UP, tuple(ordered)), (_DOWN, tuple(ordered[::-1])), (back, tuple(given[::-1])))
    return (
        *(_Further(questions, _listed(items), items) for questions, items in orders),
        _Further(
            ("Which one is first in my list?", "What did I name first?", "The first of my list?", "Name the first item that I gave you."),
            f"The first is {given[0]}.",
        ),
        _Further(
            ("Which one is last in my list?", "What did I name last?", "The last of my list?", "Name the last item that I gave you."),
            f"The last is {given[-1]}.",
        ),
    )


def several_of_a_list(rng: Draw) -> Exchange:
    """A list that is sorted, then turned around, its ends named and more, each asked of the same list."""
    while True:
        if rng.random() < 0.5:
            items, kind = _words(rng, 3, 6), "words"
            ordered = sorted(items)
        else:
            numbers = _of_any_length(rng, rng.randint(3, 6))
            items, kind = list(map(str, numbers)), "numbers"
            ordered = list(map(str, sorted(numbers)))
        given = ", ".join(items)
        # By these `list_ends`, `sort_words` and `sort_numbers` are held out.
        if rng.split != "train" or all(map(rng.falls_here, (given, _listed(ordered), _listed(reversed(ordered))))):
            break
    opening = pick(
        rng,
        *(f"Here is a list: {given}.", f"Take these {kind}: {given}.", f"My list is {given}.", f"I have some {kind} here: {given}."),
        f"{given}.",
    )
    further = _further(items, ordered)
    turns: list[Message] = []
    for one in rng.sample(further, rng.randint(2, len(further))):
        question = rng.choice(one.questions)
        turns += [Message("user", question if turns else f"{opening} {question}"), Message("assistant", one.answer)]
        if one.listed and rng.random() < 0.3:
            turns += [Message("user", rng.choice(_OTHER_WAY)), Message("assistant", _listed(reversed(one.listed)))]
    return Exchange(tuple(turns), "", verbatim=True)


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
        *(f"Could you name {shown} {noun}?", f"Please name {shown} {noun}.", f"Can you give me {shown} {noun}?"),
        *(f"I would like to hear {shown} {noun}.", f"Think of {shown} {noun}.", f"Which {noun} do you know? Name {amount}."),
        *(f"Say {shown} {noun}.", f"I am looking for {shown} {noun}.", f"Do you know {shown} {noun}?"),
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
