"""Answering from a passage: the sentence that says it stands among many that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..conversation import Exchange, Message, a_or_an, asking
from ..draw import Draw
from ..lexicon.pools import DISHES, ITEMS, PASTIMES, PROFESSIONS, TOWNS
from ..lexicon.things import COLOURS, DAYS, MONTHS
from ..lexicon.topics import TOPICS
from ..words import coined_word, person

_LENGTHS = (25, 60, 150, 300, 500, 750)
"""Bounds on the words of a passage; 750 words are up to 1,500 tokens."""
_LENGTH_WEIGHTS = (60, 70, 48, 28, 16, 9)
_WORDS_PER_QUESTION = 25
"""A long passage that is read costs less for each answer that is learnt where there are many."""


class _Statement(NamedTuple):
    """A sentence about somebody or something, the questions about it, and what counts in the answer."""

    sentence: str
    question: str
    answer: str
    value: str


def _lives(rng: Draw, name: str) -> _Statement:
    city = rng.entry(TOWNS)
    sentence = rng.wording(
        *(f"{name} lives in {city}.", f"The home of {name} is {city}.", f"{name} has a flat in {city}."),
        *(f"{name} is at home in {city}.", f"{name} comes from {city} and still lives there.", f"You can find {name} in {city}."),
        *(f"{city} is where {name} lives.", f"For ten years {name} has lived in {city}.", f"{name} rents a room in {city}."),
        *(f"After school {name} settled in {city}.", f"In {city} stands the house of {name}."),
        f"{name} would never leave {city}, the home of the family.",
        f"{name} moved to {city} long ago.",
        f"{name} has a house in {city}.",
    )
    question = rng.wording(
        *(f"Where does {name} live?", f"In which city does {name} live?", f"Which city does {name} live in?"),
        *asking(f"where {name} lives"),
        *(f"In what town does {name} live?", f"Where is {name} at home?", f"Tell me the city where {name} lives."),
        *(f"{name} lives where?", f"Which town is home to {name}?", f"Where does {name} have a home?"),
        f"Name the city in which {name} lives.",
        f"Where is the home of {name}?",
        f"What city is {name}'s home?",
    )
    return _Statement(sentence, question, f"{name} lives in {city}.", city)


def _works(rng: Draw, name: str) -> _Statement:
    job = rng.entry(PROFESSIONS)
    sentence = rng.wording(
        *(f"{name} works as {a_or_an(job)}.", f"{name} is {a_or_an(job)}.", f"{name} has been {a_or_an(job)} for years."),
        *(f"What {name} does for money is the work of {a_or_an(job)}.", f"As for work, {name} is {a_or_an(job)}."),
        *(f"{name} became {a_or_an(job)} after school.", f"People need {name}, who is {a_or_an(job)}."),
        *(f"Every morning {name} goes to work as {a_or_an(job)}.", f"{name} found work as {a_or_an(job)}."),
        *(f"Being {a_or_an(job)} is the work of {name}.", f"{name} likes being {a_or_an(job)}.", f"{name}'s profession is {job}."),
        f"The job of {name} is {job}.",
        f"{name} earns a living as {a_or_an(job)}.",
    )
    question = rng.wording(
        *(f"What is the job of {name}?", f"What does {name} work as?", f"Which job does {name} have?"),
        *asking(f"what {name} does for a living"),
        *(f"What is the profession of {name}?", f"What does {name} do for a living?", f"Which profession does {name} have?"),
        *(f"Tell me the job of {name}.", f"What kind of work does {name} do?", f"How does {name} earn money?"),
        f"Name the job that {name} has.",
        f"What is {name}'s job?",
        f"As what does {name} work?",
    )
    return _Statement(sentence, question, f"{name} is {a_or_an(job)}.", job)


def _aged(rng: Draw, name: str) -> _Statement:
    age = rng.randint(7, 99)
    sentence = rng.wording(
        *(f"{name} is {age} years old.", f"{name} turned {age} this year.", f"The age of {name} is {age}."),
        *(f"{name} has lived for {age} years.", f"{name}, now {age} years of age, feels well."),
        *(f"{name} celebrated {age} years last week.", f"At {age} years, {name} is still learning.", f"Last month {name} turned {age}."),
        *(f"{name}'s age is {age}.", f"{age} is the age of {name}.", f"{age} years ago {name} was born."),
        f"Today {name} is {age} years of age.",
        f"{name} is now {age}.",
        f"This spring {name} became {age} years old.",
    )
    question = rng.wording(
        *(f"How old is {name}?", f"What is the age of {name}?", f"What age is {name}?"),
        *asking(f"how old {name} is"),
        *(f"How many years old is {name}?", f"At what age is {name} now?", f"{name} is how old?"),
        *(f"Which age does {name} have?", f"How many years has {name} lived?", f"Say how old {name} is."),
        f"Give the age of {name} in years.",
        f"Tell me the age of {name}.",
        f"What is {name}'s age?",
    )
    return _Statement(sentence, question, f"{name} is {age} years old.", str(age))


def _enjoys(rng: Draw, name: str) -> _Statement:
    hobby = rng.entry(PASTIMES)
    sentence = rng.wording(
        *(f"{name} loves {hobby}.", f"The hobby of {name} is {hobby}.", f"In the evening {name} enjoys {hobby}."),
        *(f"{name}'s hobby is {hobby}.", f"{name} enjoys {hobby} more than anything.", f"In the free hours {name} likes {hobby}."),
        *(f"Nothing makes {name} as happy as {hobby}.", f"You often see {name} at {hobby}."),
        *(f"When there is time, {name} turns to {hobby}.", f"{name} has always liked {hobby}.", f"The pastime of {name} is {hobby}."),
        f"On Sundays it is {hobby} for {name}.",
        f"{name} spends the weekend with {hobby}.",
        f"{name} is very fond of {hobby}.",
    )
    question = rng.wording(
        *(f"What is the hobby of {name}?", f"Which hobby does {name} have?", f"What does {name} enjoy?"),
        *asking(f"what hobby {name} has"),
        *(f"What hobby does {name} have?", f"What does {name} like doing?", f"How does {name} spend free time?"),
        *(f"What is the pastime of {name}?", f"Tell me the hobby of {name}.", f"{name} has which hobby?"),
        *(f"What does {name} do in the evening for fun?", f"Name the hobby that {name} enjoys."),
        f"What does {name} love to do?",
        f"What is {name}'s hobby?",
    )
    return _Statement(sentence, question, f"The hobby of {name} is {hobby}.", hobby)


def _eats(rng: Draw, name: str) -> _Statement:
    dish = rng.entry(DISHES)
    sentence = rng.wording(
        *(f"{name} likes to eat {dish}.", f"The favourite food of {name} is {dish}.", f"For dinner {name} often cooks {dish}."),
        *(f"{name}'s favourite food is {dish}.", f"{name} could eat {dish} every day.", f"Of all foods {name} likes {dish} best."),
        *(f"When {name} is hungry, there has to be {dish}.", f"What {name} loves to eat is {dish}."),
        *(f"{name} is always happy about {dish}.", f"No food is better for {name} than {dish}.", f"{name} eats {dish} with great joy."),
        f"The food that {name} loves is {dish}.",
        f"{name} never says no to {dish}.",
        f"{name} prefers {dish} to all other food.",
    )
    question = rng.wording(
        *(f"What is the favourite food of {name}?", f"What does {name} like to eat?", f"Which food does {name} like?"),
        *asking(f"what {name} likes to eat"),
        *(f"Which dish does {name} like?", f"What does {name} love to eat?", f"Which food is the favourite of {name}?"),
        *(f"What should I cook for {name}?", f"Tell me the favourite food of {name}.", f"What dish would {name} choose?"),
        f"Name the food that {name} likes.",
        f"What food does {name} like best?",
        f"What is {name}'s favourite food?",
    )
    return _Statement(sentence, question, f"{name} likes {dish}.", dish)


def _owns(rng: Draw, name: str) -> _Statement:
    item, colour = rng.entry(ITEMS), rng.choice(COLOURS)
    sentence = rng.wording(
        *(f"{name} owns {a_or_an(colour)} {item}.", f"{name} has {a_or_an(colour)} {item}.", f"The {item} of {name} is {colour}."),
        *(f"{name} keeps {a_or_an(colour)} {item} at home.", f"There is {a_or_an(colour)} {item} that belongs to {name}."),
        *(f"{name}'s {item} is {colour}.", f"{name} got {a_or_an(colour)} {item} as a present."),
        *(f"The colour of {name}'s {item} is {colour}.", f"{name} painted the {item} {colour}."),
        *(f"{name} found {a_or_an(colour)} {item} and kept it.", f"In the house of {name} lies {a_or_an(colour)} {item}."),
        f"{name} is proud of the new {item}, which is {colour}.",
        f"{name} bought {a_or_an(colour)} {item}.",
        f"{name} was given {a_or_an(colour)} {item}.",
    )
    question = rng.wording(
        *(f"Which colour is the {item} of {name}?", f"What colour is the {item} of {name}?", f"What is the colour of {name}'s {item}?"),
        *asking(f"what colour the {item} of {name} is"),
        *(f"{name}'s {item} has what colour?", f"The {item} of {name} has which colour?", f"In which colour is the {item} of {name}?"),
        *(f"Tell me the colour of the {item} of {name}.", f"What color is the {item} that {name} has?"),
        *(f"Which colour does {name}'s {item} have?", f"Name the colour of the {item} that belongs to {name}."),
        f"What colour does the {item} of {name} have?",
        f"Which colour is {name}'s {item}?",
    )
    return _Statement(sentence, question, f"The {item} of {name} is {colour}.", colour)


def _travels(rng: Draw, name: str) -> _Statement:
    city, month = rng.entry(TOWNS), rng.choice(MONTHS)
    sentence = rng.wording(
        *(f"In {month} {name} travels to {city}.", f"{name} will visit {city} in {month}.", f"{name} plans a trip to {city} in {month}."),
        *(f"{name} takes the train to {city} in {month}.", f"In {month} a journey takes {name} to {city}."),
        *(f"{name} has bought a ticket to {city} for {month}.", f"The next journey of {name} goes to {city}, in {month}."),
        *(f"{month} is when {name} leaves for {city}.", f"{name} wants to see {city} in {month}."),
        *(f"When {month} comes, {name} will be in {city}.", f"For {month}, {name} has booked a room in {city}."),
        f"{name} looks forward to {city}, where the trip goes in {month}.",
        f"A trip to {city} is what {name} plans for {month}.",
        f"{name} goes on holiday to {city} in {month}.",
    )
    if rng.random() < 0.5:
        question = rng.wording(
            *(f"Where does {name} travel?", f"Which city will {name} visit?", f"Where does {name} go on a trip?"),
            *asking(f"where {name} travels"),
            *(f"What city does {name} travel to?", f"Where is {name} going?", f"What is the goal of {name}'s trip?"),
            *(f"{name} travels to which city?", f"Which city does {name} want to see?", f"Where will {name} go?"),
            f"Name the city to which {name} travels.",
            f"To which city does {name} travel?",
            f"What city is {name} going to visit?",
        )
        return _Statement(sentence, question, f"{name} travels to {city}.", city)
    question = rng.wording(
        *(f"When does {name} travel?", f"In which month does {name} travel?", f"When is the trip of {name}?"),
        *asking(f"when {name} travels"),
        *(f"During which month is {name} away?", f"When is {name} going on a trip?", f"When will {name} go on the journey?"),
        *(f"{name} travels in which month?", f"When does the trip of {name} take place?", f"In what month does {name} leave?"),
        f"Name the month in which {name} travels.",
        f"In which month is the trip of {name}?",
        f"What month does {name} travel in?",
    )
    return _Statement(sentence, question, f"{name} travels in {month}.", month)


def _meets(rng: Draw, name: str) -> _Statement:
    day, other = rng.choice(DAYS), person(rng)
    sentence = rng.wording(
        *(f"On {day} {name} meets {other}.", f"{name} has lunch with {other} on {day}.", f"{name} sees {other} every {day}."),
        *(f"{name} meets {other} on {day}.", f"On {day} {name} has a meeting with {other}.", f"{other} visits {name} on {day}."),
        *(f"{name} waits for {other} every {day}.", f"{name} goes to the cinema with {other} on {day}."),
        *(f"On {day}, {other} comes to see {name}.", f"{name} always cooks for {other} on {day}."),
        *(f"The best friend of {name} is {other}, who comes every {day}.", f"Together with {other}, {name} goes swimming on {day}."),
        f"{name} and {other} play chess on {day}.",
        f"Each {day} {name} goes for a walk with {other}.",
    )
    question = rng.wording(
        *(f"Whom does {name} meet?", f"Who meets {name}?", f"With whom does {name} spend {day}?"),
        *asking(f"whom {name} meets"),
        *(f"Who is meeting {name}?", f"Whom does {name} see on {day}?", f"With whom does {name} have a meeting?"),
        *(f"{name} meets whom?", f"Who spends time with {name}?", f"With whom is {name} on {day}?"),
        *(f"Name the person that {name} meets.", f"What is the name of the person that {name} meets?"),
        f"Who does {name} meet on {day}?",
        f"Which person does {name} meet?",
    )
    return _Statement(sentence, question, f"{name} meets {other}.", other)


def _place_size(rng: Draw, name: str) -> _Statement:
    count = rng.randint(100, 9999)
    sentence = rng.wording(
        *(f"{count} people live in {name}.", f"{name} has {count} inhabitants.", f"The village of {name} has {count} people."),
        *(f"{name} has {count} people.", f"{name} is home to {count} people.", f"In {name} live {count} people."),
        *(f"The number of people in {name} is {count}.", f"About {name} one can say that {count} people live there."),
        *(f"With its {count} inhabitants, {name} is easy to like.", f"{name} counts {count} inhabitants."),
        *(f"They counted {count} people in {name}.", f"The people of {name} are {count} in number."),
        f"{name} is a place of {count} people.",
        f"There are {count} people in {name}.",
    )
    question = rng.wording(
        *(f"How many people live in {name}?", f"How many inhabitants does {name} have?", f"How large is {name}?"),
        *asking(f"how many people live in {name}"),
        *(f"How many people does {name} have?", f"Tell me how many inhabitants {name} has.", f"How big is {name}?"),
        *(f"What is the number of inhabitants of {name}?", f"{name} has how many inhabitants?", f"Of how many people is {name} the home?"),
        f"Give the number of people who live in {name}.",
        f"How many people are there in {name}?",
        f"What is the number of people in {name}?",
    )
    return _Statement(sentence, question, f"{count} people live in {name}.", str(count))


def _place_known(rng: Draw, name: str) -> _Statement:
    thing = rng.choice(
        (
            "old bridge",
            "large market",
            "white tower",
            "small museum",
            "long beach",
            "wooden church",
            "famous bakery",
            "deep well",
            "stone gate",
            "rose garden",
        )
    )
    sentence = rng.wording(
        *(f"{name} is known for its {thing}.", f"People come to {name} to see the {thing}.", f"The pride of {name} is its {thing}."),
        *(f"{name} is famous for its {thing}.", f"The {thing} of {name} is known to all.", f"{name} is proud of its {thing}."),
        *(f"The best thing in {name} is its {thing}.", f"Visitors of {name} go to the {thing}."),
        *(f"{name} has a {thing} that everybody knows.", f"If you come to {name}, see the {thing}."),
        *(f"The {thing} is what makes {name} special.", f"Painters like {name} because of its {thing}."),
        f"In {name} there is a {thing}.",
        f"What everybody knows of {name} is its {thing}.",
    )
    question = rng.wording(
        *(f"What is {name} known for?", f"What can one see in {name}?", f"For what is {name} known?"),
        *asking(f"what {name} is known for"),
        *(f"What is {name} famous for?", f"What makes {name} special?", f"For what do people come to {name}?"),
        *(f"What should one look at in {name}?", f"What do visitors see in {name}?", f"{name} is known for what?"),
        f"Name the thing for which {name} is known.",
        f"What is there to see in {name}?",
        f"What do people know {name} for?",
    )
    return _Statement(sentence, question, f"{name} is known for its {thing}.", thing)


def _founded(rng: Draw, name: str) -> _Statement:
    year = rng.randint(1000, 1999)
    sentence = rng.wording(
        *(f"{name} was founded in {year}.", f"The first houses of {name} were built in {year}."),
        *(f"Since {year} there has been a village called {name}.", f"{name} is there since the year {year}."),
        *(f"People founded {name} in {year}.", f"{name} began in {year}.", f"The history of {name} begins in {year}."),
        *(f"In the year {year} {name} was founded.", f"{name} was first built in {year}.", f"The founding of {name} was in {year}."),
        *(f"{year} is the year in which {name} was founded.", f"Farmers came to {name} in {year} and built the first house."),
        f"In {year} people began to build {name}.",
        f"{name} goes back to the year {year}.",
    )
    question = rng.wording(
        *(f"When was {name} founded?", f"In which year was {name} founded?", f"How old is {name}?"),
        *asking(f"when {name} was founded"),
        *(f"When did people found {name}?", f"Since when has there been a place called {name}?", f"When did {name} begin?"),
        *(f"Which is the year in which {name} was founded?", f"{name} was founded when?", f"From which year is {name}?"),
        f"Name the year in which {name} was founded.",
        f"When was {name} built?",
        f"What year was {name} founded in?",
    )
    return _Statement(sentence, question, f"{name} was founded in {year}.", str(year))


_OF_PERSONS: tuple[Callable[[Draw, str], _Statement], ...] = (_lives, _works, _aged, _enjoys, _eats, _owns, _travels, _meets)
_OF_PLACES: tuple[Callable[[Draw, str], _Statement], ...] = (_place_size, _place_known, _founded)
_FILLERS = tuple(sentence for sentences in TOPICS.values() for sentence in sentences)
_IDLE = (
    "The weather was fine that week.",
    "Nobody was in a hurry.",
    "It was a quiet year for all of them.",
    "Many things had changed since then.",
    "The old people still talk about it.",
    "Some days were better than others.",
    "There was much to do in the garden.",
    "In winter the evenings are long.",
)


def _paragraphs(rng: Draw, n_words: int) -> tuple[list[str], list[_Statement]]:
    statements: list[_Statement] = []
    sentences: list[str] = []
    filler_share = rng.choice((0.0, 0.2, 0.5))
    names: set[str] = set()
    while sum(len(sentence.split()) for sentence in sentences) < n_words:
        place = rng.random() < 0.25
        name = f"{coined_word(rng).capitalize()}" if place else person(rng)
        if name in names:
            continue
        names.add(name)
        makers = _OF_PLACES if place else _OF_PERSONS
        for maker in rng.sample(makers, rng.randint(1, min(4, len(makers)))):
            statements.append(maker(rng, name))
            sentences.append(statements[-1].sentence)
            while rng.random() < filler_share:
                sentences.append(rng.choice(_FILLERS if rng.random() < 0.7 else _IDLE))
    return sentences, statements


def passage(rng: Draw) -> Exchange:
    """A passage of twelve to 750 words and up to five questions about it, in training up to eighteen."""
    # Short ones teach as well and cost less; what is measured has as many of each length.
    n_words = rng.choices(_LENGTHS, _LENGTH_WEIGHTS if rng.split == "train" else None)[0]
    sentences, statements = _paragraphs(rng, rng.randint(n_words // 2, n_words))
    text = ""
    for sentence in sentences:
        text += ("\n\n" if text and rng.random() < 0.06 else " " if text else "") + sentence
    most = max(5, n_words // _WORDS_PER_QUESTION) if rng.split == "train" else 5
    chosen = rng.sample(statements, min(len(statements), rng.randint(2, most)))
    first = chosen[0].question
    opening = rng.wording(
        *(f"Read this text.\n\n{text}\n\n{first}", f"{text}\n\n{first}", f"Here is a text:\n\n{text}\n\nQuestion: {first}"),
        *(f"Answer from the text.\n\n{text}\n\n{first}", f"{first}\n\n{text}", f"Use this passage to answer.\n\n{text}\n\n{first}"),
        *(f"Text: {text}\n\n{first}", f"{text}\n\nNow tell me: {first}", f"{text}\n\nI have a question about this text. {first}"),
        *(f"{first} You find the answer here:\n\n{text}", f"Please read this:\n\n{text}\n\nNow my question: {first}"),
        *(f"I have a text for you.\n\n{text}\n\n{first}", f"Look at the text and answer: {first}\n\n{text}"),
        *(f"Below is a text. {first}\n\n{text}", f'"{text}"\n\n{first}'),
        *(f"By this text: {first}\n\n{text}", f"Read carefully.\n\n{text}\n\n{first}"),
        *(f"Question: {first}\n\nText: {text}", f"Context: {text}\n\nQuestion: {first}"),
        *(f"Can you answer a question about this?\n\n{text}\n\n{first}", f"{text}\n\nAnswer from what you have just read: {first}"),
        f"Please read the passage and answer the question.\n\n{text}\n\n{first}",
        f"This is what I read today:\n\n{text}\n\nTell me: {first}",
        sealed=(f"Answer the question by the text below.\n\n{text}\n\nQuestion: {first}", f"Passage:\n{text}\n\n{first}"),
    )
    turns = [Message("user", opening), Message("assistant", chosen[0].answer)]
    for statement in chosen[1:]:
        turns += [Message("user", statement.question), Message("assistant", statement.answer)]
    return Exchange(tuple(turns), "", opens=True, expects=chosen[-1].value)
