"""Facts in many wordings, each with its whole sentence and its shortest answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..capitals import capitalise
from ..conversation import Exchange, a_or_an, ask, asking
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
            *(f"Which city is the capital of {name}?", f"Name the capital of {name}.", f"Tell me the capital of {name}."),
            *(f"What's the capital of {name}?", f"What is {name}'s capital?", f"What is the capital city of {name}?"),
            *(f"The capital of {name}?", f"Do you know the capital of {name}?", f"Give me the capital of {name}."),
            f"I want to know the capital of {name}.",
            *asking(f"what the capital of {name} is"),
            *(f"Capital of {name}?", f"{capitalise(name)}: what is its capital?", f"Which city is the seat of government of {name}?"),
            *(f"What city is {name}'s capital?", f"Say the name of the capital of {name}.", f"Which is the capital city of {name}?"),
            *(f"What is the name of {name}'s capital?", f"In {name}, which city is the capital?"),
            *(f"{capitalise(name)} has which city as its capital?", f"Can you name the capital of {name}?"),
            *(f"The capital city of {name}, please.", f"I am looking for the capital of {name}.", f"Which capital does {name} have?"),
            f"Which town is {name}'s capital?",
            f"Please tell me what {name}'s capital city is.",
        )
        return Fact(question, f"The capital of {name} is {capital.removesuffix('.')}.", capital)
    if topic < 0.8:
        question = rng.wording(
            *(f"{capital} is the capital of which country?", f"Of which country is {capital} the capital?"),
            *(f"Which country has {capital} as its capital?", f"What country is {capital} the capital of?"),
            *asking(f"which country has the capital {capital}"),
            *(f"Which country's capital is {capital}?", f"What country has its capital in {capital}?"),
            *(f"What is the country that {capital} is the capital of?", f"To which country does the capital {capital} belong?"),
            *(f"Tell me the country with the capital {capital}.", f"In which country is {capital} the capital city?"),
            *(f"Which land is governed from {capital}?", f"{capital}: capital of which country?"),
            f"Give me the country that has {capital} as its capital.",
            f"Name the country whose capital is {capital}.",
            f"{capital} is the capital city of what country?",
        )
        return Fact(question, f"{capital} is the capital of {name}.", capitalise(name))
    if topic < 0.9:
        question = rng.wording(
            *(f"Which continent is {name} in?", f"On which continent is {name}?", f"Where is {name}?"),
            *(f"What continent does {name} belong to?", f"Name the continent of {name}."),
            *asking(f"on which continent {name} is"),
            *(f"Tell me on which continent {name} lies.", f"What continent is {name} on?", f"Where in the world is {name}?"),
            *(f"To which continent does {name} belong?", f"Continent of {name}?", f"{capitalise(name)}: which continent?"),
            *(f"Where does {name} lie?", f"In which continent do you find {name}?", f"Which continent is {name} part of?"),
            f"Where can I find {name} on the map?",
            f"In which part of the world is {name}?",
            f"{capitalise(name)} is on which continent?",
        )
        return Fact(question, f"{capitalise(name)} is in {continent}.", continent)
    question = rng.wording(
        *(f"Which language do people speak in {name}?", f"What language is spoken in {name}?", f"What do people speak in {name}?"),
        *(f"Which language is spoken in {name}?", f"Name the language of {name}."),
        *asking(f"which language is spoken in {name}"),
        *(f"Tell me what language people speak in {name}.", f"Which language do you hear in {name}?", f"Language of {name}?"),
        *(f"{capitalise(name)}: which language?", f"What tongue do the people of {name} speak?", f"Which language would I need in {name}?"),
        *(f"What language is used in {name}?", f"What do the people of {name} speak?", f"In which language do people talk in {name}?"),
        f"Which language should I learn for {name}?",
        f"What is the language of {name}?",
        f"In {name}, which language do people speak?",
    )
    return Fact(question, f"Many people in {name} speak {language}.", language)


def _colour_fact(rng: Draw) -> Fact:
    thing = rng.choice(list(COLOUR_OF))
    colour = COLOUR_OF[thing]
    question = rng.wording(
        *(f"What colour is {thing}?", f"What is the colour of {thing}?", f"Which colour does {thing} have?"),
        *(f"What color is {thing}?", f"Tell me the colour of {thing}.", f"Which colour is {thing}?"),
        f"What colour does {thing} have?",
        *asking(f"what colour {thing} is"),
        *(f"Colour of {thing}?", f"{capitalise(thing)} is of which colour?", f"{capitalise(thing)}: what colour?"),
        *(f"What is the color of {thing}?", f"Say what colour {thing} is.", f"Give me the colour of {thing}."),
        *(f"What colour do you see when you look at {thing}?", f"In which colour would you paint {thing}?"),
        *(f"What colour would you use to draw {thing}?", f"Which colour do we think of with {thing}?"),
        f"Do you know the colour of {thing}?",
        f"Name the colour of {thing}.",
    )
    return Fact(question, f"{capitalise(thing)} is {colour}.", capitalise(colour))


def _sound_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    question = rng.wording(
        *(f"What sound does {name} make?", f"What does {name} do to make a sound?", f"Which sound does {name} make?"),
        *(f"How does {name} sound?", f"What noise does {name} make?", f"Tell me the sound of {name}."),
        *asking(f"what sound {name} makes"),
        *(f"Say what sound {name} makes.", f"{capitalise(name)} makes what sound?", f"Sound of {name}?"),
        *(f"What does {name} say?", f"What is the sound of {name}?", f"When {name} makes a sound, what does it do?"),
        *(f"Describe the sound of {name}.", f"What is the noise of {name} like?", f"How do you call the sound that {name} makes?"),
        *(f"Which noise can one hear from {name}?", f"Which cry comes from {name}?"),
        f"What sound do you hear from {name}?",
        f"Which noise does {name} make?",
    )
    return Fact(question, f"{capitalise(name)} {animal.sound}.", capitalise(animal.sound))


def _young_fact(rng: Draw, animal: Animal) -> Fact:
    name, young = a_or_an(animal.name), a_or_an(animal.young)
    question = rng.wording(
        *(f"What is a young {animal.name} called?", f"What do you call a baby {animal.name}?"),
        *(f"What is the name for the young of {name}?", f"What is a baby {animal.name}?", f"How do you call a young {animal.name}?"),
        f"What is the young of {name} called?",
        *asking(f"what a young {animal.name} is called"),
        *(f"A baby {animal.name} is called what?", f"Young {animal.name}: what is the word?"),
        *(f"Which word do we use for a young {animal.name}?", f"Give me the name for a baby {animal.name}."),
        *(f"What name does the young of {name} have?", f"Say the word for a young {animal.name}.", f"The child of {name} is called what?"),
        *(f"How is the young of {name} called?", f"What do people call the little one of {name}?"),
        f"Name the young of {name}.",
        f"What is the word for a baby {animal.name}?",
    )
    return Fact(question, f"A young {animal.name} is called {young}.", capitalise(animal.young))


def _food_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    question = rng.wording(
        *(f"What does {name} eat?", f"What does {name} like to eat?", f"What is the food of {name}?"),
        *(f"Tell me what {name} eats.", f"What food does {name} eat?"),
        *asking(f"what {name} eats"),
        *(f"{capitalise(name)} eats what?", f"Food of {name}?", f"What does {name} live on?"),
        *(f"Say what {name} eats.", f"On what does {name} feed?", f"Which food does {name} like?"),
        *(f"What is {name} fed with?", f"What is the diet of {name}?", f"What would {name} have for dinner?"),
        *(f"What should I give {name} to eat?", f"What do we know about the food of {name}?"),
        f"Name the food of {name}.",
        f"What do you feed {name}?",
    )
    return Fact(question, f"{capitalise(name)} eats {animal.food}.", capitalise(animal.food))


def _home_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    question = rng.wording(
        *(f"Where does {name} live?", f"Where is {name} at home?", f"Where can you find {name}?"),
        f"Tell me where {name} lives.",
        *asking(f"where {name} lives"),
        *(f"{capitalise(name)} lives where?", f"Home of {name}?", f"Where would I look for {name}?"),
        *(f"Say where {name} lives.", f"Where does {name} make its home?", f"Where do you find {name}?"),
        *(f"Where does {name} stay?", f"In which place can one meet {name}?", f"Where should I go to see {name}?"),
        f"In what place does {name} live?",
        f"What is the home of {name}?",
    )
    return Fact(question, f"{capitalise(name)} lives {animal.home}.", capitalise(animal.home))


def _kind_fact(rng: Draw, animal: Animal) -> Fact:
    name, kind = a_or_an(animal.name), a_or_an(animal.kind)
    question = rng.wording(
        *(f"What kind of animal is {name}?", f"What sort of animal is {name}?", f"To which kind of animals does {name} belong?"),
        *asking(f"what kind of animal {name} is"),
        *(f"Tell me what type of animal {name} is.", f"{capitalise(name)} is what kind of animal?"),
        *(f"What is {name}: a mammal, a bird, a fish or something else?", f"To which group of animals does {name} belong?"),
        *(f"Say which sort of animal {name} is.", f"Among which animals do we count {name}?"),
        *(f"Into which group of animals would you put {name}?", f"How would you class {name}?", f"Name the kind of animal that {name} is."),
        f"Which kind of animal is {name}?",
        f"What type of animal is {name}?",
    )
    return Fact(question, f"{capitalise(name)} is {kind}.", capitalise(animal.kind))


def _legs_fact(rng: Draw, animal: Animal) -> Fact:
    name = a_or_an(animal.name)
    count = str(animal.legs) if animal.legs else "no"
    question = rng.wording(
        *(f"How many legs does {name} have?", f"What number of legs does {name} have?", f"Count the legs of {name}."),
        *asking(f"how many legs {name} has"),
        *(f"Tell me how many legs {name} has.", f"{capitalise(name)} has how many legs?", f"Legs of {name}: how many?"),
        *(f"How many legs can you count on {name}?", f"Does {name} have legs, and how many?", f"Give me the number of legs of {name}."),
        *(f"What is the number of legs of {name}?", f"If I see {name}, how many legs does it have?"),
        f"With how many legs does {name} get around?",
        f"On how many legs does {name} walk?",
        f"How many legs are there on {name}?",
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
            *(f"Which day comes after {day}?", f"What day is after {day}?", f"What follows {day}?"),
            f"Which day follows {day}?",
            *asking(f"which day comes after {day}"),
            *(f"{day} is followed by which day?", f"Name the day that follows {day}.", f"Tell me the day that comes after {day}."),
            *(f"If today is {day}, what day is tomorrow?", f"Today is {day}. What is tomorrow?"),
            *(f"What day do we have one day after {day}?", f"After {day} comes which day?", f"Next day after {day}?"),
            *(f"When {day} is over, which day begins?", f"Give me the name of the day following {day}."),
            f"What day comes next after {day}?",
            f"What is the day after {day}?",
        )
        return Fact(question, f"The day after {day} is {other}.", other)
    if topic == 1:
        i = rng.randrange(7)
        day, other = DAYS[i], DAYS[i - 1]
        question = rng.wording(
            *(f"Which day comes before {day}?", f"What day is before {day}?", f"What comes before {day}?"),
            *asking(f"which day comes before {day}"),
            *(f"{day} comes after which day?", f"Name the day that precedes {day}.", f"Tell me the day that comes before {day}."),
            *(f"If today is {day}, what day was yesterday?", f"Today is {day}. What was yesterday?"),
            *(f"What day do we have one day before {day}?", f"Before {day} comes which day?", f"Which day ends when {day} begins?"),
            *(f"Which day does {day} follow?", f"Give me the name of the day preceding {day}."),
            f"Which day is just before {day}?",
            f"What is the day before {day}?",
        )
        return Fact(question, f"The day before {day} is {other}.", other)
    i = rng.randrange(12)
    month = MONTHS[i]
    if topic == 2:
        other = MONTHS[(i + 1) % 12]
        question = rng.wording(
            *(f"Which month comes after {month}?", f"What month follows {month}?", f"What month is after {month}?"),
            *asking(f"which month comes after {month}"),
            *(f"{month} is followed by which month?", f"Name the month that follows {month}."),
            *(f"Tell me the month that comes after {month}.", f"If this month is {month}, what is next month?"),
            *(f"It is {month} now. Which month is next?", f"After {month} comes which month?", f"Next month after {month}?"),
            *(f"When {month} is over, which month begins?", f"Which month follows {month}?"),
            f"Give me the name of the month following {month}.",
            f"What month comes next after {month}?",
            f"What is the month after {month}?",
        )
        return Fact(question, f"The month after {month} is {other}.", other)
    question = rng.wording(
        *(f"How many days does {month} have?", f"How many days are in {month}?", f"How many days are there in {month}?"),
        *asking(f"how many days {month} has"),
        *(f"Tell me how many days there are in {month}.", f"{month} has how many days?", f"Days in {month}?"),
        *(f"{month}: how many days?", f"Give me the number of days that {month} has.", f"Of how many days is {month} made?"),
        *(f"How many days long is {month}?", f"What is the length of {month} in days?", f"Count the days of {month}."),
        f"Does {month} have 30 days, or how many?",
        f"How long is {month}, in days?",
        f"What is the number of days in {month}?",
    )
    return Fact(question, f"{month} has {MONTH_LENGTHS[i]} days.", str(MONTH_LENGTHS[i]))


def _unit_fact(rng: Draw) -> Fact:
    things, whole, count = rng.choice(UNITS)
    question = rng.wording(
        *(f"How many {things} are in {whole}?", f"How many {things} does {whole} have?", f"How many {things} are there in {whole}?"),
        *(f"What number of {things} does {whole} have?", f"{capitalise(whole)} has how many {things}?"),
        *asking(f"how many {things} are in {whole}"),
        *(f"{capitalise(things)} in {whole}?", f"{capitalise(whole)}: how many {things}?", f"In {whole} there are how many {things}?"),
        *(f"Say how many {things} there are in {whole}.", f"Give me the number of {things} that {whole} has."),
        *(f"How many {things} do you count in {whole}?", f"How many {things} belong to {whole}?"),
        *(f"Of {things}, how many does {whole} have?", f"Count the {things} of {whole}."),
        f"Tell me how many {things} {whole} has.",
        f"What is the number of {things} in {whole}?",
    )
    return Fact(question, f"{capitalise(whole)} has {count} {things}.", str(count))


def _word_fact(rng: Draw) -> Fact:
    if rng.random() < 0.7:
        word, other = rng.choice(OPPOSITES)
        if rng.random() < 0.5 and word != "light" and other != "light":
            word, other = other, word
        question = rng.wording(
            *(f"What is the opposite of {word}?", f"Name the opposite of {word}.", f"Give me the opposite of {word}."),
            *(f"What's the opposite of '{word}'?", f"Which word is the opposite of {word}?", f"Tell me the opposite of {word}."),
            f"The opposite of {word}?",
            *asking(f"what the opposite of {word} is"),
            *(f"What's the antonym of {word}?", f"Give an antonym for {word}.", f"Opposite of {word}?"),
            *(f"{capitalise(word)}: what is the opposite?", f"Do you have a word that is the opposite of {word}?"),
            *(f"Which word is contrary to {word}?", f'The contrary to "{word}" is which word?', f"Say the opposite of {word}."),
            *(f"What word would you use as the opposite of {word}?", f"Find the word that means the reverse of {word}."),
            *(f"What do you say for the opposite of {word}?", f"I say {word}, and you say the opposite."),
            *(f"Turn {word} into its opposite.", f"Which word stands against {word}?", f"{capitalise(word)} is the opposite of what?"),
            *(f"Tell me a word with the opposite meaning of {word}.", f"What is the other way round of {word}?"),
            f"What is the contrary of {word}?",
            f"Which word means the opposite of {word}?",
        )
        return Fact(question, f"The opposite of {word} is {other}.", capitalise(other))
    word, other = rng.choice(PLURALS)
    question = rng.wording(
        *(f"What is the plural of {word}?", f"Give me the plural of {word}.", f"Name the plural of {word}."),
        *asking(f"what the plural of {word} is"),
        *(f"Plural of {word}?", f"What's the plural of '{word}'?", f"Tell me the plural of {word}."),
        *(f"{capitalise(word)} in the plural?", f"The plural of {word}, please.", f"How do you say {word} in the plural?"),
        *(f"Which word do we use for more than one {word}?", f"What do you call more than one {word}?"),
        *(f"Make {word} plural.", f"Put the noun {word} into the plural.", f"What is the word for many, when one is called {word}?"),
        f"There is one {word}. How do I say it for two?",
        f"One {word}, two what?",
        f"What is the plural form of {word}?",
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
        *asking(f"whether {shown} is {a_or_an(noun)}"),
        *(f"Is it true that {shown} is {a_or_an(noun)}?", f"Is it right to call {shown} {a_or_an(noun)}?"),
        *(f"Can you call {shown} {a_or_an(noun)}?", f"Yes or no: is {shown} {a_or_an(noun)}?"),
        *(f"{capitalise(shown)}: is it {a_or_an(noun)}?", f"Could one say that {shown} is {a_or_an(noun)}?"),
        *(f"Does {shown} belong to the {asked}?", f"Is {shown} one of the {asked}?", f"Say whether {shown} is {a_or_an(noun)}."),
        *(f"Would it be right to say {shown} is {a_or_an(noun)}?", f"Do we count {shown} among the {asked}?"),
        f"Would you say that {shown} is {a_or_an(noun)}?",
        f"Do you think {shown} is {a_or_an(noun)}?",
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
