"""Sentences that hold fields: who lives where, who bought what, and others, each in many wordings."""

from __future__ import annotations

from typing import NamedTuple

from ..capitals import capitalise
from ..conversation import a_or_an, pick
from ..draw import Draw
from ..lexicon.pools import DISHES, ITEMS, PASTIMES, PETS_NAMED, PROFESSIONS, TOWNS
from ..lexicon.things import CATEGORIES, COLOURS, DAYS, MONTHS
from ..words import coined_word, person

Fields = dict[str, str | int]

_SOLD_SHARE = 0.45
"""Of the orders in training, those put together from parts."""


class Record(NamedTuple):
    """A sentence and the fields that it holds, in their order."""

    sentence: str
    fields: Fields
    answers: dict[str, str]
    """For some fields a sentence that answers when it is asked for in plain words."""


def _person(rng: Draw) -> Record:
    name, city, age = person(rng), rng.entry(TOWNS), rng.randint(7, 90)
    fields: Fields = {"name": name, "age": age, "city": city}
    sentence = rng.wording(
        f"{name} is {age} and at home in {city}.",
        f"You meet {name} in {city}; {name} is {age} years old.",
        f"{city}: {name}, {age} years.",
        f"{name} was born {age} years ago and lives in {city}.",
        f"The {age}-year-old {name} lives in {city}.",
        f"I know {name}, {age}, from {city}.",
        f"{name} celebrated {age} years in {city}.",
        f"{name} came to {city} and is now {age} years old.",
        f"{name} (from {city}) is {age}.",
        f"{age} years old and living in {city}: that is {name}.",
        *(f"{name} is {age} years old and lives in {city}.", f"{name}, aged {age}, comes from {city}."),
        *(f"In {city} lives {name}, who is {age} years old.", f"My friend {name} from {city} is {age}."),
        *(f"{name} ({age}) lives in {city}.", f"A person of {age} years called {name} lives in {city}."),
        *(f"{name} has a home in {city} and is {age} years old.", f"{name}'s age is {age}, and {name}'s city is {city}."),
        *(f"{city} is the city of {name}, aged {age}.", f"At {age}, {name} still lives in {city}."),
        *(f"This is {name} from {city}, {age} years old.", f"{name}, a resident of {city}, is {age}."),
        *(f"We met {name}, {age} years old, in {city}.", f"{name} is from {city} and {age} years of age."),
        *(f"At the age of {age}, {name} moved to {city}.", f"There is somebody called {name} in {city} who is {age}."),
        f"{name} turned {age} in {city}.",
        f"The home of {name}, who is {age}, is {city}.",
    )
    extra = rng.randrange(4)
    if extra == 0:
        fields["job"] = job = rng.entry(PROFESSIONS)
        sentence += rng.wording(
            *(f" {name} is employed as {a_or_an(job)}.", f" In the day {name} is {a_or_an(job)}."),
            *(f" The job is {job}.", f" {name} works as a {job}.", f" {name} is a {job}."),
            *(f" The profession of {name} is {job}.", f" {name} earns money as a {job}.", f" {name} has been a {job} for years."),
            *(f" {name} has the job of a {job}.", f" At work {name} is a {job}.", f" The work of {name}: {job}."),
            f" Someday {name} became a {job}.",
            f" By profession {name} is a {job}.",
            f" {name}'s job is {job}.",
        )
    elif extra == 1:
        fields["hobby"] = hobby = rng.entry(PASTIMES)
        sentence += rng.wording(
            *(f" {name} is happy with {hobby}.", f" For fun {name} chooses {hobby}.", f" {name} would do {hobby} all day."),
            *(f" {name} likes {hobby}.", f" The hobby is {hobby}.", f" {name} loves {hobby}."),
            *(f" In the evening {name} does some {hobby}.", f" {name} spends the free time with {hobby}."),
            *(f" What {name} likes most is {hobby}.", f" You often see {name} at {hobby}."),
            *(f" At the weekend it is {hobby} for {name}.", f" {name} is fond of {hobby}.", f" {name} has a hobby, which is {hobby}."),
            f" {name} enjoys {hobby}.",
            f" The favourite hobby of {name} is {hobby}.",
        )
    answers = {
        "name": f"It is about {name}.",
        "age": f"The person is {age} years old.",
        "city": f"The city is {city}.",
    }
    return Record(sentence, fields, answers)


