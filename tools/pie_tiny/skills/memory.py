"""Remembering over turns what the user said about themselves or asked to keep."""

from __future__ import annotations

from typing import NamedTuple

from ..conversation import Exchange, Message, a_or_an, asking, pick
from ..draw import Draw
from ..lexicon.people import PETS
from ..lexicon.pools import DISHES, ITEMS, LETTER_WORDS, PASTIMES, PETS_NAMED, PROFESSIONS, TOWNS
from ..lexicon.things import CATEGORIES, COLOURS
from ..words import coined_word, person
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
        *(f"My name is {name}.", f"I am {name}.", f"I'm {name}."),
        *(f"Hello, my name is {name}.", f"Hi, I'm {name}!", f"Call me {name}."),
        *(f"Hello! I am {name}.", f"You can call me {name}.", f"Everybody calls me {name}."),
        *(f"This is {name}.", f"{name} is my name.", f"The name is {name}."),
        *(f"My parents called me {name}.", f"Please call me {name}.", f"I go by {name}."),
        *(f"Hey, {name} here.", f"Let me introduce myself: I am {name}.", f"My friends call me {name}."),
        *(f"I would like you to call me {name}.", f"Hi! My name is {name}, nice to meet you.", f"Good morning, I am {name}."),
        *(f"You are talking to {name}.", f"It is {name} speaking.", f"Hello, {name} is what people call me."),
        f"People know me as {name}.",
        f"Good evening, my name is {name}.",
    )
    reply = pick(rng, f"Nice to meet you, {name}!", f"Hello {name}! How can I help you?", f"Hello {name}, it is nice to meet you.")
    asked = rng.wording(
        *("What is my name?", "What's my name?", "Do you remember my name?"),
        *("Who am I?", "Tell me my name.", "Do you know my name?"),
        "How am I called?",
        *asking("what my name is"),
        *("My name is what?", "Say my name.", "By what name do you know me?"),
        *("What name did I tell you?", "Please tell me what I am called.", "What do people call me?"),
        *("Have you kept my name in mind?", "Which name is mine?", "Can you say who I am?"),
        "What was my name again?",
        "Which name did I give you?",
    )
    return _Memory(said, reply, asked, f"Your name is {name}.", name)


def _city(rng: Draw) -> _Memory:
    city = rng.entry(TOWNS)
    said = rng.wording(
        *(f"I live in {city}.", f"My home is {city}.", f"I am from {city}."),
        *(f"I come from {city}.", f"My flat is in {city}.", f"My home town is {city}."),
        *(f"I have lived in {city} for years.", f"I was born in {city} and still live there.", f"You can find me in {city}."),
        *(f"{city} is my home.", f"At the moment I live in {city}.", f"I am at home in {city}."),
        *(f"I live with my family in {city}.", f"The city that I live in is {city}.", f"I write to you from {city}, where I live."),
        f"We have a house in {city}.",
        f"I moved to {city}.",
        f"My house stands in {city}.",
    )
    asked = rng.wording(
        *("Where do I live?", "Which city do I live in?", "Where is my home?"),
        "What city am I from?",
        *asking("where I live"),
        *("Where am I at home?", "I live where?", "Have I told you in which city I live?"),
        *("Tell me where I live.", "Which town do I come from?", "Do you remember where I live?"),
        *("Name the city that I live in.", "What is my home town?", "In what town is my home?"),
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
        *(f"I love the {kind} {value} more than any other.", f"{value.capitalize()} is the {kind} that I like most."),
        *(f"When it comes to {a_or_an(kind)}, I choose {value}.", f"No {kind} is better than {value}, I think."),
        *(f"For me the best {kind} is {value}.", f"The best {kind} of all is {value}."),
        f"If I must choose {a_or_an(kind)}, it is {value}.",
        *(f"I prefer {value} to any other {kind}.", f"You should know that my favourite {kind} is {value}."),
        *(f"The {kind} that makes me happy is {value}.", f"As a {kind}, {value} is what I like best."),
        f"Of all {kind}s I like {value} best.",
        f"The {kind} I love most is {value}.",
    )
    asked = rng.wording(
        *(f"What is my favourite {kind}?", f"Which {kind} do I like best?", f"Do you remember my favourite {kind}?"),
        f"Name my favourite {kind}.",
        *asking(f"what my favourite {kind} is"),
        *(f"My favourite {kind} is what?", f"Which {kind} do I love most?", f"Tell me my favourite {kind}."),
        *(f"What {kind} would I choose?", f"Which {kind} did I call the best?", f"Of all {kind}s, which do I like best?"),
        *(f"What did I say about my favourite {kind}?", f"Which is the {kind} that I prefer?", f"What was my favourite {kind} again?"),
        f"Which {kind} is my favourite?",
        f"What {kind} did I say I like best?",
    )
    reply = pick(rng, "That is a good choice.", f"I will remember that you like {value}.", "How nice!")
    return _Memory(said, reply, asked, f"Your favourite {kind} is {value}.", value)


