"""What a passage can say and be asked of a place: each relation in many wordings."""

from __future__ import annotations

from collections.abc import Callable

from ..conversation import a_or_an, asking
from ..draw import Draw
from .statement import Statement


def _place_size(rng: Draw, name: str) -> Statement:
    count = rng.randint(100, 9999)
    sentence = rng.wording(
        f"{name} gives a home to {count} people.",
        f"Once smaller, {name} now has {count} inhabitants.",
        f"If you count all people of {name}, you get {count}.",
        f"{name} lives from the work of its {count} people.",
        f"The inhabitants of {name}: {count}.",
        *(f"{count} people live in {name}.", f"{name} has {count} inhabitants.", f"The village of {name} has {count} people."),
        *(f"{name} has {count} people.", f"{name} is home to {count} people.", f"In {name} live {count} people."),
        *(f"The number of people in {name} is {count}.", f"About {name} one can say that {count} people live there."),
        *(f"With its {count} inhabitants, {name} is easy to like.", f"{name} counts {count} inhabitants."),
        *(f"They counted {count} people in {name}.", f"The people of {name} are {count} in number."),
        f"{name} is a place of {count} people.",
        f"There are {count} people in {name}.",
    )
    question = rng.wording(
        f"How many inhabitants are there in {name}?",
        f"What is the population of {name}?",
        f"How many people call {name} their home?",
        f"How many people did they count in {name}?",
        f"How many live in {name}?",
        f"Which number of people lives in {name}?",
        *(f"How many people live in {name}?", f"How many inhabitants does {name} have?", f"How large is {name}?"),
        *asking(f"how many people live in {name}"),
        *(f"How many people does {name} have?", f"Tell me how many inhabitants {name} has.", f"How big is {name}?"),
        *(f"What is the number of inhabitants of {name}?", f"{name} has how many inhabitants?", f"Of how many people is {name} the home?"),
        f"Give the number of people who live in {name}.",
        f"How many people are there in {name}?",
        f"What is the number of people in {name}?",
    )
    return Statement(sentence, question, f"{count} people live in {name}.", str(count))


_SIGHTS = (
    *("old bridge", "large market", "white tower", "small museum", "long beach", "wooden church", "famous bakery", "deep well"),
    *("stone gate", "rose garden"),
)
_SORTS = ("old", "new", "large", "small", "long", "high", "white", "red", "wooden", "stone", "famous", "quiet", "round", "green", "broken")
_BUILDINGS = (
    *("bridge", "market", "tower", "museum", "beach", "church", "bakery", "well", "gate", "garden", "castle", "fountain", "library"),
    *("park", "theatre", "harbour", "mill", "wall", "town hall", "statue", "school", "stadium", "clock", "lake", "forest", "square"),
)


def _place_known(rng: Draw, name: str) -> Statement:
    thing = rng.choice(_SIGHTS)
    if rng.split == "train" and rng.random() < 0.8:
        thing = f"{rng.choice(_SORTS)} {rng.choice(_BUILDINGS)}"
    sentence = rng.wording(
        f"Do not leave {name} without a look at its {thing}.",
        f"{name} would be nothing without its {thing}.",
        f"A picture of the {thing} of {name} hangs in many rooms.",
        f"Many come to {name} because of the {thing}.",
        f"{name} shows its {thing} to every guest.",
        f"In the middle of {name} you see the {thing}.",
        *(f"{name} is known for its {thing}.", f"People come to {name} to see the {thing}.", f"The pride of {name} is its {thing}."),
        *(f"{name} is famous for its {thing}.", f"The {thing} of {name} is known to all.", f"{name} is proud of its {thing}."),
        *(f"The best thing in {name} is its {thing}.", f"Visitors of {name} go to the {thing}."),
        *(f"{name} has {a_or_an(thing)} that everybody knows.", f"If you come to {name}, see the {thing}."),
        *(f"The {thing} is what makes {name} special.", f"Painters like {name} because of its {thing}."),
        f"In {name} there is a {thing}.",
        f"What everybody knows of {name} is its {thing}.",
    )
    question = rng.wording(
        f"Which sight does {name} have?",
        f"What is the pride of {name}?",
        f"Why do people come to {name}?",
        f"What is special about {name}?",
        f"What does {name} show its guests?",
        f"What should I see in {name}?",
        f"What is the best thing in {name}?",
        f"What can I see when I am in {name}?",
        *(f"What is {name} known for?", f"What can one see in {name}?", f"For what is {name} known?"),
        *asking(f"what {name} is known for"),
        *(f"What is {name} famous for?", f"What makes {name} special?", f"For what do people come to {name}?"),
        *(f"What should one look at in {name}?", f"What do visitors see in {name}?", f"{name} is known for what?"),
        f"Name the thing for which {name} is known.",
        f"What is there to see in {name}?",
        f"What do people know {name} for?",
    )
    return Statement(sentence, question, f"{name} is known for its {thing}.", thing)


def _founded(rng: Draw, name: str) -> Statement:
    year = rng.randint(1000, 1999)
    sentence = rng.wording(
        f"The oldest house of {name} is from {year}.",
        f"{name} has been a village since {year}.",
        f"Nobody lived in {name} before {year}, when it was founded.",
        f"The first people came to {name} in {year}.",
        f"In {year} somebody built the first house of {name}.",
        f"The church of {name} says {year}, the year of its founding.",
        *(f"{name} was founded in {year}.", f"The first houses of {name} were built in {year}."),
        *(f"Since {year} there has been a village called {name}.", f"{name} is there since the year {year}."),
        *(f"People founded {name} in {year}.", f"{name} began in {year}.", f"The history of {name} begins in {year}."),
        *(f"In the year {year} {name} was founded.", f"{name} was first built in {year}.", f"The founding of {name} was in {year}."),
        *(f"{year} is the year in which {name} was founded.", f"Farmers came to {name} in {year} and built the first house."),
        f"In {year} people began to build {name}.",
        f"{name} goes back to the year {year}.",
    )
    question = rng.wording(
        f"In what year was {name} founded?",
        f"What is the founding year of {name}?",
        f"When was the first house of {name} built?",
        f"In which year did {name} begin?",
        f"Since which year has {name} been there?",
        *(f"When was {name} founded?", f"In which year was {name} founded?", f"How old is {name}?"),
        *asking(f"when {name} was founded"),
        *(f"When did people found {name}?", f"Since when has there been a place called {name}?", f"When did {name} begin?"),
        *(f"Which is the year in which {name} was founded?", f"{name} was founded when?", f"From which year is {name}?"),
        f"Name the year in which {name} was founded.",
        f"When was {name} built?",
        f"What year was {name} founded in?",
    )
    return Statement(sentence, question, f"{name} was founded in {year}.", str(year))


OF_PLACES: tuple[Callable[[Draw, str], Statement], ...] = (_place_size, _place_known, _founded)