def _meeting(rng: Draw) -> Record:
    name, day, hour, city = person(rng), rng.choice(DAYS), rng.randint(7, 22), rng.entry(TOWNS)
    sentence = rng.wording(
        f"Do not forget {name} in {city}: {day} at {hour} o'clock.",
        f"I have to be in {city} on {day} at {hour} o'clock to meet {name}.",
        f"{hour} o'clock on {day} is when {name} comes to {city}.",
        f"The concert of {name} in {city} begins at {hour} o'clock on {day}.",
        f"{name} will be in {city} at {hour} o'clock on {day}.",
        f"We have dinner with {name} in {city}, {day} at {hour} o'clock.",
        f"{city} on {day}: {name} waits from {hour} o'clock.",
        *(f"I meet {name} on {day} at {hour} o'clock in {city}.", f"On {day} at {hour} o'clock there is a meeting with {name} in {city}."),
        *(f"{name} comes to {city} on {day} at {hour} o'clock.", f"Next {day} {name} waits for me in {city} at {hour} o'clock."),
        *(f"We will see {name} in {city} on {day} at {hour} o'clock.", f"{name} has a meeting in {city}: {day}, {hour} o'clock."),
        *(f"At {hour} o'clock on {day} I am in {city} with {name}.", f"In {city}, on {day} at {hour} o'clock, {name} gives a concert."),
        *(f"The lunch with {name} is at {hour} o'clock on {day} in {city}.", f"{day}, {hour} o'clock: meet {name} in {city}."),
        *(f"My visit to {name} in {city} begins on {day} at {hour} o'clock.", f"{name} expects me in {city} at {hour} o'clock this {day}."),
        f"Be in {city} at {hour} o'clock on {day}, for {name} is there.",
        f"The appointment with {name} in {city} is on {day} at {hour} o'clock.",
        f"There will be a talk by {name} in {city} on {day}, {hour} o'clock.",
    )
    answers = {
        "name": f"It is about {name}.",
        "day": f"It is on {day}.",
        "hour": f"It is at {hour} o'clock.",
        "city": f"The city is {city}.",
    }
    return Record(sentence, {"name": name, "day": day, "hour": hour, "city": city}, answers)


def _sold(rng: Draw, name: str, things: str, price: int) -> str:
    """Who bought what for how much, put together from parts.

    What is counted stands sometimes before the price and sometimes behind it.
    """
    past = rng.random() < 0.5
    verb = (
        pick(rng, "bought", "got", "ordered", "took", "chose")
        if past
        else pick(rng, "buys", "gets", "orders", "takes", "needs", "wants", "receives")
    )
    cost = pick(rng, "costs", "makes", "is worth", "comes to")
    way = pick(rng, "in the shop", "at the market", "on the internet", "yesterday" if past else "today", "this week", "")
    tail = f" {way}." if way else "."
    return pick(
        rng,
        f"{name} {verb} {things} for {price} euros{tail}",
        f"For {price} euros, {name} {verb} {things}{tail}",
        f"{name} {verb} {things}{tail} That {cost} {price} euros.",
        f"{price} euros is what {name} gave for {things}{tail}",
        f"{name} gave {price} euros and got {things}{tail}",
        f"{name} had {price} euros and spent all of it on {things}{tail}",
        f"{name} needed {price} euros for {things}{tail}",
        f"{things} for {price} euros: {name} {verb} them{tail}",
        f"{name}: {things}, {price} euros.",
        f"{name} handed over {price} euros for {things}{tail}",
        f"The price of {things} was {price} euros, and {name} {verb} them{tail}",
    )


