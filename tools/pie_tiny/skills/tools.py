"""Choosing one of up to four tools, calling it, and using its answer."""

from __future__ import annotations

from collections.abc import Callable
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
from ..draw import Draw
from ..lexicon.pools import ITEMS, LETTER_WORDS, TOWNS, coined_word, person
from ..lexicon.things import CATEGORIES, DAYS
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
    use: Callable[[Draw], _Use]
    """Makes a use whose arguments are in the order of `parameters`, keyed `0`, `1`, ..."""


def _weather(rng: Draw) -> _Use:
    city, degrees = rng.entry(TOWNS), rng.randint(-10, 38)
    sky = pick(rng, "sunny", "cloudy", "rainy", "windy", "snowy")
    return _Use(
        rng.wording(
            f"What is the weather in {city}?",
            f"How is the weather in {city} today?",
            f"Is it raining in {city}?",
            f"Tell me the weather in {city}.",
            f"How warm is it in {city}?",
            f"Is it cold in {city}?",
            f"Do I need an umbrella in {city}?",
            f"Will I need a coat in {city} today?",
            f"What is the weather like in {city}?",
        ),
        {"0": city},
        compact_json({"temperature": degrees, "sky": sky}),
        f"In {city} it is {sky} and {degrees} degrees.",
    )


def _time(rng: Draw) -> _Use:
    city = rng.entry(TOWNS)
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    return _Use(
        rng.wording(
            *(f"What time is it in {city}?", f"Tell me the time in {city}.", f"What is the time in {city}?", f"How late is it in {city}?"),
            *(f"What is the clock time in {city}?", f"What time do they have in {city}?"),
        ),
        {"0": city},
        compact_json({"time": time}),
        f"It is {time} in {city}.",
    )


def _product(rng: Draw) -> _Use:
    a, b = rng.randint(11, 999), rng.randint(11, 99)
    return _Use(
        rng.wording(
            *(f"What is {a} times {b}?", f"Multiply {a} by {b}.", f"What is {a} * {b}?", f"{a} times {b}"),
            *(f"Multiply {a} and {b}.", f"How much is {a} times {b}?"),
        ),
        {"0": a, "1": b},
        str(a * b),
        f"{a} times {b} is {a * b}.",
    )


def _calculator(rng: Draw) -> _Use:
    a, b = rng.randint(100, 9999), rng.randint(100, 9999)
    return _Use(
        rng.wording(
            f"Calculate {a} + {b}.",
            f"What is {a} + {b}?",
            f"Please work out {a} + {b}.",
            f"How much is {a} + {b}?",
            f"Evaluate {a} + {b} for me.",
        ),
        {"0": f"{a} + {b}"},
        str(a + b),
        f"{a} + {b} = {a + b}.",
    )


def _mail(rng: Draw) -> _Use:
    name, text = (
        person(rng),
        pick(
            rng,
            "I am late",
            "the meeting is cancelled",
            "dinner is ready",
            f"see you on {rng.choice(DAYS)}",
            f"please bring {rng.choice(CATEGORIES['drinks'])}",
            f"I bought the {rng.entry(LETTER_WORDS)}",
        ),
    )
    return _Use(
        rng.wording(
            f'Send {name} the message "{text}".',
            f"Write to {name}: {text}.",
            f"Tell {name}: {text}.",
            f'Let {name} know: "{text}".',
            f'Send the text "{text}" to {name}.',
            f'Please write {name} this: "{text}".',
        ),
        {"0": name, "1": text},
        compact_json({"status": "sent"}),
        pick(rng, f"I have sent your message to {name}.", f"The message to {name} is sent."),
    )


def _search(rng: Draw) -> _Use:
    thing = pick(rng, rng.entry(LETTER_WORDS), rng.entry(TOWNS), person(rng))
    count = rng.randint(1, 90)
    return _Use(
        rng.wording(
            *(f"Search for {thing}.", f"Look up {thing}.", f"Find pages about {thing}.", f"Search the web for {thing}."),
            *(f"Look for {thing} on the web.", f"What does the web say about {thing}?"),
        ),
        {"0": thing},
        compact_json({"results": count}),
        f"I found {count} results for {thing}.",
    )


def _timer(rng: Draw) -> _Use:
    minutes = rng.randint(1, 90)
    return _Use(
        rng.wording(
            f"Set a timer for {minutes} minutes.",
            f"Wake me in {minutes} minutes.",
            f"Start a timer of {minutes} minutes.",
            f"Remind me in {minutes} minutes.",
            f"I need a timer of {minutes} minutes.",
            f"Please let a timer run for {minutes} minutes.",
        ),
        {"0": minutes},
        compact_json({"ok": "yes"}),
        f"The timer is set for {minutes} minutes.",
    )


