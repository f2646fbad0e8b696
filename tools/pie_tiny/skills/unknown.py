"""Saying that it does not know: about things nobody taught, made up, or out of reach."""

from __future__ import annotations

from ..conversation import Exchange, ask, pick
from ..draw import Draw
from ..lexicon.pools import LETTER_WORDS
from ..words import coined_word, person

ANSWERS = (
    "I am sorry, I do not know that.",
    "I do not know.",
    "That I do not know, I am sorry.",
    "I am sorry, but I do not know the answer.",
)
"""What it says where it does not know."""


def unknown(rng: Draw) -> Exchange:
    """A question that this model cannot answer."""
    name, somebody = coined_word(rng).capitalize(), person(rng)
    word, year = rng.entry(LETTER_WORDS), rng.randint(1200, 2060)
    question = rng.wording(
        *(f"What is the capital of {name}?", f"Who is {name} {coined_word(rng).capitalize()}?", f"Where is {name}?"),
        *(f"What does {name.lower()} mean?", f"What is a {name.lower()}?", f"What did {somebody} eat yesterday?"),
        *(f"What is {somebody}'s phone number?", f"Where is {somebody} now?", "What is in my pocket?"),
        *(f"Who won the {word} prize in {year}?", f"Who was king of {name} in {year}?", f"How many people live in {name}?"),
        *("What will the weather be tomorrow?", "What will happen next year?", "What time is it?"),
        *("What is today's date?", "What day is it today?", "Which numbers will win the lottery?"),
        *(f"What is the news about {name}?", f"What is the price of a {word} today?", f"Who invented the {name.lower()}?"),
        *(f"What is the name of {somebody}'s dog?", f"How old is {somebody}?", f"Where does {somebody} live?"),
        *(f"What is the favourite food of {somebody}?", f"How high is Mount {name}?", f"When was {name} founded?"),
        *(f"What colour is a {name.lower()}?", f"What language do people speak in {name}?"),
        "What is my favourite colour?" if rng.random() < 0.1 else f"What happened in {name} in {year}?",
        *(f"How much money does {somebody} have?", f"Who wrote the book {name}?", f"Tell me about the history of {name}."),
        *("What did I dream last night?", "What am I thinking of?", "How many people are in this room?"),
        *(f"Can you tell me what the capital of {name} is?", f"Could you tell me who {name} is?", f"I would like to know where {name} is."),
        *(f"Do you know {somebody}?", f"Tell me what {name.lower()} means.", f"Tell me where {somebody} is today."),
        *(f"What does {somebody} think of me?", f"What did {somebody} do last week?", f"When will {somebody} come home?"),
        *(f"Which shop sells the {name.lower()}?", f"How much does a {name.lower()} cost?", f"Which team won the game in {name}?"),
        *(f"What is the password of {somebody}?", f"What is the address of {somebody}?", f"Do you know the birthday of {somebody}?"),
        *(f"What is the best restaurant in {name}?", f"By whom is {name} governed?", f"How far is it to {name}?"),
        *("What did I eat this morning?", "Where did I leave my keys?", "What is my neighbour called?"),
        *("How will the weather be next week?", "Will it rain tomorrow?", "Who will win the next game?"),
        *("What is the time now?", "Please tell me today's date.", "What did the newspaper write this morning?"),
        *(f"What did {somebody} say to {name}?", f"In which year did {name} die?", f'Which author wrote "{name}"?'),
        *(f"Explain what a {name.lower()} does.", f"What is the meaning of the word {name.lower()}?", f"For what is {name} famous?"),
        *(f"Which river is the longest in {name}?", "What am I holding in my hand?", "How many stars are in the sky tonight?"),
        *(f"What colour are the eyes of {somebody}?", f"How tall is {somebody}?"),
        rng.choice(
            (f"Who is the mayor of {name}?", f"What does {somebody} have in the bag?", f"How many letters did {somebody} get today?")
        ),
        rng.choice(
            (
                f"Which river flows through {name}?",
                f"What is the shoe size of {somebody}?",
                f"Who lives next door to {somebody}?",
                "What will I eat next Sunday?",
                f"Who painted {name}?",
            )
        ),
    )
    return ask(question, rng.choice(ANSWERS), expects="not know")


def unclear(rng: Draw) -> Exchange:
    """Words without sense."""
    parts = [coined_word(rng) for _ in range(rng.randint(1, 4))]
    answer = pick(
        rng,
        "I am sorry, I do not understand. Could you say it in other words?",
        "I did not understand that. What would you like to know?",
    )
    return ask(" ".join(parts) + pick(rng, "", "?", "."), answer, expects="understand")
