"""What a passage can say and be asked of a person: each relation in many wordings."""

from __future__ import annotations

from collections.abc import Callable

from ..conversation import a_or_an, asking
from ..draw import Draw
from ..lexicon.pools import DISHES, ITEMS, PASTIMES, PROFESSIONS, TOWNS
from ..lexicon.things import COLOURS, DAYS, MONTHS
from ..words import person
from .statement import Statement


def _lives(rng: Draw, name: str) -> Statement:
    city = rng.entry(TOWNS)
    sentence = rng.wording(
        f"{name} resides in {city}.",
        f"{name}'s home is in {city}.",
        f"The flat of {name} is in {city}.",
        f"{city} has been the home of {name} for years.",
        f"{name} is a citizen of {city}.",
        f"Letters to {name} go to {city}.",
        f"The place where {name} lives is {city}.",
        *(f"{name} lives in {city}.", f"The home of {name} is {city}.", f"{name} has a flat in {city}."),
        *(f"{name} is at home in {city}.", f"{name} comes from {city} and still lives there.", f"You can find {name} in {city}."),
        *(f"{city} is where {name} lives.", f"For ten years {name} has lived in {city}.", f"{name} rents a room in {city}."),
        *(f"After school {name} settled in {city}.", f"In {city} stands the house of {name}."),
        f"{name} would never leave {city}, the home of the family.",
        f"{name} moved to {city} long ago.",
        f"{name} has a house in {city}.",
    )
    question = rng.wording(
        f"In what place does {name} live?",
        f"Which place does {name} call home?",
        f"{name}'s home is in which city?",
        f"Where does {name} reside?",
        *(f"Where does {name} live?", f"In which city does {name} live?", f"Which city does {name} live in?"),
        *asking(f"where {name} lives"),
        *(f"In what town does {name} live?", f"Where is {name} at home?", f"Tell me the city where {name} lives."),
        *(f"{name} lives where?", f"Which town is home to {name}?", f"Where does {name} have a home?"),
        f"Name the city in which {name} lives.",
        f"Where is the home of {name}?",
        f"What city is {name}'s home?",
    )
    return Statement(sentence, question, f"{name} lives in {city}.", city)


def _works(rng: Draw, name: str) -> Statement:
    job = rng.entry(PROFESSIONS)
    sentence = rng.wording(
        f"{name} is {a_or_an(job)} by trade.",
        f"They call {name} when they need {a_or_an(job)}.",
        f"If you need {a_or_an(job)}, ask {name}.",
        f"{name} wanted to be {a_or_an(job)} and is one now.",
        f"{name} is paid for the work of {a_or_an(job)}.",
        f"{name} was made {a_or_an(job)} last year.",
        f"The work that {name} does is that of {a_or_an(job)}.",
        f"They all know {name}, the {job}.",
        *(f"{name} works as {a_or_an(job)}.", f"{name} is {a_or_an(job)}.", f"{name} has been {a_or_an(job)} for years."),
        *(f"What {name} does for money is the work of {a_or_an(job)}.", f"As for work, {name} is {a_or_an(job)}."),
        *(f"{name} became {a_or_an(job)} after school.", f"People need {name}, who is {a_or_an(job)}."),
        *(f"Every morning {name} goes to work as {a_or_an(job)}.", f"{name} found work as {a_or_an(job)}."),
        *(f"Being {a_or_an(job)} is the work of {name}.", f"{name} likes being {a_or_an(job)}.", f"{name}'s profession is {job}."),
        f"The job of {name} is {job}.",
        f"{name} earns a living as {a_or_an(job)}.",
    )
    question = rng.wording(
        f"What is {name} by profession?",
        f"What is {name} by trade?",
        f"Which trade does {name} have?",
        f"What work does {name} do?",
        f"In which job does {name} work?",
        f"{name} works as what?",
        f"What did {name} become?",
        f"What does {name} do at work?",
        f"What is the work of {name}?",
        *(f"What is the job of {name}?", f"What does {name} work as?", f"Which job does {name} have?"),
        *asking(f"what {name} does for a living"),
        *(f"What is the profession of {name}?", f"What does {name} do for a living?", f"Which profession does {name} have?"),
        *(f"Tell me the job of {name}.", f"What kind of work does {name} do?", f"How does {name} earn money?"),
        f"Name the job that {name} has.",
        f"What is {name}'s job?",
        f"As what does {name} work?",
    )
    return Statement(sentence, question, f"{name} is {a_or_an(job)}.", job)