def _pet(rng: Draw) -> _Memory:
    kind, name = rng.choice(PETS), rng.entry(PETS_NAMED)
    if rng.split == "train" and rng.random() < 0.3:
        name = coined_word(rng).capitalize()
    said = rng.wording(
        *(f"I have {a_or_an(kind)} called {name}.", f"My {kind} is called {name}.", f"The name of my {kind} is {name}."),
        *(f"{name} is my {kind}.", f"At home I have {a_or_an(kind)}, and its name is {name}.", f"I named my {kind} {name}."),
        *(f"My {kind} goes by the name {name}.", f"There is {a_or_an(kind)} in my house called {name}."),
        *(f"My pet is {a_or_an(kind)} called {name}.", f"We got {a_or_an(kind)} and named it {name}.", f"I call my {kind} {name}."),
        *(f"The {kind} that lives with me is {name}.", f"My {kind} listens to the name {name}."),
        f"I take care of {a_or_an(kind)}, {name}.",
        f"I own {a_or_an(kind)} with the name {name}.",
        f"We have {a_or_an(kind)} at home, and we call it {name}.",
    )
    asked = rng.wording(
        *(f"What is the name of my {kind}?", f"What is my {kind} called?", f"Do you know the name of my {kind}?"),
        *asking(f"what my {kind} is called"),
        *(f"My {kind} is called what?", f"What do I call my {kind}?", f"Tell me the name of my {kind}."),
        *(f"What name did I give my {kind}?", f"Do you remember the name of my {kind}?", f"By what name do I call my {kind}?"),
        *(f"Say the name of the {kind} I have.", f"What was my {kind} called again?", f"Who is my {kind}?"),
        f"How is my {kind} called?",
        f"Which name does my {kind} have?",
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
        *(f"I have a {who} called {name}.", f"I call my {who} {name}.", f"My {who} is {name}."),
        *(f"Everybody calls my {who} {name}.", f"This is about {name}, who is my {who}.", f"You should know that {name} is my {who}."),
        *(f"As for my {who}, the name is {name}.", f"{name} and I are close, for {name} is my {who}."),
        *(f"Yesterday I saw my {who}, {name}.", f"My {who}, {name}, says hello.", f"I talked to {name}. That is my {who}."),
        f"My {who} has the name {name}.",
        f"I have known {name}, my {who}, for a long time.",
    )
    asked = rng.wording(
        *(f"What is the name of my {who}?", f"What is my {who} called?", f"Who is my {who}?"),
        *asking(f"what my {who} is called"),
        *(f"My {who} is called what?", f"What do I call my {who}?", f"Tell me the name of my {who}."),
        *(f"What name did I say my {who} has?", f"Do you remember the name of my {who}?", f"By what name is my {who} known?"),
        *(f"Say who my {who} is.", f"What was my {who} called again?"),
        f"How is my {who} called?",
        f"Which name does my {who} have?",
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
        *(f"My hobby is {hobby}.", f"I love {hobby}.", f"I enjoy {hobby}."),
        *(f"In my free time I do {hobby}.", f"What I like to do is {hobby}.", f"In the evening I like {hobby}."),
        *(f"I spend my weekends with {hobby}.", f"You should know that my hobby is {hobby}.", f"Nothing is more fun to me than {hobby}."),
        *(f"I am fond of {hobby}.", f"My favourite thing to do is {hobby}.", f"When I have time, it is time for {hobby}."),
        *(f"I have a hobby: {hobby}.", f"For fun I do {hobby}.", f"I could spend all day with {hobby}."),
        f"I like {hobby} very much.",
        f"My pastime is {hobby}.",
    )
    asked = rng.wording(
        *("What is my hobby?", "What do I like to do?", "What do I enjoy?"),
        "Do you remember my hobby?",
        *asking("what my hobby is"),
        *("My hobby is what?", "What do I love doing?", "Tell me my hobby."),
        *("What is it that I like to do?", "How do I spend my free hours?", "What did I say I enjoy?"),
        *("Name my hobby.", "What do I do for fun?", "What is my favourite thing to do?"),
        "Which hobby do I have?",
        "What do I do in my free time?",
    )
    reply = pick(rng, f"{hobby.capitalize()} is a nice hobby.", "That sounds like fun.")
    return _Memory(said, reply, asked, f"Your hobby is {hobby}.", hobby)


