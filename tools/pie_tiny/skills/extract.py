"""Named fields of a sentence as JSON, and answers from a sentence in plain words."""

from __future__ import annotations

from typing import NamedTuple

from ..conversation import Exchange, ask, compact_json, join_and, pick
from ..draw import Draw
from ..lexicon.pools import DISHES, ITEMS, PASTIMES, PROFESSIONS, TOWNS, coined_word, person
from ..lexicon.things import CATEGORIES, COLOURS, DAYS, MONTHS

Fields = dict[str, str | int]


class _Record(NamedTuple):
    sentence: str
    fields: Fields
    questions: dict[str, tuple[str, str]]
    """For some fields a question and its answer in a sentence."""


def _person(rng: Draw) -> _Record:
    name, city, age = person(rng), rng.entry(TOWNS), rng.randint(7, 90)
    fields: Fields = {"name": name, "age": age, "city": city}
    sentence = rng.wording(
        f"{name} is {age} years old and lives in {city}.",
        f"{name}, aged {age}, comes from {city}.",
        f"In {city} lives {name}, who is {age} years old.",
        f"My friend {name} from {city} is {age}.",
        f"{name} ({age}) lives in {city}.",
        f"A person of {age} years called {name} lives in {city}.",
        f"{name} turned {age} in {city}.",
        f"The home of {name}, who is {age}, is {city}.",
    )
    extra = rng.randrange(4)
    if extra == 0:
        fields["job"] = job = rng.entry(PROFESSIONS)
        sentence += rng.wording(
            f" The job is {job}.",
            f" {name} works as a {job}.",
            f" {name} is a {job}.",
            f" By profession {name} is a {job}.",
            f" {name}'s job is {job}.",
        )
    elif extra == 1:
        fields["hobby"] = hobby = rng.entry(PASTIMES)
        sentence += rng.wording(
            f" {name} likes {hobby}.",
            f" The hobby is {hobby}.",
            f" {name} loves {hobby}.",
            f" {name} enjoys {hobby}.",
            f" The favourite hobby of {name} is {hobby}.",
        )
    questions = {
        "name": ("Who is it about?", f"It is about {name}."),
        "age": ("How old is the person?", f"The person is {age} years old."),
        "city": ("Which city is named?", f"The city is {city}."),
    }
    return _Record(sentence, fields, questions)


def _meeting(rng: Draw) -> _Record:
    name, day, hour, city = person(rng), rng.choice(DAYS), rng.randint(7, 22), rng.entry(TOWNS)
    sentence = rng.wording(
        f"I meet {name} on {day} at {hour} o'clock in {city}.",
        f"On {day} at {hour} o'clock there is a meeting with {name} in {city}.",
        f"{name} comes to {city} on {day} at {hour} o'clock.",
        f"Next {day} {name} waits for me in {city} at {hour} o'clock.",
        f"The appointment with {name} in {city} is on {day} at {hour} o'clock.",
        f"There will be a talk by {name} in {city} on {day}, {hour} o'clock.",
    )
    questions = {
        "name": ("Who is it about?", f"It is about {name}."),
        "day": ("Which day is it?", f"It is on {day}."),
        "hour": ("At what time is it?", f"It is at {hour} o'clock."),
        "city": ("Which city is named?", f"The city is {city}."),
    }
    return _Record(sentence, {"name": name, "day": day, "hour": hour, "city": city}, questions)


def _order(rng: Draw) -> _Record:
    name, count, item, price = person(rng), rng.randint(2, 40), rng.entry(ITEMS), rng.randint(1, 300)
    sentence = rng.wording(
        f"{name} buys {count} {item}s for {price} euros.",
        f"{name} orders {count} {item}s and pays {price} euros.",
        f"For {price} euros {name} gets {count} {item}s.",
        f"{count} {item}s were sold to {name} for {price} euros.",
        f"{name} paid {price} euros for {count} {item}s.",
        f"The bill of {name} says {count} {item}s, {price} euros.",
    )
    questions = {
        "name": ("Who is it about?", f"It is about {name}."),
        "count": ("How many are there?", f"There are {count}."),
        "price": ("What is the price?", f"The price is {price} euros."),
    }
    return _Record(sentence, {"name": name, "item": item, "count": count, "price": price}, questions)


