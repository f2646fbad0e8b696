"""Choosing one of up to four tools, calling it, and using its answer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from ..conversation import (
    Exchange,
    Message,
    Tool,
    ToolCall,
    ask,
    capitalise,
    compact_json,
    pick,
)
from ..lexicon.people import any_name
from ..lexicon.things import CATEGORIES, DAYS, WORDS
from ..lexicon.world import CITIES
from .facts import random_fact


class _Use(NamedTuple):
    """A question that needs a tool, the call, the tool's answer and what to say then."""

    question: str
    arguments: dict[str, str | int]
    result: str
    answer: str


class _Kind(NamedTuple):
    names: tuple[str, ...]
    description: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    """Pairs of several possible names, split by `|`, and a JSON type."""
    use: Callable[[Random], _Use]
    """Makes a use whose arguments are in the order of `parameters`, keyed `0`, `1`, ..."""


def _weather(rng: Random) -> _Use:
    city, degrees = rng.choice(CITIES), rng.randint(-10, 38)
    sky = pick(rng, "sunny", "cloudy", "rainy", "windy", "snowy")
    return _Use(
        pick(
            rng,
            f"What is the weather in {city}?",
            f"How is the weather in {city} today?",
            f"Is it raining in {city}?",
            f"Tell me the weather in {city}.",
            f"How warm is it in {city}?",
        ),
        {"0": city},
        compact_json({"temperature": degrees, "sky": sky}),
        f"In {city} it is {sky} and {degrees} degrees.",
    )


def _time(rng: Random) -> _Use:
    city = rng.choice(CITIES)
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    return _Use(
        pick(rng, f"What time is it in {city}?", f"Tell me the time in {city}."),
        {"0": city},
        compact_json({"time": time}),
        f"It is {time} in {city}.",
    )


def _product(rng: Random) -> _Use:
    a, b = rng.randint(11, 999), rng.randint(11, 99)
    return _Use(
        pick(rng, f"What is {a} times {b}?", f"Multiply {a} by {b}.", f"What is {a} * {b}?"),
        {"0": a, "1": b},
        str(a * b),
        f"{a} times {b} is {a * b}.",
    )


def _calculator(rng: Random) -> _Use:
    a, b = rng.randint(100, 9999), rng.randint(100, 9999)
    return _Use(
        pick(rng, f"Calculate {a} + {b}.", f"What is {a} + {b}?"),
        {"0": f"{a} + {b}"},
        str(a + b),
        f"{a} + {b} = {a + b}.",
    )


def _mail(rng: Random) -> _Use:
    name, text = (
        any_name(rng),
        pick(
            rng,
            "I am late",
            "the meeting is cancelled",
            "dinner is ready",
            f"see you on {rng.choice(DAYS)}",
            f"please bring {rng.choice(CATEGORIES['drinks'])}",
            f"I bought the {rng.choice(WORDS)}",
        ),
    )
    return _Use(
        pick(
            rng,
            f'Send {name} the message "{text}".',
            f"Write to {name}: {text}.",
            f"Tell {name}: {text}.",
        ),
        {"0": name, "1": text},
        compact_json({"status": "sent"}),
        pick(rng, f"I have sent your message to {name}.", f"The message to {name} is sent."),
    )


def _search(rng: Random) -> _Use:
    thing = pick(rng, rng.choice(WORDS), rng.choice(CITIES), any_name(rng))
    count = rng.randint(1, 90)
    return _Use(
        pick(rng, f"Search for {thing}.", f"Look up {thing}.", f"Find pages about {thing}."),
        {"0": thing},
        compact_json({"results": count}),
        f"I found {count} results for {thing}.",
    )


def _timer(rng: Random) -> _Use:
    minutes = rng.randint(1, 90)
    return _Use(
        pick(
            rng,
            f"Set a timer for {minutes} minutes.",
            f"Wake me in {minutes} minutes.",
            f"Start a timer of {minutes} minutes.",
        ),
        {"0": minutes},
        compact_json({"ok": "yes"}),
        f"The timer is set for {minutes} minutes.",
    )


def _price(rng: Random) -> _Use:
    item = rng.choice(CATEGORIES[pick(rng, "fruits", "clothes", "tools", "instruments")])
    price = rng.randint(1, 500)
    return _Use(
        pick(rng, f"How much does a {item} cost?", f"What is the price of a {item}?"),
        {"0": item},
        compact_json({"price": price}),
        f"The price of a {item} is {price} euros.",
    )


def _light(rng: Random) -> _Use:
    room, state = rng.choice(CATEGORIES["rooms"]), pick(rng, "on", "off")
    return _Use(
        pick(rng, f"Turn {state} the light in the {room}.", f"Switch the {room} light {state}."),
        {"0": room, "1": state},
        compact_json({"ok": "yes"}),
        f"The light in the {room} is {state}.",
    )


def _calendar(rng: Random) -> _Use:
    name, day, hour = any_name(rng), rng.choice(DAYS), rng.randint(8, 20)
    return _Use(
        pick(
            rng,
            f"Plan a meeting with {name} on {day} at {hour} o'clock.",
            f"I meet {name} on {day} at {hour} o'clock. Put it into my calendar.",
        ),
        {"0": name, "1": day, "2": hour},
        compact_json({"status": "saved"}),
        f"The meeting with {name} on {day} at {hour} o'clock is in your calendar.",
    )


