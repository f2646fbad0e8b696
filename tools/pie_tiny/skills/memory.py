"""Remembering over turns what the user said about themselves or asked to keep."""

from __future__ import annotations

from typing import NamedTuple

from ..conversation import Exchange, Message, a_or_an, pick
from ..draw import Draw
from ..lexicon.people import PETS
from ..lexicon.pools import DISHES, ITEMS, LETTER_WORDS, PASTIMES, PETS_NAMED, PROFESSIONS, TOWNS, coined_word, person
from ..lexicon.things import CATEGORIES, COLOURS
from .facts import random_fact


class _Memory(NamedTuple):
    """What the user says, how that is answered, the later question, its answer and what of it counts."""

    said: str
    reply: str
    asked: str
    answer: str
    value: str


def _name(rng: Draw) -> _Memory:
    name = person(rng)
    said = rng.wording(
        *(f"My name is {name}.", f"I am {name}.", f"I'm {name}.", f"Hello, my name is {name}.", f"Hi, I'm {name}!", f"Call me {name}."),
        *(f"Hello! I am {name}.", f"You can call me {name}.", f"Everybody calls me {name}.", f"This is {name}.", f"{name} is my name."),
        *(f"People know me as {name}.", f"Good evening, my name is {name}."),
    )
    reply = pick(rng, f"Nice to meet you, {name}!", f"Hello {name}! How can I help you?", f"Hello {name}, it is nice to meet you.")
    asked = rng.wording(
        *("What is my name?", "What's my name?", "Do you remember my name?", "Who am I?", "Tell me my name.", "Do you know my name?"),
        *("How am I called?", "What was my name again?", "Which name did I give you?"),
    )
    return _Memory(said, reply, asked, f"Your name is {name}.", name)


def _city(rng: Draw) -> _Memory:
    city = rng.entry(TOWNS)
    said = rng.wording(
        *(f"I live in {city}.", f"My home is {city}.", f"I am from {city}.", f"I come from {city}.", f"My flat is in {city}."),
        *(f"I moved to {city}.", f"My house stands in {city}."),
    )
    asked = rng.wording(
        "Where do I live?",
        "Which city do I live in?",
        "Where is my home?",
        "What city am I from?",
        "In which city do I live?",
        "What city is my home?",
    )
    reply = pick(rng, f"{city} is a fine place to live.", f"How nice! I will remember {city}.")
    return _Memory(said, reply, asked, f"You live in {city}.", city)


_FAVOURITES = {
    "colour": COLOURS,
    "animal": CATEGORIES["animals"],
    "season": CATEGORIES["seasons"],
    "sport": CATEGORIES["sports"],
    "fruit": CATEGORIES["fruits"],
    "flower": CATEGORIES["flowers"],
    "instrument": CATEGORIES["instruments"],
    "drink": CATEGORIES["drinks"],
    "month": CATEGORIES["months"],
    "tree": CATEGORIES["trees"],
    "bird": CATEGORIES["birds"],
    "vegetable": CATEGORIES["vegetables"],
}


def _favourite(rng: Draw) -> _Memory:
    kind = rng.choice(tuple(_FAVOURITES))
    value = rng.choice(_FAVOURITES[kind])
    said = rng.wording(
        *(f"My favourite {kind} is {value}.", f"I like the {kind} {value} best.", f"{value.capitalize()} is my favourite {kind}."),
        *(f"Of all {kind}s I like {value} best.", f"The {kind} I love most is {value}."),
    )
    asked = rng.wording(
        *(
            f"What is my favourite {kind}?",
            f"Which {kind} do I like best?",
            f"Do you remember my favourite {kind}?",
            f"Name my favourite {kind}.",
        ),
        *(f"Which {kind} is my favourite?", f"What {kind} did I say I like best?"),
    )
    reply = pick(rng, "That is a good choice.", f"I will remember that you like {value}.", "How nice!")
    return _Memory(said, reply, asked, f"Your favourite {kind} is {value}.", value)