def _price(rng: Draw) -> _Use:
    item = rng.entry(ITEMS)
    price = rng.randint(1, 500)
    return _Use(
        rng.wording(
            *(f"How much does a {item} cost?", f"What is the price of a {item}?", f"What does a {item} cost?"),
            *(f"Tell me the price of a {item}.", f"How many euros is a {item}?"),
        ),
        {"0": item},
        compact_json({"price": price}),
        f"The price of a {item} is {price} euros.",
    )


def _light(rng: Draw) -> _Use:
    room, state = rng.choice(CATEGORIES["rooms"]), pick(rng, "on", "off")
    return _Use(
        rng.wording(
            *(f"Turn {state} the light in the {room}.", f"Switch the {room} light {state}.", f"Turn the light in the {room} {state}."),
            *(f"Light {state} in the {room}, please.", f"I want the light in the {room} to be {state}."),
        ),
        {"0": room, "1": state},
        compact_json({"ok": "yes"}),
        f"The light in the {room} is {state}.",
    )


def _calendar(rng: Draw) -> _Use:
    name, day, hour = person(rng), rng.choice(DAYS), rng.randint(8, 20)
    return _Use(
        rng.wording(
            f"Plan a meeting with {name} on {day} at {hour} o'clock.",
            f"I meet {name} on {day} at {hour} o'clock. Put it into my calendar.",
            f"Add a meeting with {name} on {day} at {hour} o'clock.",
            f"Put {name} into my calendar for {day} at {hour} o'clock.",
            f"Note that I see {name} on {day} at {hour} o'clock.",
        ),
        {"0": name, "1": day, "2": hour},
        compact_json({"status": "saved"}),
        f"The meeting with {name} on {day} at {hour} o'clock is in your calendar.",
    )


def _translate(rng: Draw) -> _Use:
    word, language = rng.entry(LETTER_WORDS), rng.choice(CATEGORIES["languages"][1:])
    result = coined_word(rng)
    return _Use(
        rng.wording(
            f"What is {word} in {language}?",
            f"Translate {word} into {language}.",
            f"How do you say {word} in {language}?",
            f"Say {word} in {language}.",
            f"What is the {language} word for {word}?",
            f"How would one say {word} in {language}?",
        ),
        {"0": word, "1": language},
        compact_json({"translation": result}),
        f"{capitalise(word)} in {language} is {result}.",
    )


def _stock(rng: Draw) -> _Use:
    item, count = rng.entry(ITEMS), rng.randint(0, 200)
    return _Use(
        rng.wording(
            *(f"How many {item}s are in stock?", f"Check the stock of {item}s.", f"Do we have {item}s in stock?"),
            *(f"How many {item}s are left in stock?", f"What is our stock of {item}s?"),
        ),
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


def _tool(rng: Draw, kind: _Kind) -> Tool:
    names = [rng.choice(choices.split("|")) for choices, _ in kind.parameters]
    types = [json_type for _, json_type in kind.parameters]
    return Tool(
        rng.choice(kind.names),
        rng.choice(kind.description),
        dict(zip(names, types, strict=True)),
    )


def _choose(rng: Draw) -> tuple[list[_Kind], tuple[Tool, ...]]:
    kinds = rng.sample(_KINDS, rng.choices((1, 2, 3, 4), (4, 3, 2, 1))[0])
    return kinds, tuple(_tool(rng, kind) for kind in kinds)


def call_tool(rng: Draw) -> Exchange:
    """One to three questions that need one of the tools, called and answered."""
    kinds, tools = _choose(rng)
    turns: list[Message] = []
    for _ in range(rng.choices((1, 2, 3), (3, 2, 1))[0]):
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
    return Exchange(tuple(turns), "", tools=tools)


def ignore_tools(rng: Draw) -> Exchange:
    """Tools are there, but the question does not need one."""
    _, tools = _choose(rng)
    fact = random_fact(rng)
    plain = ask(fact.question, fact.sentence, expects=fact.expects)
    if rng.split == "train" and rng.random() < 0.3:
        plain = ask(pick(rng, "Hello!", "Hi!"), "Hello! How can I help you?")
    return Exchange(plain.messages, plain.key, tools=tools, expects=plain.expects)