def _translate(rng: Random) -> _Use:
    word, language = rng.choice(WORDS), rng.choice(CATEGORIES["languages"][1:])
    result = "".join(rng.choice(("ba", "lo", "mi", "ta", "re", "su", "no")) for _ in range(3))
    return _Use(
        pick(
            rng,
            f"What is {word} in {language}?",
            f"Translate {word} into {language}.",
            f"How do you say {word} in {language}?",
        ),
        {"0": word, "1": language},
        compact_json({"translation": result}),
        f"{capitalise(word)} in {language} is {result}.",
    )


def _stock(rng: Random) -> _Use:
    item, count = rng.choice(CATEGORIES["clothes"]), rng.randint(0, 200)
    return _Use(
        pick(rng, f"How many {item}s are in stock?", f"Check the stock of {item}s."),
        {"0": item},
        compact_json({"count": count}),
        f"There are {count} {item}s in stock.",
    )


_KINDS: tuple[_Kind, ...] = (
    _Kind(
        ("get_weather", "weather", "current_weather", "weather_report", "forecast"),
        ("Get the weather of a city.", "The weather in a place.", "Returns the weather."),
        (("city|location|place|town", "string"),),
        _weather,
    ),
    _Kind(
        ("get_time", "current_time", "clock", "time_in"),
        ("Get the time in a city.", "The current time of a place."),
        (("city|location|place", "string"),),
        _time,
    ),
    _Kind(
        ("multiply", "product", "times"),
        ("Multiply two numbers.", "The product of two numbers."),
        (("a|x|first", "integer"), ("b|y|second", "integer")),
        _product,
    ),
    _Kind(
        ("calculator", "calculate", "evaluate"),
        ("Evaluate an expression.", "Calculate a sum."),
        (("expression|formula|input", "string"),),
        _calculator,
    ),
    _Kind(
        ("send_message", "send_mail", "write_to", "message"),
        ("Send a message to a person.", "Sends a text to somebody."),
        (("to|name|recipient", "string"), ("text|message|body", "string")),
        _mail,
    ),
    _Kind(
        ("search", "web_search", "find_pages", "look_up"),
        ("Search the web.", "Find pages about something."),
        (("query|text|term", "string"),),
        _search,
    ),
    _Kind(
        ("set_timer", "start_timer", "timer"),
        ("Set a timer.", "Starts a timer in minutes."),
        (("minutes|duration", "integer"),),
        _timer,
    ),
    _Kind(
        ("get_price", "price", "price_of"),
        ("Get the price of an item.", "What an item costs."),
        (("item|product|article", "string"),),
        _price,
    ),
    _Kind(
        ("set_light", "switch_light", "light"),
        ("Turn a light on or off.", "Switch the light of a room."),
        (("room|place", "string"), ("state|value", "string")),
        _light,
    ),
    _Kind(
        ("add_event", "plan_meeting", "calendar_add"),
        ("Add a meeting to the calendar.", "Plan a meeting."),
        (("name|person|with", "string"), ("day|date", "string"), ("hour|time", "integer")),
        _calendar,
    ),
    _Kind(
        ("translate", "translate_word", "translation"),
        ("Translate a word.", "Translates into another language."),
        (("word|text", "string"), ("language|to", "string")),
        _translate,
    ),
    _Kind(
        ("get_stock", "stock", "check_stock"),
        ("How many items are in stock.", "Check the stock of an item."),
        (("item|product", "string"),),
        _stock,
    ),
)


def _tool(rng: Random, kind: _Kind) -> Tool:
    names = [rng.choice(choices.split("|")) for choices, _ in kind.parameters]
    types = [json_type for _, json_type in kind.parameters]
    return Tool(
        rng.choice(kind.names),
        rng.choice(kind.description),
        dict(zip(names, types, strict=True)),
    )


def _choose(rng: Random) -> tuple[list[_Kind], tuple[Tool, ...]]:
    kinds = rng.sample(_KINDS, rng.choices((1, 2, 3, 4), (4, 3, 2, 1))[0])
    return kinds, tuple(_tool(rng, kind) for kind in kinds)


def call_tool(rng: Random) -> Exchange:
    """One or two questions that need one of the tools, called and answered."""
    kinds, tools = _choose(rng)
    turns: list[Message] = []
    key = ""
    for _ in range(rng.choices((1, 2), (3, 1))[0]):
        chosen = rng.randrange(len(kinds))
        use = kinds[chosen].use(rng)
        values = list(use.arguments.values())
        call = ToolCall(tools[chosen].name, dict(zip(tools[chosen].parameters, values, strict=True)))
        turns += [
            Message("user", use.question),
            Message("assistant", "", calls=(call,)),
            Message("tool", use.result),
            Message("assistant", use.answer),
        ]
        key += use.question
    return Exchange(tuple(turns), key, tools=tools)


def ignore_tools(rng: Random) -> Exchange:
    """Tools are there, but the question does not need one."""
    _, tools = _choose(rng)
    fact = random_fact(rng)
    plain = ask(fact.question, fact.sentence)
    if rng.random() < 0.3:
        plain = ask(pick(rng, "Hello!", "Hi!"), "Hello! How can I help you?", key="")
    return Exchange(plain.messages, plain.key, tools=tools)
