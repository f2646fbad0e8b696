"""Remembering over turns what the user said about themselves or asked to keep."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from ..conversation import Exchange, Message, a_or_an, pick
from ..lexicon.people import FOODS, HOBBIES, PET_NAMES, PETS, any_name
from ..lexicon.things import CATEGORIES, COLOURS
from ..lexicon.world import CITIES
from .facts import random_fact


class _Memory(NamedTuple):
    """What the user says, how that is answered, the later question and its answer."""

    said: str
    reply: str
    asked: str
    answer: str


def _name(rng: Random) -> _Memory:
    name = any_name(rng)
    said = pick(
        rng,
        f"My name is {name}.",
        f"I am {name}.",
        f"I'm {name}.",
        f"Hello, my name is {name}.",
        f"Hi, I'm {name}!",
        f"Call me {name}.",
        f"Hello! I am {name}.",
        f"You can call me {name}.",
    )
    reply = pick(
        rng,
        f"Nice to meet you, {name}!",
        f"Hello {name}! How can I help you?",
        f"Hello {name}, it is nice to meet you.",
    )
    asked = pick(
        rng,
        "What is my name?",
        "What's my name?",
        "Do you remember my name?",
        "Who am I?",
        "Tell me my name.",
        "Do you know my name?",
    )
    return _Memory(said, reply, asked, f"Your name is {name}.")


def _city(rng: Random) -> _Memory:
    city = rng.choice(CITIES)
    said = pick(rng, f"I live in {city}.", f"My home is {city}.", f"I am from {city}.")
    asked = pick(rng, "Where do I live?", "Which city do I live in?", "Where is my home?")
    reply = pick(rng, f"{city} is a fine place to live.", f"How nice! I will remember {city}.")
    return _Memory(said, reply, asked, f"You live in {city}.")


def _colour(rng: Random) -> _Memory:
    colour = rng.choice(COLOURS)
    said = pick(rng, f"My favourite colour is {colour}.", f"I like the colour {colour} best.")
    asked = pick(rng, "What is my favourite colour?", "Which colour do I like best?")
    reply = f"{colour.capitalize()} is a lovely colour."
    return _Memory(said, reply, asked, f"Your favourite colour is {colour}.")


def _pet(rng: Random) -> _Memory:
    kind, name = rng.choice(PETS), rng.choice(PET_NAMES)
    said = pick(rng, f"I have {a_or_an(kind)} called {name}.", f"My {kind} is called {name}.")
    asked, answer = rng.choice(
        (
            (f"What is the name of my {kind}?", f"Your {kind} is called {name}."),
            ("What pet do I have?", f"You have {a_or_an(kind)} called {name}."),
            (f"What is my {kind} called?", f"Your {kind} is called {name}."),
        )
    )
    return _Memory(said, f"{name} is a good name for {a_or_an(kind)}.", asked, answer)


def _hobby(rng: Random) -> _Memory:
    hobby = rng.choice(HOBBIES)
    said = pick(rng, f"My hobby is {hobby}.", f"I love {hobby}.", f"I enjoy {hobby}.")
    asked = pick(rng, "What is my hobby?", "What do I like to do?", "What do I enjoy?")
    reply = pick(rng, f"{hobby.capitalize()} is a nice hobby.", "That sounds like fun.")
    return _Memory(said, reply, asked, f"Your hobby is {hobby}.")


def _food(rng: Random) -> _Memory:
    food = rng.choice(FOODS)
    said = pick(rng, f"My favourite food is {food}.", f"I like {food} best of all foods.")
    asked = pick(rng, "What is my favourite food?", "What do I like to eat best?")
    return _Memory(said, "That sounds tasty.", asked, f"Your favourite food is {food}.")


def _job(rng: Random) -> _Memory:
    job = rng.choice(CATEGORIES["jobs"])
    said = pick(rng, f"I am {a_or_an(job)}.", f"I work as {a_or_an(job)}.")
    asked = pick(rng, "What is my job?", "What do I do for a living?", "What is my profession?")
    return _Memory(said, "That is an interesting job.", asked, f"You are {a_or_an(job)}.")


def _age(rng: Random) -> _Memory:
    age = rng.randint(7, 90)
    said = pick(rng, f"I am {age} years old.", f"My age is {age}.")
    asked = pick(rng, "How old am I?", "What is my age?")
    return _Memory(said, "Thank you for telling me.", asked, f"You are {age} years old.")


def _number(rng: Random) -> _Memory:
    number = rng.randrange(1000)
    said = pick(
        rng,
        f"Remember the number {number}.",
        f"Please remember this number: {number}.",
        f"Keep the number {number} in mind.",
    )
    asked = pick(rng, "Which number should you remember?", "What was the number?")
    reply = pick(rng, f"I will remember {number}.", "All right, I will remember it.")
    return _Memory(said, reply, asked, f"The number is {number}.")


_KINDS = (_name, _name, _name, _city, _colour, _pet, _hobby, _food, _job, _age, _number)


def remember(rng: Random) -> Exchange:
    """One or two things said, perhaps something else between, then the question back."""
    memories = [rng.choice(_KINDS)(rng)]
    if rng.random() < 0.4:
        second = rng.choice(_KINDS)(rng)
        if second.reply != memories[0].reply and second.asked != memories[0].asked:
            memories.append(second)
    turns: list[Message] = []
    for memory in memories:
        turns += [Message("user", memory.said), Message("assistant", memory.reply)]
    if rng.random() < 0.5:
        other = random_fact(rng)
        turns += [Message("user", other.question), Message("assistant", other.sentence)]
    asked = memories if rng.random() < 0.5 else memories[:1]
    for memory in asked:
        turns += [Message("user", memory.asked), Message("assistant", memory.answer)]
    return Exchange(tuple(turns), " ".join(memory.said for memory in memories))


def remember_at_once(rng: Random) -> Exchange:
    """Something said and asked in one turn."""
    memory = rng.choice(_KINDS)(rng)
    text = f"{memory.said} {memory.asked}"
    return Exchange((Message("user", text), Message("assistant", memory.answer)), text)


def never_said(rng: Random) -> Exchange:
    """The user asks for something that they have not said."""
    memory = rng.choice(_KINDS[:-1])(rng)
    answer = pick(
        rng,
        "I do not know. You have not told me.",
        "You have not told me that yet.",
    )
    turns = (Message("user", memory.asked), Message("assistant", answer))
    return Exchange(turns, "", opens=True)