def _pet(rng: Draw) -> _Memory:
    kind, name = rng.choice(PETS), rng.entry(PETS_NAMED)
    if rng.split == "train" and rng.random() < 0.3:
        name = coined_word(rng).capitalize()
    said = rng.wording(
        *(f"I have {a_or_an(kind)} called {name}.", f"My {kind} is called {name}.", f"The name of my {kind} is {name}."),
        *(f"I own {a_or_an(kind)} with the name {name}.", f"We have {a_or_an(kind)} at home, and we call it {name}."),
    )
    asked = rng.wording(
        *(f"What is the name of my {kind}?", f"What is my {kind} called?", f"Do you know the name of my {kind}?"),
        *(f"How is my {kind} called?", f"Which name does my {kind} have?"),
    )
    reply = pick(rng, f"{name} is a good name for {a_or_an(kind)}.", "What a nice pet!")
    return _Memory(said, reply, asked, f"Your {kind} is called {name}.", name)


_RELATIVES = (
    "brother",
    "sister",
    "mother",
    "father",
    "son",
    "daughter",
    "teacher",
    "neighbour",
    "boss",
    "best friend",
    "uncle",
    "aunt",
    "cousin",
    "wife",
    "husband",
)


def _relative(rng: Draw) -> _Memory:
    who, name = rng.choice(_RELATIVES), person(rng)
    said = rng.wording(
        *(f"My {who} is called {name}.", f"The name of my {who} is {name}.", f"{name} is my {who}."),
        *(f"My {who} has the name {name}.", f"I have known {name}, my {who}, for a long time."),
    )
    asked = rng.wording(
        *(f"What is the name of my {who}?", f"What is my {who} called?", f"Who is my {who}?"),
        *(f"How is my {who} called?", f"Which name does my {who} have?"),
    )
    return _Memory(
        said,
        pick(rng, f"I will remember that {name} is your {who}.", "Thank you for telling me."),
        asked,
        f"Your {who} is called {name}.",
        name,
    )


def _hobby(rng: Draw) -> _Memory:
    hobby = rng.entry(PASTIMES)
    said = rng.wording(
        f"My hobby is {hobby}.",
        f"I love {hobby}.",
        f"I enjoy {hobby}.",
        f"In my free time I do {hobby}.",
        f"I like {hobby} very much.",
        f"My pastime is {hobby}.",
    )
    asked = rng.wording(
        "What is my hobby?",
        "What do I like to do?",
        "What do I enjoy?",
        "Do you remember my hobby?",
        "Which hobby do I have?",
        "What do I do in my free time?",
    )
    reply = pick(rng, f"{hobby.capitalize()} is a nice hobby.", "That sounds like fun.")
    return _Memory(said, reply, asked, f"Your hobby is {hobby}.", hobby)


def _food(rng: Draw) -> _Memory:
    food = rng.entry(DISHES)
    said = rng.wording(
        f"My favourite food is {food}.",
        f"I like {food} best of all foods.",
        f"I could eat {food} every day.",
        f"The food I like best is {food}.",
        f"Nothing tastes better to me than {food}.",
    )
    asked = rng.wording(
        "What is my favourite food?",
        "What do I like to eat best?",
        "Which food do I like best?",
        "What do I love to eat?",
        "Which food is my favourite?",
    )
    return _Memory(said, "That sounds tasty.", asked, f"Your favourite food is {food}.", food)


def _job(rng: Draw) -> _Memory:
    job = rng.entry(PROFESSIONS)
    said = rng.wording(
        f"I am {a_or_an(job)}.",
        f"I work as {a_or_an(job)}.",
        f"My job is {job}.",
        f"I earn my money as {a_or_an(job)}.",
        f"By profession I am {a_or_an(job)}.",
    )
    asked = rng.wording(
        "What is my job?", "What do I do for a living?", "What is my profession?", "What do I work as?", "Which job do I have?"
    )
    return _Memory(said, "That is an interesting job.", asked, f"You are {a_or_an(job)}.", job)


def _age(rng: Draw) -> _Memory:
    age = rng.randint(7, 99)
    said = rng.wording(
        f"I am {age} years old.",
        f"My age is {age}.",
        f"I turned {age} this year.",
        f"I have just become {age} years old.",
        f"I am {age}, by the way.",
    )
    asked = rng.wording(
        "How old am I?", "What is my age?", "Do you remember my age?", "Which age did I tell you?", "How many years old am I?"
    )
    return _Memory(said, "Thank you for telling me.", asked, f"You are {age} years old.", str(age))