def _order(rng: Draw) -> Record:
    name, count, item, price = person(rng), rng.randint(2, 40), rng.entry(ITEMS), rng.randint(1, 300)
    sentence = rng.wording(
        *(f"{name} buys {count} {item}s for {price} euros.", f"{name} orders {count} {item}s and pays {price} euros."),
        *(f"For {price} euros {name} gets {count} {item}s.", f"{count} {item}s were sold to {name} for {price} euros."),
        *(f"{name} spent {price} euros on {count} {item}s.", f"{count} {item}s for {name} cost {price} euros."),
        *(f"An order of {count} {item}s by {name} costs {price} euros.", f"{name} wants {count} {item}s, which cost {price} euros."),
        *(f"We sent {count} {item}s to {name} and got {price} euros.", f"The {count} {item}s that {name} bought cost {price} euros."),
        *(f"At the shop {name} took {count} {item}s for {price} euros.", f"{name} chose {count} {item}s, and the price was {price} euros."),
        f"{name} sold {count} {item}s for {price} euros.",
        f"{name} paid {price} euros for {count} {item}s.",
        f"The bill of {name} says {count} {item}s, {price} euros.",
    )
    if rng.split == "train" and rng.random() < _SOLD_SHARE:
        sentence = _sold(rng, name, f"{count} {item}s", price)
    answers = {
        "name": f"It is about {name}.",
        "count": f"There are {count}.",
        "price": f"The price is {price} euros.",
    }
    return Record(sentence, {"name": name, "item": item, "count": count, "price": price}, answers)


def _trip(rng: Draw) -> Record:
    start, end = rng.some(TOWNS, 2)
    vehicle, day, platform = pick(rng, "train", "bus", "plane", "ferry"), rng.choice(DAYS), rng.randint(1, 30)
    sentence = rng.wording(
        f"By {vehicle} from {start} to {end}: gate {platform}, {day}.",
        f"This {vehicle} runs from {start} to {end} every {day}. The gate is {platform}.",
        f"Gate {platform} is for the {vehicle} from {start} to {end} on {day}.",
        f"{start} to {end}, {vehicle}, {day}, gate {platform}.",
        f"On {day} I travel from {start} to {end}. My {vehicle} leaves from gate {platform}.",
        f"The {day} {vehicle} from {start} goes to {end} and leaves from gate {platform}.",
        f"Next {day} the {vehicle} brings us from {start} to {end}; it starts at gate {platform}.",
        f"To {end} from {start} you go by {vehicle} on {day}, gate {platform}.",
        f"The {vehicle} from {start} to {end} leaves on {day} from gate {platform}.",
        f"On {day} the {vehicle} goes from {start} to {end}, gate {platform}.",
        f"From {start} to {end} by {vehicle} on {day}: gate {platform}.",
        f"The {day} {vehicle} to {end} starts in {start} at gate {platform}.",
        f"We go by {vehicle} from {start} to {end} on {day}, gate {platform}.",
        f"At gate {platform} waits the {vehicle} from {start} to {end}, on {day}.",
        f"Your {vehicle} from {start} to {end}: {day}, gate {platform}.",
        f"Passengers from {start} to {end} take the {vehicle} on {day} at gate {platform}.",
        f"The {vehicle} departs from {start} on {day}, gate {platform}, and arrives in {end}.",
        f"On {day} a {vehicle} leaves {start} for {end}. Go to gate {platform}.",
        f"I have a {vehicle} ticket from {start} to {end} for {day}, gate {platform}.",
        f"Take the {day} {vehicle} at gate {platform} from {start} to {end}.",
        f"Gate {platform}: {vehicle} to {end}, coming from {start}, on {day}.",
    )
    return Record(sentence, {"from": start, "to": end, "vehicle": vehicle, "day": day, "gate": platform}, {})


def _lost(rng: Draw) -> Record:
    name, item, colour, room = person(rng), rng.entry(ITEMS), rng.choice(COLOURS), rng.choice(CATEGORIES["rooms"])
    sentence = rng.wording(
        f"{name} is looking for {a_or_an(colour)} {item}; it must be in the {room}.",
        f"In the {room} stands the {colour} {item} of {name}.",
        f"Whose is the {colour} {item} in the {room}? It is {name}'s.",
        f"{name} carried {a_or_an(colour)} {item} into the {room}.",
        f"{name}'s {colour} {item} is in the {room}.",
        f"The {room} is where {name} keeps {a_or_an(colour)} {item}.",
        f"{capitalise(a_or_an(colour))} {item} was found in the {room}, and {name} is the owner.",
        f"{name}, your {colour} {item} is in the {room}.",
        *(f"{name} lost a {colour} {item} in the {room}.", f"A {colour} {item} of {name} lies in the {room}."),
        *(f"In the {room} {name} found a {colour} {item}.", f"The {item} that {name} keeps in the {room} is {colour}."),
        *(f"{name} owns a {colour} {item}, which is in the {room}.", f"{name} put a {colour} {item} into the {room}."),
        *(f"There is a {colour} {item} in the {room}. It is {name}'s.", f"Somebody saw the {colour} {item} of {name} in the {room}."),
        *(f"Go to the {room} and bring {name} the {colour} {item}.", f"{name} forgot the {item} in the {room}; it is {colour}."),
        f"{name} has a {item} in the {room}, a {colour} one.",
        f"The {colour} {item} in the {room} belongs to {name}.",
        f"{name} left a {item}, which is {colour}, in the {room}.",
    )
    return Record(sentence, {"owner": name, "item": item, "colour": colour, "room": room}, {})


