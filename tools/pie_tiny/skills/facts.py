"""Facts in many wordings, each with its whole sentence and its shortest answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..conversation import Exchange, a_or_an, ask, capitalise
from ..draw import Draw
from ..lexicon.animals import ANIMALS, Animal
from ..lexicon.things import (
    CATEGORIES,
    COLOUR_OF,
    DAYS,
    MONTH_LENGTHS,
    MONTHS,
    OPPOSITES,
    PLURALS,
    UNITS,
)
from ..lexicon.world import COUNTRIES

_COMMON_COUNTRIES = 20


class Fact(NamedTuple):
    """A question, the sentence that answers it, and the answer in a word or two."""

    question: str
    sentence: str
    short: str

    @property
    def expects(self) -> str:
        """What the sentence must hold: a count of none is said as `no`."""
        return "no" if self.short == "0" else self.short


def _country_fact(rng: Draw) -> Fact:
    known = COUNTRIES[:_COMMON_COUNTRIES] if rng.random() < 0.3 else COUNTRIES
    country = rng.choice(known)
    name, capital, continent, language = country
    topic = rng.random()
    if topic < 0.7:
        question = rng.wording(
            *(f"What is the capital of {name}?",) * 4,
            f"Which city is the capital of {name}?",
            f"Name the capital of {name}.",
            f"Tell me the capital of {name}.",
            f"What's the capital of {name}?",
            f"What is {name}'s capital?",
            f"What is the capital city of {name}?",
            f"The capital of {name}?",
            f"Do you know the capital of {name}?",
            f"Give me the capital of {name}.",
            f"I want to know the capital of {name}.",
            f"Which town is {name}'s capital?",
            f"Please tell me what {name}'s capital city is.",
        )
        return Fact(question, f"The capital of {name} is {capital}.", capital)
    if topic < 0.8:
        question = rng.wording(
            f"{capital} is the capital of which country?",
            f"Of which country is {capital} the capital?",
            f"Which country has {capital} as its capital?",
            f"What country is {capital} the capital of?",
            f"Name the country whose capital is {capital}.",
            f"{capital} is the capital city of what country?",
        )
        return Fact(question, f"{capital} is the capital of {name}.", capitalise(name))
    if topic < 0.9:
        question = rng.wording(
            f"Which continent is {name} in?",
            f"On which continent is {name}?",
            f"Where is {name}?",
            f"What continent does {name} belong to?",
            f"Name the continent of {name}.",
            f"In which part of the world is {name}?",
            f"{capitalise(name)} is on which continent?",
        )
        return Fact(question, f"{capitalise(name)} is in {continent}.", continent)
    question = rng.wording(
        f"Which language do people speak in {name}?",
        f"What language is spoken in {name}?",
        f"What do people speak in {name}?",
        f"Which language is spoken in {name}?",
        f"Name the language of {name}.",
        f"What is the language of {name}?",
        f"In {name}, which language do people speak?",
    )
    return Fact(question, f"Many people in {name} speak {language}.", language)


def _colour_fact(rng: Draw) -> Fact:
    thing = rng.choice(list(COLOUR_OF))
    colour = COLOUR_OF[thing]
    question = rng.wording(
        f"What colour is {thing}?",
        f"What is the colour of {thing}?",
        f"Which colour does {thing} have?",
        f"What color is {thing}?",
        f"Tell me the colour of {thing}.",
        f"Which colour is {thing}?",
        f"What colour does {thing} have?",
        f"Do you know the colour of {thing}?",
        f"Name the colour of {thing}.",
    )
    return Fact(question, f"{capitalise(thing)} is {colour}.", capitalise(colour))


def _sound_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    question = rng.wording(
        f"What sound does {name} make?",
        f"What does {name} do to make a sound?",
        f"Which sound does {name} make?",
        f"How does {name} sound?",
        f"What noise does {name} make?",
        f"Tell me the sound of {name}.",
        f"What sound do you hear from {name}?",
        f"Which noise does {name} make?",
    )
    return Fact(question, f"{capitalise(name)} {animal.sound}.", capitalise(animal.sound))


def _young_fact(rng: Draw, animal: Animal) -> Fact:
    name, young = a_or_an(animal.name), a_or_an(animal.young)
    question = rng.wording(
        f"What is a young {animal.name} called?",
        f"What do you call a baby {animal.name}?",
        f"What is the name for the young of {name}?",
        f"What is a baby {animal.name}?",
        f"How do you call a young {animal.name}?",
        f"What is the young of {name} called?",
        f"Name the young of {name}.",
        f"What is the word for a baby {animal.name}?",
    )
    return Fact(question, f"A young {animal.name} is called {young}.", capitalise(animal.young))


def _food_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    question = rng.wording(
        f"What does {name} eat?",
        f"What does {name} like to eat?",
        f"What is the food of {name}?",
        f"Tell me what {name} eats.",
        f"What food does {name} eat?",
        f"Name the food of {name}.",
        f"What do you feed {name}?",
    )
    return Fact(question, f"{capitalise(name)} eats {animal.food}.", capitalise(animal.food))


def _home_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    question = rng.wording(
        *(f"Where does {name} live?", f"Where is {name} at home?", f"Where can you find {name}?", f"Tell me where {name} lives."),
        *(f"In what place does {name} live?", f"What is the home of {name}?"),
    )
    return Fact(question, f"{capitalise(name)} lives {animal.home}.", capitalise(animal.home))


def _kind_fact(rng: Draw, animal: Animal) -> Fact:
    name, kind = a_or_an(animal.name), a_or_an(animal.kind)
    question = rng.wording(
        *(f"What kind of animal is {name}?", f"What sort of animal is {name}?", f"To which kind of animals does {name} belong?"),
        *(f"Which kind of animal is {name}?", f"What type of animal is {name}?"),
    )
    return Fact(question, f"{capitalise(name)} is {kind}.", capitalise(animal.kind))


def _legs_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    count = str(animal.legs) if animal.legs else "no"
    question = rng.wording(
        *(f"How many legs does {name} have?", f"What number of legs does {name} have?", f"Count the legs of {name}."),
        *(f"On how many legs does {name} walk?", f"How many legs are there on {name}?"),
    )
    return Fact(question, f"{capitalise(name)} has {count} legs.", str(animal.legs))


def _animal_fact(rng: Draw) -> Fact:
    animal = rng.choice(ANIMALS)
    makers: list[Callable[[Draw, Animal], Fact]] = [_food_fact, _home_fact, _kind_fact]
    if animal.name != "octopus":
        makers.append(_legs_fact)
    if animal.sound:
        makers.append(_sound_fact)
    if animal.young:
        makers.append(_young_fact)
    return rng.choice(makers)(rng, animal)


def _calendar_fact(rng: Draw) -> Fact:
    topic = rng.randrange(4)
    if topic == 0:
        i = rng.randrange(7)
        day, other = DAYS[i], DAYS[(i + 1) % 7]
        question = rng.wording(
            *(f"Which day comes after {day}?", f"What day is after {day}?", f"What follows {day}?", f"Which day follows {day}?"),
            *(f"What day comes next after {day}?", f"What is the day after {day}?"),
        )
        return Fact(question, f"The day after {day} is {other}.", other)
    if topic == 1:
        i = rng.randrange(7)
        day, other = DAYS[i], DAYS[i - 1]
        question = rng.wording(
            *(f"Which day comes before {day}?", f"What day is before {day}?", f"What comes before {day}?"),
            *(f"Which day is just before {day}?", f"What is the day before {day}?"),
        )
        return Fact(question, f"The day before {day} is {other}.", other)
    i = rng.randrange(12)
    month = MONTHS[i]
    if topic == 2:
        other = MONTHS[(i + 1) % 12]
        question = rng.wording(
            *(f"Which month comes after {month}?", f"What month follows {month}?", f"What month is after {month}?"),
            *(f"What month comes next after {month}?", f"What is the month after {month}?"),
        )
        return Fact(question, f"The month after {month} is {other}.", other)
    question = rng.wording(
        *(f"How many days does {month} have?", f"How many days are in {month}?", f"How many days are there in {month}?"),
        *(f"How long is {month}, in days?", f"What is the number of days in {month}?"),
    )
    return Fact(question, f"{month} has {MONTH_LENGTHS[i]} days.", str(MONTH_LENGTHS[i]))


def _unit_fact(rng: Draw) -> Fact:
    things, whole, count = rng.choice(UNITS)
    question = rng.wording(
        *(f"How many {things} are in {whole}?", f"How many {things} does {whole} have?", f"How many {things} are there in {whole}?"),
        *(f"What number of {things} does {whole} have?", f"{capitalise(whole)} has how many {things}?"),
        *(f"Tell me how many {things} {whole} has.", f"What is the number of {things} in {whole}?"),
    )
    return Fact(question, f"{capitalise(whole)} has {count} {things}.", str(count))


def _word_fact(rng: Draw) -> Fact:
    if rng.random() < 0.7:
        word, other = rng.choice(OPPOSITES)
        if rng.random() < 0.5 and word != "light" and other != "light":
            word, other = other, word
        question = rng.wording(
            f"What is the opposite of {word}?",
            f"Name the opposite of {word}.",
            f"Give me the opposite of {word}.",
            f"What's the opposite of '{word}'?",
            f"Which word is the opposite of {word}?",
            f"Tell me the opposite of {word}.",
            f"The opposite of {word}?",
            f"What is the contrary of {word}?",
            f"Which word means the opposite of {word}?",
        )
        return Fact(question, f"The opposite of {word} is {other}.", capitalise(other))
    word, other = rng.choice(PLURALS)
    question = rng.wording(
        *(f"What is the plural of {word}?", f"Give me the plural of {word}.", f"Name the plural of {word}."),
        *(f"One {word}, two what?", f"What is the plural form of {word}?"),
    )
    return Fact(question, f"The plural of {word} is {other}.", capitalise(other))


def _group_fact(rng: Draw) -> Fact:
    names = ("fruits", "vegetables", "birds", "insects", "flowers", "trees", "planets", "metals")
    group = rng.choice((*names, "instruments", "sports", "colours", "months", "seasons"))
    member = rng.choice(CATEGORIES[group])
    asked = rng.choice((group, *names[:4])) if rng.random() < 0.5 else group
    yes = member in CATEGORIES[asked]
    noun = asked[:-1]
    mass_noun = group in ("sports", "colours", "seasons", "metals")
    shown = member if mass_noun or member[0].isupper() else a_or_an(member)
    question = rng.wording(
        *(f"Is {shown} {a_or_an(noun)}?", f"Is {shown} {a_or_an(noun)} or not?", f"Tell me: is {shown} {a_or_an(noun)}?"),
        *(f"Would you say that {shown} is {a_or_an(noun)}?", f"Do you think {shown} is {a_or_an(noun)}?"),
    )
    if yes:
        return Fact(question, f"Yes, {shown} is {a_or_an(noun)}.", "Yes")
    return Fact(question, f"No, {shown} is not {a_or_an(noun)}.", "No")


_MAKERS: tuple[tuple[Callable[[Draw], Fact], int], ...] = (
    (_country_fact, 8),
    (_colour_fact, 3),
    (_animal_fact, 6),
    (_calendar_fact, 3),
    (_unit_fact, 3),
    (_word_fact, 4),
    (_group_fact, 2),
)


def random_fact(rng: Draw) -> Fact:
    """Any fact, the larger groups more often."""
    makers, weights = zip(*_MAKERS, strict=True)
    maker: Callable[[Draw], Fact] = rng.choices(makers, weights)[0]
    return maker(rng)


def fact(rng: Draw) -> Exchange:
    """A fact asked plainly and answered in a sentence."""
    asked = random_fact(rng)
    return ask(asked.question, asked.sentence, expects=asked.expects)