def _food(rng: Draw) -> _Memory:
    food = rng.entry(DISHES)
    said = rng.wording(
        *(f"My favourite food is {food}.", f"I like {food} best of all foods.", f"I could eat {food} every day."),
        *(f"I love to eat {food}.", f"What I like to eat best is {food}.", f"When I am hungry, I want {food}."),
        *(f"I never say no to {food}.", f"No food is better than {food}.", f"For me the best food is {food}."),
        *(f"I am very fond of {food}.", f"If I can choose, I eat {food}.", f"You can make me happy with {food}."),
        *(f"For dinner I would always choose {food}.", f"My favourite dish is {food}."),
        f"The food I like best is {food}.",
        f"Nothing tastes better to me than {food}.",
    )
    asked = rng.wording(
        *("What is my favourite food?", "What do I like to eat best?", "Which food do I like best?"),
        *asking("what my favourite food is"),
        *("My favourite food is what?", "What food do I love?", "Tell me my favourite food."),
        *("What would I like for dinner?", "What food did I say I like?", "Do you remember what I like to eat?"),
        *("What dish would make me happy?", "Name the food that I like.", "What was my favourite dish again?"),
        "What do I love to eat?",
        "Which food is my favourite?",
    )
    return _Memory(said, "That sounds tasty.", asked, f"Your favourite food is {food}.", food)


def _job(rng: Draw) -> _Memory:
    job = rng.entry(PROFESSIONS)
    said = rng.wording(
        *(f"I am {a_or_an(job)}.", f"I work as {a_or_an(job)}.", f"My job is {job}."),
        *(f"I make my living as {a_or_an(job)}.", f"I became {a_or_an(job)} after school.", f"My work is that of {a_or_an(job)}."),
        *(f"I have been {a_or_an(job)} for years.", f"You are talking to {a_or_an(job)}.", f"For a living I work as {a_or_an(job)}."),
        *(f"I go to work as {a_or_an(job)}.", f"I have a job as {a_or_an(job)}.", f"My profession is {job}."),
        *(f"At work I am {a_or_an(job)}.", f"Being {a_or_an(job)} is my job."),
        f"I earn my money as {a_or_an(job)}.",
        f"By profession I am {a_or_an(job)}.",
    )
    asked = rng.wording(
        *("What is my job?", "What do I do for a living?", "What is my profession?"),
        *asking("what my job is"),
        *("My job is what?", "Tell me my profession.", "What kind of work do I do?"),
        *("How do I earn my money?", "What did I say about my work?", "As what do I work?"),
        *("Do you remember my job?", "Name my profession.", "What am I by profession?"),
        "What do I work as?",
        "Which job do I have?",
    )
    return _Memory(said, "That is an interesting job.", asked, f"You are {a_or_an(job)}.", job)


def _age(rng: Draw) -> _Memory:
    age = rng.randint(7, 99)
    said = rng.wording(
        *(f"I am {age} years old.", f"My age is {age}.", f"I turned {age} this year."),
        *(f"I have lived for {age} years.", f"I'm {age}.", f"My age in years is {age}."),
        *(f"I am now {age} years of age.", f"This year I became {age}.", f"I was born {age} years ago."),
        *(f"Last week I turned {age}.", f"You are talking to somebody {age} years old.", f"I have reached the age of {age}."),
        *(f"At the moment I am {age} years old.", f"I had my birthday and am {age} now."),
        f"I have just become {age} years old.",
        f"I am {age}, by the way.",
    )
    asked = rng.wording(
        *("How old am I?", "What is my age?", "Do you remember my age?"),
        *asking("how old I am"),
        *("I am how old?", "Tell me my age.", "What age am I?"),
        *("At what age am I now?", "How old did I say I am?", "Say how many years I have lived."),
        *("Do you remember how old I am?", "Have I told you my age? What is it?", "My age is what?"),
        "Which age did I tell you?",
        "How many years old am I?",
    )
    return _Memory(said, "Thank you for telling me.", asked, f"You are {age} years old.", str(age))