def _aged(rng: Draw, name: str) -> Statement:
    age = rng.randint(7, 99)
    sentence = rng.wording(
        f"{name} counts {age} years.",
        f"It is {age} years since {name} was born.",
        f"There were {age} candles on the cake of {name}.",
        f"{name} has seen {age} summers.",
        f"{name} is a person of {age} years.",
        f"{name} has reached the age of {age}.",
        *(f"{name} is {age} years old.", f"{name} turned {age} this year.", f"The age of {name} is {age}."),
        *(f"{name} has lived for {age} years.", f"{name}, now {age} years of age, feels well."),
        *(f"{name} celebrated {age} years last week.", f"At {age} years, {name} is still learning.", f"Last month {name} turned {age}."),
        *(f"{name}'s age is {age}.", f"{age} is the age of {name}.", f"{age} years ago {name} was born."),
        f"Today {name} is {age} years of age.",
        f"{name} is now {age}.",
        f"This spring {name} became {age} years old.",
    )
    question = rng.wording(
        f"How many years does {name} count?",
        f"How many years is {name}?",
        f"Of what age is {name}?",
        f"Which age has {name} reached?",
        *(f"How old is {name}?", f"What is the age of {name}?", f"What age is {name}?"),
        *asking(f"how old {name} is"),
        *(f"How many years old is {name}?", f"At what age is {name} now?", f"{name} is how old?"),
        *(f"Which age does {name} have?", f"Say how old {name} is."),
        f"Give the age of {name} in years.",
        f"Tell me the age of {name}.",
        f"What is {name}'s age?",
    )
    return Statement(sentence, question, f"{name} is {age} years old.", str(age))


def _enjoys(rng: Draw, name: str) -> Statement:
    hobby = rng.entry(PASTIMES)
    sentence = rng.wording(
        f"After work {name} turns to {hobby}.",
        f"{name} could spend all day with {hobby}.",
        f"If {name} is free, it is time for {hobby}.",
        f"{name} fills the free time with {hobby}.",
        *(f"{name} loves {hobby}.", f"The hobby of {name} is {hobby}.", f"In the evening {name} enjoys {hobby}."),
        *(f"{name}'s hobby is {hobby}.", f"{name} enjoys {hobby} more than anything.", f"In the free hours {name} likes {hobby}."),
        *(f"Nothing makes {name} as happy as {hobby}.", f"You often see {name} at {hobby}."),
        *(f"When there is time, {name} turns to {hobby}.", f"{name} has always liked {hobby}.", f"The pastime of {name} is {hobby}."),
        f"On Sundays it is {hobby} for {name}.",
        f"{name} spends the weekend with {hobby}.",
        f"{name} is very fond of {hobby}.",
    )
    question = rng.wording(
        f"What does {name} enjoy doing?",
        f"With what does {name} fill the free time?",
        f"What is fun for {name}?",
        f"Which pastime does {name} have?",
        f"What does {name} do for pleasure?",
        f"What does {name} love doing?",
        *(f"What is the hobby of {name}?", f"Which hobby does {name} have?", f"What does {name} enjoy?"),
        *asking(f"what hobby {name} has"),
        *(f"What hobby does {name} have?", f"What does {name} like doing?", f"How does {name} spend free time?"),
        *(f"What is the pastime of {name}?", f"Tell me the hobby of {name}.", f"{name} has which hobby?"),
        *(f"What does {name} do in the evening for fun?", f"Name the hobby that {name} enjoys."),
        f"What does {name} love to do?",
        f"What is {name}'s hobby?",
    )
    return Statement(sentence, question, f"The hobby of {name} is {hobby}.", hobby)


