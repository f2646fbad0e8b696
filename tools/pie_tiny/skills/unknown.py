"""Saying that it does not know: about things nobody taught, made up, or out of reach."""

from __future__ import annotations

from random import Random

from ..conversation import Exchange, ask, pick
from ..lexicon.people import NAMES, made_up_name
from ..lexicon.things import WORDS

_ANSWERS = (
    "I am sorry, I do not know that.",
    "I do not know.",
    "That I do not know, I am sorry.",
    "I am sorry, but I do not know the answer.",
)


def unknown(rng: Random) -> Exchange:
    """A question that this model cannot answer."""
    name, person = made_up_name(rng), rng.choice(NAMES)
    word, year = rng.choice(WORDS), rng.randint(1200, 2060)
    question = pick(
        rng,
        f"What is the capital of {name}?",
        f"Who is {name} {made_up_name(rng)}?",
        f"Where is {name}?",
        f"What does {name.lower()} mean?",
        f"What is a {name.lower()}?",
        f"What did {person} eat yesterday?",
        f"What is {person}'s phone number?",
        f"Where is {person} now?",
        "What is in my pocket?",
        f"Who won the {word} prize in {year}?",
        f"Who was king of {name} in {year}?",
        f"How many people live in {name}?",
        "What will the weather be tomorrow?",
        "What will happen next year?",
        "What time is it?",
        "What is today's date?",
        "What day is it today?",
        "Which numbers will win the lottery?",
        f"What is the news about {name}?",
        f"What is the price of a {word} today?",
        f"Who invented the {name.lower()}?",
    )
    return ask(question, rng.choice(_ANSWERS))


def unclear(rng: Random) -> Exchange:
    """Words without sense."""
    parts = [made_up_name(rng).lower() for _ in range(rng.randint(1, 4))]
    answer = pick(
        rng,
        "I am sorry, I do not understand. Could you say it in other words?",
        "I did not understand that. What would you like to know?",
    )
    return ask(" ".join(parts) + pick(rng, "", "?", "."), answer)