def _number(rng: Draw) -> _Memory:
    number = rng.randrange(10000)
    what = pick(rng, "number", "code", "room number", "phone number", "ticket number", "order number")
    said = rng.wording(
        *(
            f"Remember the {what} {number}.",
            f"Please remember this {what}: {number}.",
            f"Keep the {what} {number} in mind.",
            f"My {what} is {number}.",
        ),
        *(f"Note the {what} {number} for me.", f"Do not forget the {what} {number}."),
    )
    asked = rng.wording(
        f"Which {what} should you remember?",
        f"What was the {what}?",
        f"What is the {what}?",
        f"Tell me the {what}.",
        f"Which {what} did I give you?",
    )
    reply = pick(rng, f"I will remember {number}.", "All right, I will remember it.")
    return _Memory(said, reply, asked, f"The {what} is {number}.", str(number))


def _thing_place(rng: Draw) -> _Memory:
    item, room = rng.entry(ITEMS), rng.choice(CATEGORIES["rooms"])
    said = rng.wording(
        *(f"My {item} is in the {room}.", f"I put my {item} into the {room}.", f"The {item} lies in the {room}."),
        *(f"I keep my {item} in the {room}.", f"I left my {item} in the {room}."),
    )
    asked = rng.wording(
        f"Where is my {item}?",
        f"In which room is my {item}?",
        f"Where did I put my {item}?",
        f"Where can I find my {item}?",
        f"In what room did I leave my {item}?",
    )
    return _Memory(said, "I will remember it.", asked, f"Your {item} is in the {room}.", room)


def _secret(rng: Draw) -> _Memory:
    word = rng.entry(LETTER_WORDS) if rng.split != "train" or rng.random() < 0.6 else coined_word(rng)
    said = rng.wording(
        *(f"The secret word is {word}.", f'Remember the word "{word}".', f"My password is {word}.", f"The magic word is {word}."),
        *(f"Please note the word {word}.", f"The word to remember is {word}."),
    )
    what = "password" if "password" in said else "magic word" if "magic" in said else "secret word" if "secret" in said else "word"
    asked = rng.wording(
        f"What is the {what}?",
        f"What was the {what}?",
        f"Tell me the {what}.",
        f"Do you remember the {what}?",
        f"Which {what} did I tell you?",
    )
    return _Memory(said, pick(rng, "I will remember it.", "All right, I will remember that word."), asked, f"The {what} is {word}.", word)


_KINDS = (
    _name,
    _name,
    _name,
    _city,
    _favourite,
    _favourite,
    _pet,
    _relative,
    _relative,
    _hobby,
    _food,
    _job,
    _age,
    _number,
    _thing_place,
    _secret,
)


def remember(rng: Draw) -> Exchange:
    """One to three things said, perhaps something else between, then questions back."""
    memories: list[_Memory] = []
    for maker in rng.sample(_KINDS, rng.choices((1, 2, 3), (4, 4, 2))[0]):
        memory = maker(rng)
        if all(memory.asked != other.asked for other in memories):
            memories.append(memory)
    turns: list[Message] = []
    for memory in memories:
        turns += [Message("user", memory.said), Message("assistant", memory.reply)]
    for _ in range(rng.choices((0, 1, 2), (5, 3, 2))[0]):
        other = random_fact(rng)
        turns += [Message("user", other.question), Message("assistant", other.sentence)]
    asked = rng.sample(memories, len(memories) if rng.random() < 0.6 else 1)
    for memory in asked:
        turns += [Message("user", memory.asked), Message("assistant", memory.answer)]
    return Exchange(tuple(turns), "", expects=asked[-1].value)


def remember_at_once(rng: Draw) -> Exchange:
    """Something said and asked in one turn."""
    memory = rng.choice(_KINDS)(rng)
    text = f"{memory.said} {memory.asked}"
    return Exchange((Message("user", text), Message("assistant", memory.answer)), "", expects=memory.value)


def never_said(rng: Draw) -> Exchange:
    """The user asks for something that they have not said."""
    memory = rng.choice(_KINDS)(rng)
    answer = pick(rng, "I do not know. You have not told me.", "You have not told me that yet.")
    turns = (Message("user", memory.asked), Message("assistant", answer))
    return Exchange(turns, "", opens=True)
