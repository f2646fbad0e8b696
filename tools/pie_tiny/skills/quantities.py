"""What a thing has: how one asks for it, and how a tool that tells it is described, with its name and without it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..capitals import capitalise
from ..conversation import asking
from ..draw import Draw

_UNNAMED_SHARE = 0.4
_REQUEST_SHARE = 0.4
QUESTIONS_AFTER: Mapping[str, tuple[str, ...]] = {
    "height": ("How high is the {}?", "How tall is the {}?"),
    "weight": ("How heavy is the {}?", "How much does the {} weigh?"),
    "length": ("How long is the {}?",),
    "width": ("How wide is the {}?",),
    "depth": ("How deep is the {}?",),
    "age": ("How old is the {}?",),
    "speed": ("How fast is the {}?", "How fast does the {} go?"),
    "size": ("How large is the {}?", "How big is the {}?"),
    "location": ("Where is the {}?", "Where is the {} now?", "Where can I find the {}?"),
    "address": ("At which address is the {}?",),
    "distance": ("How far away is the {}?", "How far is it to the {}?"),
    "value": ("What is the {} worth?",),
    "price": ("How much does the {} cost?", "What does the {} cost?", "How expensive is the {}?"),
    "population": ("How many people live in the {}?",),
    "loudness": ("How loud is the {}?",),
    "brightness": ("How bright is the {}?",),
    "thickness": ("How thick is the {}?",),
    "strength": ("How strong is the {}?",),
    "duration": ("How long does the {} take?",),
    "page_count": ("How many pages does the {} have?",),
    "waiting_time": ("How long must I wait for the {}?",),
    "delivery_time": ("When will the {} be delivered?",),
    "opening_hour": ("When does the {} open?",),
    "closing_hour": ("When does the {} close?", "Until when is the {} open?"),
    "birth_year": ("In which year was the {} born?",),
    "colour": ("What colour is the {}?",),
    "owner": ("Who owns the {}?", "To whom does the {} belong?"),
    "author": ("Who wrote the {}?",),
    "status": ("How is the {} doing?", "What is happening with the {}?"),
    "material": ("What is the {} made of?",),
    "nickname": ("What do people call the {}?",),
    "captain": ("Who is the captain of the {}?",),
    "manager": ("Who manages the {}?",),
    "teacher": ("Who teaches the {}?",),
    "origin": ("Where does the {} come from?",),
    "flavour": ("How does the {} taste?",),
    "platform": ("From which platform does the {} leave?",),
    "gate": ("From which gate does the {} leave?",),
    "temperature": ("How warm is the {}?", "How hot is the {}?", "How cold is the {}?"),
    "language": ("In which language is the {}?",),
    "capacity": ("How much fits into the {}?",),
    "battery_level": ("How full is the battery of the {}?",),
    "rating": ("How good is the {}?",),
    "salary": ("How much does the {} earn?",),
}
"""Questions after a quantity, most of which do not name it."""
_REQUESTS = (
    *asking("{}"),
    *("Do you have {}?", "Do we know {}?", "Does anybody know {}?", "Did you find {}?", "Have you got {}?", "Can I have {}?"),
    *("Could I get {}, please?", "May I see {}?", "Would you know {}?", "Is {} in your data?", "Are you able to see {}?"),
    *("Any idea about {}?", "What about {}?", "How about {}?", "And {}?", "{}?", "{}!", "I wonder about {}.", "I forgot {}."),
    *("We need {} at once.", "My boss asks for {}.", "A customer wants {}.", "Remind me of {}.", "It is about {}.", "Quickly, {}!"),
)
"""Ways to ask for something that has a name."""
_TELLS = (
    "Tells you {}.",
    "Returns {}.",
    "Gives you {}.",
    "Says {}.",
    "Shows {}.",
    "{}.",
    "Use this to find out {}.",
    "Checks {}.",
    "Learn {}.",
)
"""Ways to describe a tool by the question that it answers."""
_VERBS = {"have": "has", "go": "goes"}
_ALIKE = ("altitude", "fee", "tax", "birthday", "nickname", "title")
"""Quantities that other questions may mean as well."""


def indirect(question: str, one: str) -> str:
    """`How heavy is the {}?` as `how heavy a parcel is`; nothing for a question of another form."""
    is_so = re.fullmatch(r"(.+?) is the \{\}(.*)\?", question)
    does = re.fullmatch(r"(.+?) does the \{\} (\w+)(.*)\?", question)
    who = re.fullmatch(r"(Who \w+) the \{\}\?", question)
    if is_so:
        said = f"{is_so[1]} {one} is{is_so[2]}"
    elif does:
        said = f"{does[1]} {one} {_VERBS.get(does[2], f'{does[2]}s')}{does[3]}"
    else:
        said = f"{who[1]} {one}" if who else ""
    return said[:1].lower() + said[1:]


def request_for(rng: Draw, *phrases: str) -> str:
    """In training one way to ask for what these noun phrases name, or nothing."""
    if rng.split != "train" or rng.random() >= _REQUEST_SHARE:
        return ""
    return capitalise(rng.choice(_REQUESTS).format(rng.choice(phrases)))


def question(rng: Draw, quantity: str, thing: str) -> str:
    """A question after a quantity of the thing, which may name it or not, or nothing."""
    unnamed = rng.choice(QUESTIONS_AFTER.get(quantity, ("",))) if rng.random() < _UNNAMED_SHARE else ""
    said = quantity.replace("_", " ")
    return unnamed.format(thing) or request_for(rng, f"the {said} of the {thing}", f"the {said} of {thing}", f"the {said} for the {thing}")


def may_mean(question: str, quantity: str) -> bool:
    """Whether somebody might think that a question that does not name this quantity is after it."""
    return quantity in _ALIKE or any(form.split(" the {}")[0].lower() in question.lower() for form in QUESTIONS_AFTER.get(quantity, ()))


def description(rng: Draw, quantity: str, one: str) -> str:
    """In training a description that does not name the quantity, or nothing."""
    if rng.split != "train" or rng.random() >= _UNNAMED_SHARE:
        return ""
    said = indirect(rng.choice(QUESTIONS_AFTER.get(quantity, ("",))), one)
    return said and capitalise(rng.choice(_TELLS).format(said))