def _eats(rng: Draw, name: str) -> Statement:
    dish = rng.entry(DISHES)
    sentence = rng.wording(
        f"{name} orders {dish} in every restaurant.",
        f"On the plate of {name} there is always {dish}.",
        f"{name} has loved to eat {dish} since childhood.",
        f"If {name} may choose the food, there will be {dish}.",
        f"{name} asked for {dish} at dinner.",
        f"{name}'s kitchen smells of {dish}.",
        f"For {name}, nothing tastes as good as {dish}.",
        f"{name} would walk far to eat {dish}.",
        f"{name} has no better meal than {dish}.",
        *(f"{name} likes to eat {dish}.", f"The favourite food of {name} is {dish}.", f"For dinner {name} often cooks {dish}."),
        *(f"{name}'s favourite food is {dish}.", f"{name} could eat {dish} every day.", f"Of all foods {name} likes {dish} best."),
        *(f"When {name} is hungry, there has to be {dish}.", f"What {name} loves to eat is {dish}."),
        *(f"{name} is always happy about {dish}.", f"No food is better for {name} than {dish}.", f"{name} eats {dish} with great joy."),
        f"The food that {name} loves is {dish}.",
        f"{name} never says no to {dish}.",
        f"{name} prefers {dish} to all other food.",
    )
    question = rng.wording(
        f"What tastes best to {name}?",
        f"Which food makes {name} happy?",
        f"What does {name} eat with joy?",
        f"Which meal does {name} love?",
        f"What would {name} like for dinner?",
        f"What is the best food for {name}?",
        f"What food does {name} love?",
        *(f"What is the favourite food of {name}?", f"What does {name} like to eat?", f"Which food does {name} like?"),
        *asking(f"what {name} likes to eat"),
        *(f"Which dish does {name} like?", f"What does {name} love to eat?", f"Which food is the favourite of {name}?"),
        *(f"What should I cook for {name}?", f"Tell me the favourite food of {name}.", f"What dish would {name} choose?"),
        f"Name the food that {name} likes.",
        f"What food does {name} like best?",
        f"What is {name}'s favourite food?",
    )
    return Statement(sentence, question, f"{name} likes {dish}.", dish)


def _owns(rng: Draw, name: str) -> Statement:
    item, colour = rng.entry(ITEMS), rng.choice(COLOURS)
    sentence = rng.wording(
        f"{name} takes {a_or_an(colour)} {item} everywhere.",
        f"The {item} that {name} uses is {colour}.",
        f"One can see that the {item} of {name} is {colour}.",
        f"{name} chose {a_or_an(colour)} {item}.",
        f"On the table lies {a_or_an(colour)} {item}, which is {name}'s.",
        f"{name} would not sell the {colour} {item}.",
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
        f"Of what colour is the {item} of {name}?",
        f"The colour of {name}'s {item}?",
        f"{name} has {a_or_an(item)}. Which colour is it?",
        *(f"Which colour is the {item} of {name}?", f"What colour is the {item} of {name}?", f"What is the colour of {name}'s {item}?"),
        *asking(f"what colour the {item} of {name} is"),
        *(f"{name}'s {item} has what colour?", f"The {item} of {name} has which colour?", f"In which colour is the {item} of {name}?"),
        *(f"Tell me the colour of the {item} of {name}.", f"What color is the {item} that {name} has?"),
        *(f"Which colour does {name}'s {item} have?", f"Name the colour of the {item} that belongs to {name}."),
        f"What colour does the {item} of {name} have?",
        f"Which colour is {name}'s {item}?",
    )
    return Statement(sentence, question, f"The {item} of {name} is {colour}.", colour)