def _birthday(rng: Draw) -> Record:
    name, day, month, dish = person(rng), rng.randint(1, 28), rng.choice(MONTHS), rng.entry(DISHES)
    sentence = rng.wording(
        f"{name} was born on {day} {month} and eats {dish} on that day.",
        f"There will be {dish} on {day} {month}, when {name} has a birthday.",
        f"{name} cooks {dish} for the birthday on {day} {month}.",
        f"On the birthday of {name}, {day} {month}, everybody eats {dish}.",
        f"Come to {name} on {day} {month} and bring {dish} for the birthday.",
        f"{day} {month}: birthday of {name}, with {dish}.",
        f"Do not forget the birthday of {name} on {day} {month}. Get {dish}!",
        *(f"The birthday of {name} is on {day} {month}, and there will be {dish}.", f"{name} was born on {day} {month} and likes {dish}."),
        *(f"On {day} {month} {name} invites us to eat {dish}.", f"On {day} {month} we celebrate the birthday of {name} with {dish}."),
        *(f"{name}'s birthday, {day} {month}, is a day for {dish}.", f"{name} has a birthday on {day} {month} and wants {dish}."),
        *(f"For the birthday on {day} {month} {name} asked for {dish}.", f"The party of {name} is on {day} {month}. We eat {dish}."),
        f"What {name} serves on {day} {month}, the birthday, is {dish}.",
        f"Every {day} {month}, on the birthday, {name} gets {dish}.",
        f"{day} {month} is when {name} was born. The favourite food is {dish}.",
        f"There is {dish} for {name}, whose birthday is on {day} {month}.",
        f"We cook {dish} when {name} has a birthday, on {day} {month}.",
    )
    return Record(sentence, {"name": name, "day": day, "month": month, "food": dish}, {})


def _contact(rng: Draw) -> Record:
    name, phone, street, number = person(rng), rng.randint(1000, 99999), f"{coined_word(rng).capitalize()} Street", rng.randint(1, 200)
    sentence = rng.wording(
        f"{name} can be reached at {phone} and lives at {street} {number}.",
        f"The phone of {name} is {phone}, the address {street} {number}.",
        f"Go to {street} {number}, where {name} lives, or call {phone}.",
        f"{name} gave me the number {phone} and the address {street} {number}.",
        f"Please call {phone} and ask for {name} of {street} {number}.",
        f"A letter for {name}: {street} {number}. The phone number is {phone}.",
        f"At {street} {number} lives {name}, whose phone number is {phone}.",
        f"My neighbour {name} has phone {phone}; the house is {street} {number}.",
        *(f"{name} lives at {street} {number}; the phone number is {phone}.", f"Call {name} at {phone} or come to {street} {number}."),
        *(f"The address of {name} is {street} {number}, telephone {phone}.", f"{name}: {street} {number}, phone {phone}."),
        *(f"Write to {name}, {street} {number}, or dial {phone}.", f"{name} has the phone number {phone} and lives at {street} {number}."),
        *(f"Phone {phone} is {name} at {street} {number}.", f"You find {name} at {street} {number}. To call, dial {phone}."),
        f"The house of {name} is {street} {number}, and the phone is {phone}.",
        f"Send it to {name} at {street} {number}, phone number {phone}.",
        f"{name} moved to {street} {number} and has the new number {phone}.",
        f"You reach {name} at {phone}. The house is {street} {number}.",
        f"{street} {number} is where {name} lives, phone {phone}.",
    )
    return Record(sentence, {"name": name, "street": street, "number": number, "phone": phone}, {})


