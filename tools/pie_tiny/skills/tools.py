"""Choosing one of up to four tools, asking for what it must know, calling it, and using its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..capitals import capitalise
from ..conversation import (
    Exchange,
    Message,
    Tool,
    ToolCall,
    ask,
    compact_json,
    pick,
)
from ..draw import Draw
from ..lexicon.pools import ITEMS, LETTER_WORDS, TOWNS
from ..lexicon.things import CATEGORIES, DAYS
from ..words import coined_word, person
from . import vague
from .calls import turns_of_call
from .facts import random_fact
from .vague import Vague

_VAGUE_SHARE = 0.2


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
    vague: Vague | None = None
    """How one asks for it and leaves out the first argument."""


def _weather(rng: Draw) -> _Use:
    city, degrees = rng.entry(TOWNS), rng.randint(-10, 38)
    sky = pick(rng, "sunny", "cloudy", "rainy", "windy", "snowy")
    return _Use(
        rng.wording(
            *(f"What is the weather in {city}?", f"How is the weather in {city} today?", f"Is it raining in {city}?"),
            *(f"Tell me the weather in {city}.", f"How warm is it in {city}?", f"Is it cold in {city}?"),
            *(f"Do I need an umbrella in {city}?", f"Weather in {city}?", f"Can you tell me the weather in {city}?"),
            *(f"Could you check the weather for {city}?", f"I would like to know how the weather is in {city}."),
            *(f"How hot is it in {city} right now?", f"Is the sun shining in {city}?", f"What temperature does {city} have?"),
            *(f"Give me a weather report for {city}.", f"Please look up the weather in {city}.", f"Is it windy in {city}?"),
            *(f"I travel to {city}. How is the weather there?", f"In {city}, what is the weather today?"),
            *(f"What should I wear in {city} today?", f"How many degrees is it in {city}?"),
            *(f"Should I take a scarf to {city}?", f"Is it snowing in {city}?", f"Does it rain in {city}?", f"Is it warm in {city}?"),
            *(f"Are there clouds over {city}?", f"Can I go out without a jacket in {city}?", f"Is today a nice day in {city}?"),
            *(f"Is it a good day for a walk in {city}?", f"Do people freeze in {city} today?", f"Is there a storm in {city}?"),
            f"Will I need a coat in {city} today?",
            f"What is the weather like in {city}?",
            about=("weather", city),
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
            *(f"What time is it in {city}?", f"Tell me the time in {city}.", f"What is the time in {city}?"),
            *(f"How late is it in {city}?", f"Time in {city}?", f"Can you tell me what time it is in {city}?"),
            *(f"Could you check the time in {city}?", f"I would like to know the time in {city}."),
            *(f"What time do the clocks show in {city}?", f"Do you know how late it is in {city}?", f"In {city}, what time is it now?"),
            *(f"Please look up the time in {city}.", f"What's the time in {city} right now?", f"Give me the current time in {city}."),
            *(f"I want to call somebody in {city}. What time is it there?", f"Is it late in {city}? Tell me the time."),
            *(
                f"Is it morning in {city} now?",
                f"Does {city} sleep already? Look at the clock.",
                f"Which time does a watch in {city} show?",
            ),
            f"What hour is it in {city}?",
            f"What is the clock time in {city}?",
            f"What time do they have in {city}?",
            about=("time", city),
        ),
        {"0": city},
        compact_json({"time": time}),
        f"It is {time} in {city}.",
    )


def _product(rng: Draw) -> _Use:
    a, b = rng.randint(11, 999), rng.randint(11, 99)
    return _Use(
        rng.wording(
            *(f"What is {a} times {b}?", f"Multiply {a} by {b}.", f"What is {a} * {b}?"),
            *(f"{a} times {b}", f"{a} * {b}", f"{a} multiplied by {b}?"),
            *(f"Can you multiply {a} by {b}?", f"Could you work out {a} times {b} for me?", f"I would like to know what {a} times {b} is."),
            *(f"Calculate {a} times {b}.", f"What is the product of {a} and {b}?", f"Give me the product of {a} and {b}."),
            *(f"What do you get for {a} times {b}?", f"Please take {a} times {b}.", f"{a} x {b} = ?"),
            *(f"I need the result of {a} * {b}.", f"What is {a} multiplied by {b}?"),
            *(f"Multiply the numbers {a} and {b}, please.", f"Find {a} times {b}.", f"Do you know what {a} * {b} is?"),
            *(f"Multiply: {a}, {b}", f"There are {a} boxes of {b} pens. How many pens is that?"),
            f"Multiply {a} and {b}.",
            f"How much is {a} times {b}?",
        ),
        {"0": a, "1": b},
        str(a * b),
        f"{a} times {b} is {a * b}.",
    )


def _calculator(rng: Draw) -> _Use:
    a, b = rng.randint(100, 9999), rng.randint(100, 9999)
    return _Use(
        rng.wording(
            *(f"Calculate {a} + {b}.", f"What is {a} + {b}?", f"Please work out {a} + {b}."),
            *(f"Can you calculate {a} + {b}?", f"Could you compute {a} + {b}?", f"I would like to know what {a} + {b} is."),
            *(f"{a} + {b}", f"{a} + {b} = ?", f"Compute {a} + {b}."),
            *(f"What does {a} + {b} come to?", f"Give me the result of {a} + {b}.", f"I need {a} + {b}."),
            *(f"Do you know what {a} + {b} makes?", f"Solve {a} + {b}.", f"Find the value of {a} + {b}."),
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
            *(f'Send {name} the message "{text}".', f"Write to {name}: {text}.", f"Tell {name}: {text}."),
            *(f'Let {name} know: "{text}".', f"Send a message to {name}: {text}.", f'Can you write to {name}: "{text}"?'),
            *(f"Could you tell {name} this: {text}.", f'I want {name} to read this: "{text}".', f"Message {name}: {text}."),
            *(f'Message for {name}: "{text}"', f"Drop {name} a line: {text}.", f'Please send {name} a text that says "{text}".'),
            *(f'I would like to send "{text}" to {name}.', f"Inform {name}: {text}.", f'Write "{text}" to {name}.'),
            *(f'{name} should get this message: "{text}".', f"Pass this on to {name}: {text}."),
            f'Send the text "{text}" to {name}.',
            f'Please write {name} this: "{text}".',
            about=("message", f"to {name}", f'"{text}"'),
        ),
        {"0": name, "1": text},
        compact_json({"status": "sent"}),
        f"I have sent your message to {name}.",
    )


def _search(rng: Draw) -> _Use:
    thing = pick(rng, rng.entry(LETTER_WORDS), rng.entry(TOWNS), person(rng))
    count = rng.randint(1, 90)
    return _Use(
        rng.wording(
            *(f"Search for {thing}.", f"Look up {thing}.", f"Find pages about {thing}."),
            *(f"Search the web for {thing}.", f"Can you search for {thing}?", f"Could you find something about {thing}?"),
            *(f"I would like to find pages about {thing}.", f"Find {thing} on the internet.", f"Search: {thing}"),
            *(f"What can you find about {thing}?", f"Please search the web for {thing}.", f"Do a search for {thing}."),
            *(f"I am looking for {thing} on the internet.", f"Are there pages about {thing}?", f"Google {thing}."),
            *(f"Look {thing} up on the internet.", f"Use the web to find {thing}."),
            f"Look for {thing} on the web.",
            f"What does the web say about {thing}?",
            about=("web", thing),
        ),
        {"0": thing},
        compact_json({"results": count}),
        f"I found {count} results for {thing}.",
    )


def _timer(rng: Draw) -> _Use:
    minutes = rng.randint(1, 90)
    return _Use(
        rng.wording(
            *(f"Set a timer for {minutes} minutes.", f"Wake me in {minutes} minutes.", f"Start a timer of {minutes} minutes."),
            *(f"Remind me in {minutes} minutes.", f"Timer for {minutes} minutes, please.", f"Timer: {minutes} minutes"),
            *(f"Can you set a timer for {minutes} minutes?", f"Could you remind me in {minutes} minutes?"),
            *(f"I would like to be woken in {minutes} minutes.", f"Set the clock to ring in {minutes} minutes."),
            *(f"Please start the timer: {minutes} minutes.", f"Let it ring in {minutes} minutes."),
            *(f"Count {minutes} minutes for me and ring.", f"My tea takes {minutes} minutes. Set a timer."),
            *(f"Tell me when {minutes} minutes are over.", f"Give me a signal after {minutes} minutes."),
            f"{minutes} minutes from now, wake me.",
            f"I need a timer of {minutes} minutes.",
            f"Please let a timer run for {minutes} minutes.",
            about=("timer", f"{minutes} minutes"),
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
            *(f"Price of a {item}?", f"Can you tell me what a {item} costs?", f"Could you check the price of a {item}?"),
            *(f"I would like to know what a {item} costs.", f"I want to buy a {item}. What does it cost?"),
            *(f"What do I have to pay for a {item}?", f"How much is a {item}?", f"How much money do I need for a {item}?"),
            *(f"Look up the price of a {item}.", f"Is a {item} expensive? Tell me the price.", f"For how much do you sell a {item}?"),
            *(f"What would a {item} cost me?", f"Give me the price for a {item}."),
            f"Tell me the price of a {item}.",
            f"How many euros is a {item}?",
            about=("price", item),
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
            *(f"Turn {state} the {room} light.", f"Can you turn the light in the {room} {state}?"),
            *(f"Could you switch {state} the light in the {room}?", f"Switch {state} the lamp in the {room}."),
            *(f"Please turn the {room} light {state}.", f"I would like to have the light {state} in the {room}."),
            *(f"Set the light of the {room} to {state}.", f"The light in the {room} should be {state}.", f"{room} light {state}"),
            *(f"In the {room}, switch the light {state}.", f"Would you put the light in the {room} {state}?"),
            *(f"The {room}: light {state}, please.", f"Make sure the light in the {room} is {state}."),
            f"Light {state} in the {room}, please.",
            f"I want the light in the {room} to be {state}.",
            about=("light", room, state),
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
            *(f"Add a meeting with {name} on {day} at {hour} o'clock.", f"Can you plan a meeting with {name} on {day} at {hour} o'clock?"),
            f"Could you add {name} to my calendar on {day} at {hour} o'clock?",
            *(f"I would like to meet {name} on {day} at {hour} o'clock. Please plan it.", f"Meeting with {name}, {day}, {hour} o'clock."),
            f"Book a meeting with {name} for {day} at {hour} o'clock.",
            f"On {day} at {hour} o'clock I have a meeting with {name}. Please save it.",
            *(f"Write into my calendar: {name}, {day}, {hour} o'clock.", f"Please schedule a talk with {name} on {day} at {hour} o'clock."),
            *(f"Make an appointment with {name} for {day}, {hour} o'clock.", f"Keep {day} at {hour} o'clock free for {name}."),
            f"At {hour} o'clock on {day} I see {name}. Add that to the calendar.",
            *(f"Set up a meeting on {day} at {hour} o'clock with {name}.", f"{name} comes on {day} at {hour} o'clock. Plan a meeting."),
            f"Put {name} into my calendar for {day} at {hour} o'clock.",
            f"Note that I see {name} on {day} at {hour} o'clock.",
            about=("calendar", name, f"on {day}", f"at {hour} o'clock"),
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
            *(f"What is {word} in {language}?", f"Translate {word} into {language}.", f"How do you say {word} in {language}?"),
            *(f"Say {word} in {language}.", f"{word} in {language}?", f"Can you translate {word} into {language}?"),
            *(f"Could you tell me what {word} is in {language}?", f"I would like to know the word for {word} in {language}."),
            *(f"Give me the {language} translation of {word}.", f"Translate to {language}: {word}"),
            *(f"Which word do they use for {word} in {language}?", f"What do people call {word} in {language}?"),
            *(f"Please put {word} into {language}.", f"Turn {word} into {language}.", f"I need {word} in {language}."),
            *(f"What does {word} become in {language}?", f"In {language}, what is the word for {word}?"),
            *(f"The {language} for {word}, please.", f"Look up the {language} name of {word}.", f"Say it in {language}: {word}"),
            *(f"I learn {language}. How do I say {word}?", f"Which {language} word means {word}?", f"{language}: {word}"),
            *(f"My friend speaks {language}. What is {word} for her?", f"Find the {language} term for {word}."),
            *(f"What is {word} for those who speak {language}?", f"Put into {language}: {word}", f"Is there a {language} word for {word}?"),
            f"What is the {language} word for {word}?",
            f"How would one say {word} in {language}?",
            about=(word, f"in {language}"),
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
            *(f"Can you check how many {item}s we have?", f"Could you look up the stock of {item}s?"),
            *(f"I would like to know how many {item}s are in stock.", f"Stock of {item}s?", f"How many {item}s do we have?"),
            *(f"Tell me how many {item}s there are in stock.", f"Are there any {item}s in stock?"),
            *(f"How many {item}s are there in the store?", f"Look up how many {item}s are in stock."),
            *(f"Please check whether we have {item}s.", f"Count the {item}s in stock.", f"Give me the number of {item}s in stock."),
            f"A customer asks for {item}s. How many do we have?",
            f"How many {item}s are left in stock?",
            f"What is our stock of {item}s?",
            about=("stock", f"{item}s"),
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
        vague.WEATHER,
    ),
    _Kind(
        ("get_time", "current_time", "clock", "time_in"),
        ("Get the time in a city.", "The current time of a place."),
        (("city|location|place", "string"),),
        _time,
        vague.TIME,
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
        vague.SEARCH,
    ),
    _Kind(
        ("set_timer", "start_timer", "timer"),
        ("Set a timer.", "Starts a timer in minutes."),
        (("minutes|duration", "integer"),),
        _timer,
        vague.TIMER,
    ),
    _Kind(
        ("get_price", "price", "price_of"),
        ("Get the price of an item.", "What an item costs."),
        (("item|product|article", "string"),),
        _price,
        vague.PRICE,
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
        vague.STOCK,
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
    """One to three questions that need one of the tools, called and answered.

    In training the first may leave something out.
    """
    kinds, tools = _choose(rng)
    turns: list[Message] = []
    for _ in range(rng.choices((1, 2, 3), (3, 2, 1))[0]):
        chosen = rng.randrange(len(kinds))
        use, unsaid = kinds[chosen].use(rng), kinds[chosen].vague
        values = list(use.arguments.values())
        call = ToolCall(tools[chosen].name, dict(zip(tools[chosen].parameters, values, strict=True)))
        question = use.question
        # Later on, what is left out is what was spoken of.
        if unsaid and not turns and rng.split == "train" and rng.random() < _VAGUE_SHARE:
            turns += unsaid.turns(rng)
            question = unsaid.reply(rng, values[0])
        turns += turns_of_call(rng, question, call, use.result, use.answer)
    return Exchange(tuple(turns), "", tools=tools, verbatim=True)


def ignore_tools(rng: Draw) -> Exchange:
    """Tools are there, but the question does not need one."""
    _, tools = _choose(rng)
    fact = random_fact(rng)
    plain = ask(fact.question, fact.sentence, expects=fact.expects)
    if rng.split == "train" and rng.random() < 0.3:
        plain = ask(pick(rng, "Hello!", "Hi!"), "Hello! How can I help you?")
    return Exchange(plain.messages, plain.key, tools=tools, expects=plain.expects)