def _travels(rng: Draw, name: str) -> Statement:
    city, month = rng.entry(TOWNS), rng.choice(MONTHS)
    sentence = rng.wording(
        f"{name} sets off for {city} in {month}.",
        f"A plane brings {name} to {city} in {month}.",
        f"The holiday of {name} in {month} is in {city}.",
        f"{name} packs for {city}; the journey is in {month}.",
        f"{name} dreams of {city} and goes there in {month}.",
        f"{name} flies to {city} in {month}.",
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
            f"What is the city that {name} travels to?",
            f"Where does the trip take {name}?",
            f"Which place does {name} visit?",
            f"What city will {name} see?",
            f"For which city does {name} leave?",
            f"What is the next city that {name} goes to?",
            *(f"Where does {name} travel?", f"Which city will {name} visit?", f"Where does {name} go on a trip?"),
            *asking(f"where {name} travels"),
            *(f"What city does {name} travel to?", f"Where is {name} going?", f"What is the goal of {name}'s trip?"),
            *(f"{name} travels to which city?", f"Which city does {name} want to see?", f"Where will {name} go?"),
            f"Name the city to which {name} travels.",
            f"To which city does {name} travel?",
            f"What city is {name} going to visit?",
        )
        return Statement(sentence, question, f"{name} travels to {city}.", city)
    question = rng.wording(
        f"When does {name} leave?",
        f"When does {name} set off?",
        f"In which month will {name} be away?",
        f"Which month did {name} choose for the trip?",
        f"What is the month of {name}'s journey?",
        *(f"When does {name} travel?", f"In which month does {name} travel?", f"When is the trip of {name}?"),
        *asking(f"when {name} travels"),
        *(f"During which month is {name} away?", f"When is {name} going on a trip?", f"When will {name} go on the journey?"),
        *(f"{name} travels in which month?", f"When does the trip of {name} take place?", f"In what month does {name} leave?"),
        f"Name the month in which {name} travels.",
        f"In which month is the trip of {name}?",
        f"What month does {name} travel in?",
    )
    return Statement(sentence, question, f"{name} travels in {month}.", month)


def _meets(rng: Draw, name: str) -> Statement:
    day, other = rng.choice(DAYS), person(rng)
    while other == name:
        other = person(rng)
    sentence = rng.wording(
        f"{name} never misses {other} on {day}.",
        f"{day} is the day on which {name} meets {other}.",
        f"{name} and {other} see each other on {day}.",
        f"{name} drinks tea with {other} on {day}.",
        f"{other} and {name} have dinner on {day}.",
        f"{name} has a date with {other} on {day}.",
        f"{name} spends every {day} with {other}.",
        *(f"On {day} {name} meets {other}.", f"{name} has lunch with {other} on {day}.", f"{name} sees {other} every {day}."),
        *(f"{name} meets {other} on {day}.", f"On {day} {name} has a meeting with {other}.", f"{other} visits {name} on {day}."),
        *(f"{name} waits for {other} every {day}.", f"{name} goes to the cinema with {other} on {day}."),
        *(f"On {day}, {other} comes to see {name}.", f"{name} always cooks for {other} on {day}."),
        *(f"The best friend of {name} is {other}, who comes every {day}.", f"Together with {other}, {name} goes swimming on {day}."),
        f"{name} and {other} play chess on {day}.",
        f"Each {day} {name} goes for a walk with {other}.",
    )
    question = rng.wording(
        f"Who is the person that {name} meets?",
        f"Whom will {name} see on {day}?",
        f"Who does {name} see on {day}?",
        f"Whom does {name} meet on {day}?",
        f"Who does {name} spend {day} with?",
        *(f"Whom does {name} meet?", f"Who meets {name}?", f"With whom does {name} spend {day}?"),
        *asking(f"whom {name} meets"),
        *(f"Who is meeting {name}?", f"Whom does {name} see on {day}?", f"With whom does {name} have a meeting?"),
        *(f"{name} meets whom?", f"Who spends time with {name}?", f"With whom is {name} on {day}?"),
        *(f"Name the person that {name} meets.", f"What is the name of the person that {name} meets?"),
        f"Who does {name} meet on {day}?",
        f"Which person does {name} meet?",
    )
    return Statement(sentence, question, f"{name} meets {other}.", other)


OF_PERSONS: tuple[Callable[[Draw, str], Statement], ...] = (_lives, _works, _aged, _enjoys, _eats, _owns, _travels, _meets)