def _number(rng: Draw) -> _Memory:
    number = rng.randrange(10000)
    what = pick(rng, "number", "code", "room number", "phone number", "ticket number", "order number")
    said = rng.wording(
        *(f"Remember the {what} {number}.", f"Please remember this {what}: {number}.", f"Keep the {what} {number} in mind."),
        *(f"My {what} is {number}.", f"Here is a {what}: {number}.", f"The {what} is {number}. Please keep it."),
        *(f"Store the {what} {number}.", f"I give you the {what} {number}.", f"Can you remember the {what} {number}?"),
        *(f"{number} is the {what}.", f"Write down the {what} {number}.", f"I want you to remember the {what} {number}."),
        *(f"My new {what} is {number}. Please remember it.", f"This is the {what}: {number}."),
        f"Could you keep the {what} {number} for me?",
        f"Note the {what} {number} for me.",
        f"Do not forget the {what} {number}.",
    )
    asked = rng.wording(
        *(f"Which {what} should you remember?", f"What was the {what}?", f"What is the {what}?"),
        *asking(f"what the {what} is"),
        *(f"Do you still know the {what}?", f"What did I say the {what} is?", f"Say the {what} again."),
        *(f"The {what} was what?", f"I forgot the {what}. What is it?", f"Which is the {what}?"),
        *(f"What {what} did I tell you?", f"Repeat the {what} that I gave you.", f"The {what}, please."),
        f"Tell me the {what}.",
        f"Which {what} did I give you?",
    )
    reply = pick(rng, f"I will remember {number}.", "All right, I will remember it.")
    return _Memory(said, reply, asked, f"The {what} is {number}.", str(number))


def _thing_place(rng: Draw) -> _Memory:
    item, room = rng.entry(ITEMS), rng.choice(CATEGORIES["rooms"])
    said = rng.wording(
        *(f"My {item} is in the {room}.", f"I put my {item} into the {room}.", f"The {item} lies in the {room}."),
        *(f"You find my {item} in the {room}.", f"The {item} that belongs to me is in the {room}.", f"My {item} lies in the {room}."),
        *(f"My {item} stays in the {room}.", f"I have put the {item} in the {room}.", f"In the {room} is my {item}."),
        *(f"I have a {item} in the {room}.", f"You can see my {item} if you go to the {room}.", f"The place of my {item} is the {room}."),
        *(f"I moved my {item} to the {room}.", f"The {room} is where I put my {item}."),
        f"I keep my {item} in the {room}.",
        f"I left my {item} in the {room}.",
    )
    asked = rng.wording(
        *(f"Where is my {item}?", f"In which room is my {item}?", f"Where did I put my {item}?"),
        *asking(f"where my {item} is"),
        *(f"My {item} is where?", f"To which room must I go for my {item}?", f"I am looking for my {item}. Where is it?"),
        *(f"Which room holds my {item}?", f"Where does my {item} lie?", f"Tell me where my {item} is."),
        *(f"Do you remember where my {item} is?", f"Where should I look for my {item}?", f"Name the room in which my {item} is."),
        f"Where can I find my {item}?",
        f"In what room did I leave my {item}?",
    )
    return _Memory(said, "I will remember it.", asked, f"Your {item} is in the {room}.", room)


def _secret(rng: Draw) -> _Memory:
    word = rng.entry(LETTER_WORDS)
    said = rng.wording(
        *(f"The secret word is {word}.", f'Remember the word "{word}".', f"My password is {word}."),
        *(f"The magic word is {word}.", f"Here is the secret word: {word}.", f"The password is {word}."),
        *(f"Our magic word is {word}.", f"Keep this word in mind: {word}.", f"Do not forget the word {word}."),
        *(f"I tell you a secret word, {word}.", f"I want you to remember the word {word}.", f"Let the magic word be {word}."),
        *(f"My secret word is {word}.", f"Can you keep a word for me? It is {word}.", f"You need a password, and that is {word}."),
        f'Please keep the word "{word}" for later.',
        f"Please note the word {word}.",
        f"The word to remember is {word}.",
    )
    what = "password" if "password" in said else "magic word" if "magic" in said else "secret word" if "secret" in said else "word"
    asked = rng.wording(
        *(f"What is the {what}?", f"What was the {what}?", f"Tell me the {what}."),
        *asking(f"what the {what} is"),
        *(f"The {what} is what?", f"Give me the {what}.", f"Say the {what} again."),
        *(f"I forgot the {what}. What is it?", f"What have I told you about the {what}?", f"Have you kept the {what} in mind?"),
        *(f"Which is the {what}?", f"Repeat the {what}.", f"The {what}, please."),
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
    # Of a kind that is drawn twice one is kept: what is asked would have two answers.
    kinds = dict.fromkeys(rng.sample(_KINDS, rng.choices((1, 2, 3), (4, 4, 2))[0]))
    memories = [maker(rng) for maker in kinds]
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