def _pet(rng: Draw) -> Record:
    owner, animal, pet, years = person(rng), rng.choice(CATEGORIES["animals"]), rng.entry(PETS_NAMED), rng.randint(2, 20)
    sentence = pick(
        rng,
        f"{owner} has {a_or_an(animal)} called {pet}, which is {years} years old.",
        f"{pet} is the {animal} of {owner} and is {years} years old.",
        f"The {animal} of {owner} is {years} and called {pet}.",
        f"For {years} years {owner} has lived with {pet}, {a_or_an(animal)}.",
        f"{owner}'s {animal} {pet} is {years} years old today.",
        f"With {pet}, {a_or_an(animal)} of {years} years, {owner} goes for a walk.",
        f"At {years} years, {pet} is an old {animal}, says {owner}.",
    )
    return Record(sentence, {"owner": owner, "animal": animal, "pet": pet, "years": years}, {})


def _book(rng: Draw) -> Record:
    title, author = coined_word(rng).capitalize(), person(rng)
    year, pages = rng.randint(1800, 2024), rng.randint(40, 900)
    sentence = pick(
        rng,
        f"{title} is a book by {author} with {pages} pages from the year {year}.",
        f"In {year} {author} wrote {title}, a book of {pages} pages.",
        f"{author} is the author of {title} ({year}, {pages} pages).",
        f"The {pages} pages of {title} were written by {author} in {year}.",
        f"{title}, by {author}: {pages} pages, {year}.",
        f"I am reading {title}. It has {pages} pages, {author} wrote it, and it came out in {year}.",
        f"{author}'s book {title} came out in {year} and has {pages} pages.",
    )
    return Record(sentence, {"title": title, "author": author, "year": year, "pages": pages}, {})


def _offer(rng: Draw) -> Record:
    company, job, city, salary = coined_word(rng).capitalize(), rng.entry(PROFESSIONS), rng.entry(TOWNS), rng.randint(900, 9000)
    sentence = pick(
        rng,
        f"The company {company} in {city} looks for {a_or_an(job)} and pays {salary} euros.",
        f"{company} pays {salary} euros to {a_or_an(job)} in {city}.",
        f"In {city} you can work as {a_or_an(job)} at {company} for {salary} euros.",
        f"Wanted: {job} in {city}, {salary} euros a month, {company}.",
        f"For {salary} euros a month, {company} needs {a_or_an(job)} in {city}.",
        f"{capitalise(a_or_an(job))} gets {salary} euros at {company} in {city}.",
        f"{company} of {city} has work for {a_or_an(job)}. The salary is {salary} euros.",
    )
    return Record(sentence, {"company": company, "job": job, "city": city, "salary": salary}, {})


def _match(rng: Draw) -> Record:
    winner, loser = rng.some(TOWNS, 2)
    player, points, day = person(rng), rng.randint(2, 30), rng.choice(DAYS)
    sentence = pick(
        rng,
        f"On {day} {winner} won against {loser}; {player} made {points} points.",
        f"{winner} beat {loser} on {day}, and {player} made {points} points.",
        f"{player} scored {points} points when {winner} won against {loser} on {day}.",
        f"{loser} lost to {winner} on {day}. The best player was {player} with {points} points.",
        f"With {points} points by {player}, {winner} beat {loser} on {day}.",
        f"{day}: {winner} beats {loser}, {points} points by {player}.",
    )
    return Record(sentence, {"winner": winner, "loser": loser, "player": player, "points": points, "day": day}, {})


_RECORDS = (_person, _person, _meeting, _order, _order, _trip, _lost, _birthday, _contact)
_TAUGHT_RECORDS = (*_RECORDS, _pet, _book, _offer, _match)
"""Training has more kinds than are measured, so that fields are read and not known."""


def any_record(rng: Draw) -> Record:
    """A sentence of any kind that the split may have."""
    return rng.choice(_TAUGHT_RECORDS if rng.split == "train" else _RECORDS)(rng)


def record_with_answers(rng: Draw) -> Record:
    """A sentence whose fields can be asked for in plain words."""
    return rng.choice((_person, _meeting, _order))(rng)
