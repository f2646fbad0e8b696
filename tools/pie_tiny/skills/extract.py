"""Named fields of a sentence as JSON."""

from __future__ import annotations

from random import Random

from ..conversation import Exchange, ask, compact_json, join_and, pick
from ..lexicon.people import HOBBIES, any_name
from ..lexicon.things import CATEGORIES, DAYS
from ..lexicon.world import CITIES


def _person(rng: Random) -> tuple[str, dict[str, str | int]]:
    name, city, job = any_name(rng), rng.choice(CITIES), rng.choice(CATEGORIES["jobs"])
    age, hobby = rng.randint(18, 80), rng.choice(HOBBIES)
    sentence = pick(
        rng,
        f"{name} is {age} years old and lives in {city}.",
        f"{name}, aged {age}, comes from {city}.",
        f"In {city} lives {name}, who is {age} years old.",
        f"My friend {name} from {city} is {age}.",
    )
    fields: dict[str, str | int] = {"name": name, "age": age, "city": city}
    if rng.random() < 0.5:
        extra = pick(rng, "job", "hobby")
        if extra == "job":
            sentence += pick(rng, f" The job is {job}.", f" {name} works as a {job}.")
            fields["job"] = job
        else:
            sentence += pick(rng, f" {name} likes {hobby}.", f" The hobby is {hobby}.")
            fields["hobby"] = hobby
    return sentence, fields


def _meeting(rng: Random) -> tuple[str, dict[str, str | int]]:
    name, day, hour = any_name(rng), rng.choice(DAYS), rng.randint(8, 20)
    city = rng.choice(CITIES)
    sentence = pick(
        rng,
        f"I meet {name} on {day} at {hour} o'clock in {city}.",
        f"On {day} at {hour} o'clock there is a meeting with {name} in {city}.",
        f"{name} comes to {city} on {day} at {hour} o'clock.",
    )
    return sentence, {"name": name, "day": day, "hour": hour, "city": city}


def _order(rng: Random) -> tuple[str, dict[str, str | int]]:
    name, count, item = any_name(rng), rng.randint(2, 20), rng.choice(CATEGORIES["fruits"][:5])
    price = rng.randint(1, 99)
    sentence = pick(
        rng,
        f"{name} buys {count} {item}s for {price} euros.",
        f"{name} orders {count} {item}s and pays {price} euros.",
        f"For {price} euros {name} gets {count} {item}s.",
    )
    return sentence, {"name": name, "item": item, "count": count, "price": price}


def extract(rng: Random) -> Exchange:
    """Some of the fields of a sentence, in the order in which they are asked."""
    sentence, fields = rng.choice((_person, _person, _meeting, _order))(rng)
    wanted = rng.sample(list(fields), rng.randint(1, len(fields)))
    asked = join_and(wanted)
    question = pick(
        rng,
        f"Extract {asked} as JSON: {sentence}",
        f"Give me {asked} as JSON. {sentence}",
        f"{sentence} Extract the fields {asked} as JSON.",
        f"{sentence} Return {asked} as JSON.",
        f'Read the sentence and answer in JSON with {asked}: "{sentence}"',
        f"Extract {asked} from this sentence as JSON: {sentence}",
    )
    return ask(question, compact_json({field: fields[field] for field in wanted}))


def read_back(rng: Random) -> Exchange:
    """One field of a sentence asked in plain words."""
    sentence, fields = rng.choice((_person, _meeting, _order))(rng)
    questions = {
        "name": ("Who is it about?", f"It is about {fields['name']}."),
        "age": ("How old is the person?", f"The person is {fields.get('age')} years old."),
        "city": ("Which city is named?", f"The city is {fields.get('city')}."),
        "day": ("Which day is it?", f"It is on {fields.get('day')}."),
        "hour": ("At what time is it?", f"It is at {fields.get('hour')} o'clock."),
        "count": ("How many are there?", f"There are {fields.get('count')}."),
        "price": ("What is the price?", f"The price is {fields.get('price')} euros."),
    }
    question, answer = questions[rng.choice([field for field in fields if field in questions])]
    return ask(f"{sentence} {question}", answer)