def _trip(rng: Draw) -> _Record:
    start, end = rng.sample(rng.entries(TOWNS), 2)
    vehicle, day, platform = pick(rng, "train", "bus", "plane", "ferry"), rng.choice(DAYS), rng.randint(1, 30)
    sentence = rng.wording(
        f"The {vehicle} from {start} to {end} leaves on {day} from gate {platform}.",
        f"On {day} the {vehicle} goes from {start} to {end}, gate {platform}.",
        f"From {start} to {end} by {vehicle} on {day}: gate {platform}.",
        f"Take the {day} {vehicle} at gate {platform} from {start} to {end}.",
        f"Gate {platform}: {vehicle} to {end}, coming from {start}, on {day}.",
    )
    return _Record(sentence, {"from": start, "to": end, "vehicle": vehicle, "day": day, "gate": platform}, {})


def _lost(rng: Draw) -> _Record:
    name, item, colour, room = person(rng), rng.entry(ITEMS), rng.choice(COLOURS), rng.choice(CATEGORIES["rooms"])
    sentence = rng.wording(
        f"{name} lost a {colour} {item} in the {room}.",
        f"A {colour} {item} of {name} lies in the {room}.",
        f"In the {room} {name} found a {colour} {item}.",
        f"The {colour} {item} in the {room} belongs to {name}.",
        f"{name} left a {item}, which is {colour}, in the {room}.",
    )
    return _Record(sentence, {"owner": name, "item": item, "colour": colour, "room": room}, {})


def _birthday(rng: Draw) -> _Record:
    name, day, month, dish = person(rng), rng.randint(1, 28), rng.choice(MONTHS), rng.entry(DISHES)
    sentence = rng.wording(
        f"The birthday of {name} is on {day} {month}, and there will be {dish}.",
        f"{name} was born on {day} {month} and likes {dish}.",
        f"On {day} {month} {name} invites us to eat {dish}.",
        f"There is {dish} for {name}, whose birthday is on {day} {month}.",
        f"We cook {dish} when {name} has a birthday, on {day} {month}.",
    )
    return _Record(sentence, {"name": name, "day": day, "month": month, "food": dish}, {})


def _contact(rng: Draw) -> _Record:
    name, phone, street, number = person(rng), rng.randint(1000, 99999), f"{coined_word(rng).capitalize()} Street", rng.randint(1, 200)
    sentence = rng.wording(
        f"{name} lives at {street} {number}; the phone number is {phone}.",
        f"Call {name} at {phone} or come to {street} {number}.",
        f"The address of {name} is {street} {number}, telephone {phone}.",
        f"You reach {name} at {phone}. The house is {street} {number}.",
        f"{street} {number} is where {name} lives, phone {phone}.",
    )
    return _Record(sentence, {"name": name, "street": street, "number": number, "phone": phone}, {})


_RECORDS = (_person, _person, _meeting, _order, _order, _trip, _lost, _birthday, _contact)


def extract(rng: Draw) -> Exchange:
    """Some fields of a sentence as a JSON object, in the order asked."""
    record = rng.choice(_RECORDS)(rng)
    names = list(record.fields)
    wanted = rng.sample(names, rng.randint(2, len(names)))
    if rng.random() < 0.6:
        wanted.sort(key=names.index)
    sentence = record.sentence
    asked = join_and(wanted) if rng.random() < 0.75 else ", ".join(wanted)
    question = rng.wording(
        f"Extract {asked} as JSON: {sentence}",
        f"Give me {asked} as JSON. {sentence}",
        f"{sentence} Extract the fields {asked} as JSON.",
        f"{sentence} Return {asked} as JSON.",
        f'Read the sentence and answer in JSON with {asked}: "{sentence}"',
        f"Extract {asked} from this sentence as JSON: {sentence}",
        f"Make a JSON object with {asked} from this text: {sentence}",
        f'"{sentence}" Give {asked} in JSON.',
        f"Find {asked} in this sentence and write JSON: {sentence}",
        f"Put {asked} of this sentence into a JSON object: {sentence}",
        f"{sentence} Please write {asked} down as a JSON object.",
        sealed=(f"Return a JSON object with {asked}: {sentence}", f"From this sentence, extract {asked} in JSON: {sentence}"),
    )
    answer = compact_json({field: record.fields[field] for field in wanted})
    return ask(question, answer, expects=answer)


def read_back(rng: Draw) -> Exchange:
    """One field of a sentence asked in plain words."""
    record = rng.choice((_person, _meeting, _order))(rng)
    question, answer = record.questions[rng.choice(tuple(record.questions))]
    return ask(f"{record.sentence} {question}", answer)
