"""Tools put together from parts, so that what is learnt is reading a description, not a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..capitals import capitalise
from ..conversation import Exchange, Message, Tool, ToolCall, a_or_an, ask, compact_json, pick
from ..draw import Draw
from ..lexicon.pools import DEEDS, DISHES, HOLDERS, ITEMS, PROFESSIONS, QUANTITIES, TOWNS
from ..lexicon.things import COLOURS, DAYS
from ..words import coined_word, person
from . import quantities
from .calls import turns_of_call
from .facts import random_fact
from .unknown import unknown

_MOST_TOOLS = 4
_UNKNOWN_SHARE = 0.25
_NAME_STYLES = ("snake", "snake", "snake", "camel", "short", "dotted")


class _Parameter(NamedTuple):
    names: tuple[str, ...]
    json_type: str
    phrase: str
    """How a request says it, with `{}` for the value."""
    value: Callable[[Draw], str | int]


_DETAILS: tuple[_Parameter, ...] = (
    _Parameter(("day", "date", "weekday", "on"), "string", "on {}", lambda rng: rng.choice(DAYS)),
    _Parameter(("hour", "time", "start_hour", "at"), "integer", "at {} o'clock", lambda rng: rng.randint(1, 23)),
    _Parameter(("city", "town", "location", "place"), "string", "in {}", lambda rng: rng.entry(TOWNS)),
    _Parameter(("person", "user", "name", "customer", "recipient"), "string", "for {}", person),
    _Parameter(("colour", "paint", "shade"), "string", "in {}", lambda rng: rng.choice(COLOURS)),
    _Parameter(("minutes", "duration", "length_minutes"), "integer", "for {} minutes", lambda rng: rng.randint(2, 120)),
    _Parameter(("count", "quantity", "amount", "copies"), "integer", "{} times", lambda rng: rng.randint(2, 60)),
    _Parameter(("budget", "max_price", "limit"), "integer", "for at most {} euros", lambda rng: rng.randint(5, 900)),
)
_KEY_NAMES = ("name", "id", "{}", "{}_name", "{}_id", "which", "target")


class _NewTool(NamedTuple):
    tool: Tool
    does: tuple[str, str]
    """What it does to what: no two tools of a conversation do the same."""
    request: Callable[[Draw], tuple[str, dict[str, str | int], str, str]]
    """Makes a request, the arguments, what the tool returns and what to say then."""


def _styled(rng: Draw, *words: str) -> str:
    parts = [part for word in words for part in word.split("_")]
    style = rng.choice(_NAME_STYLES)
    if style == "camel":
        return parts[0] + "".join(part.capitalize() for part in parts[1:])
    if style == "dotted":
        return ".".join(("_".join(parts[1:]) or parts[0], parts[0]))
    if style == "short" and len(parts) > 1:
        return "_".join(parts[1:])
    return "_".join(parts)


def _identity(rng: Draw) -> str | int:
    """What a thing is called: a coined name, a person's name or a number."""
    kind = rng.random()
    if kind < 0.5:
        return coined_word(rng).capitalize()
    if kind < 0.65:
        return f"{coined_word(rng).capitalize()} {coined_word(rng).capitalize()}"
    return rng.randint(1, 9999)


def _shaped(value: str | int, json_type: str) -> str | int:
    return value if json_type == "integer" else str(value)


class _Parts(NamedTuple):
    """What the tools of one conversation are put together from."""

    quantities: Sequence[str]
    holders: Sequence[str]
    deeds: Sequence[str]


def _parts(rng: Draw) -> _Parts:
    """Few of each, or as many as there are tools.

    So tools resemble each other and the whole description must be read.
    """
    count = rng.choice((2, 3, _MOST_TOOLS))
    return _Parts(rng.some(QUANTITIES, count), rng.some(HOLDERS, count), rng.some(DEEDS, count))


def _query(rng: Draw, parts: _Parts) -> _NewTool:
    quantity, holder = rng.choice(parts.quantities), rng.choice(parts.holders)
    said, one = quantity.replace("_", " "), a_or_an(holder)
    parameter = rng.choice(_KEY_NAMES).format(holder)
    json_type = "integer" if parameter.endswith("id") else "string"
    verb = pick(rng, "get", "find", "lookup", "fetch", "read", "query", "show")
    description = rng.wording(
        *(f"Get the {said} of {one}.", f"Returns the {said} of {one}.", f"Find the {said} of {one}."),
        *(f"The {said} of a given {holder}.", f"Look up what {said} {one} has.", f"{capitalise(said)} of {one}."),
        *(f"Gives you the {said} of {one}.", f"Get {one}'s {said}.", f"Fetch the {said} that belongs to {one}."),
        *(f"Read the {said} of one {holder}.", f"Use this to find the {said} of {one}.", f"Query the {said} of any {holder}."),
        *(f"What {said} {one} has.", f"For {one}, returns the {said}.", f"Shows which {said} {one} has."),
        *(f"Takes {one} and returns its {said}.", f"Retrieve {said} by {holder}.", f"Search for the {said} of {one}."),
        f"Tells the {said} of {one}.",
        f"Look up the {said} for {one}.",
        composed=quantities.description(rng, quantity, one),
    )
    parameters = {parameter: json_type}

    def request(rng: Draw) -> tuple[str, dict[str, str | int], str, str]:
        identity: str | int = rng.randint(1, 9999) if json_type == "integer" else _identity(rng)
        question = rng.wording(
            *(f"What is the {said} of the {holder} {identity}?", f"Tell me the {said} of the {holder} {identity}."),
            *(f"I need the {said} of {holder} {identity}.", f"Which {said} does the {holder} {identity} have?"),
            *(f"Find out the {said} of the {holder} {identity}.", f"Give me the {said} of {holder} {identity}."),
            *(f"Please look up the {said} of the {holder} {identity}.", f"Can you find the {said} of the {holder} {identity}?"),
            *(f"Could you tell me the {said} of {holder} {identity}?", f"I would like to know the {said} of the {holder} {identity}."),
            *(f"Would you look up the {said} for {holder} {identity}?", f"{capitalise(said)} of the {holder} {identity}?"),
            *(f"{capitalise(said)} of {holder} {identity}, please.", f"The {holder} {identity}: what is its {said}?"),
            *(f"For the {holder} {identity}, what is the {said}?", f"Please find out which {said} the {holder} {identity} has."),
            *(f"Get the {said} of {holder} {identity}.", f"Show me the {said} of the {holder} {identity}."),
            *(f"What's the {said} of {holder} {identity}?", f"Let me know the {said} of the {holder} {identity}."),
            *(f"I am looking for the {said} of the {holder} {identity}.", f"Look up {holder} {identity} and tell me the {said}."),
            *(f"I have to know which {said} {holder} {identity} has.", f"Is there a {said} for the {holder} {identity}?"),
            *(f"Fetch the {said} for the {holder} {identity}.", f"Here is {one}: {identity}. What is the {said}?"),
            f"Do you know the {said} of the {holder} {identity}?",
            f"Can you check what the {said} of the {holder} {identity} is?",
            sealed=(f"I want to know the {said} of the {holder} {identity}.", f"What {said} does {holder} {identity} have?"),
            commands=(
                *(
                    f"find the {said} of {holder} {identity}",
                    f"look up the {said} of the {holder} {identity}",
                    f"check the {said} of {holder} {identity}",
                ),
                *(f"tell me the {said} of the {holder} {identity}", f"give me the {said} for the {holder} {identity}"),
                *(f"find out which {said} {holder} {identity} has", f"see what the {said} of the {holder} {identity} is"),
            ),
            about=(said, f"{holder} {identity}"),
            composed=quantities.question(rng, quantity, f"{holder} {identity}"),
        )
        result: str | int = rng.randint(2, 999) if rng.random() < 0.6 else coined_word(rng)
        key = pick(rng, quantity, "value", "result")
        returned = str(result) if rng.random() < 0.2 else compact_json({key: result})
        return question, {parameter: _shaped(identity, json_type)}, returned, f"The {said} of the {holder} {identity} is {result}."

    return _NewTool(Tool(_styled(rng, verb, holder, quantity), description, parameters), (quantity, holder), request)


def _deed(rng: Draw, parts: _Parts) -> _NewTool:
    deed, holder = rng.choice(parts.deeds), rng.choice(parts.holders)
    one = a_or_an(holder)
    parameter = rng.choice(_KEY_NAMES).format(holder)
    json_type = "integer" if parameter.endswith("id") else "string"
    details = rng.sample(_DETAILS, rng.choices((0, 1, 2), (4, 4, 2))[0])
    parameters = {parameter: json_type}
    chosen: list[tuple[str, _Parameter]] = []
    for detail in details:
        name = rng.choice(detail.names)
        if name not in parameters and not any(name in other.names or detail.phrase == other.phrase for _, other in chosen):
            parameters[name] = detail.json_type
            chosen.append((name, detail))
    description = rng.wording(
        *(f"{capitalise(deed)} {one}.", f"Lets you {deed} {one}.", f"Use this to {deed} {one}."),
        *(f"{capitalise(deed)} one {holder}.", f"Tool to {deed} {one}.", f"Allows you to {deed} {one}."),
        *(f"Will {deed} the {holder} that you name.", f"Call this if a user wants to {deed} {one}."),
        *(f"For those who want to {deed} {one}.", f"{capitalise(deed)} the {holder} with this name or number."),
        *(f"{capitalise(deed)} any {holder}.", f"With this you can {deed} {one}.", f"A function to {deed} one {holder}."),
        *(f"Given {one}, {deed} it.", f"{capitalise(deed)} the chosen {holder}.", f"Helps to {deed} {one}."),
        f"Can {deed} {one}.",
        f"{capitalise(deed)} a given {holder}.",
    )

    def request(rng: Draw) -> tuple[str, dict[str, str | int], str, str]:
        identity: str | int = rng.randint(1, 9999) if json_type == "integer" else _identity(rng)
        values = [detail.value(rng) for _, detail in chosen]
        phrases = " ".join(detail.phrase.format(value) for (_, detail), value in zip(chosen, values, strict=True))
        tail = f" {phrases}" if phrases else ""
        question = rng.wording(
            *(f"{capitalise(deed)} the {holder} {identity}{tail}.", f"Please {deed} the {holder} {identity}{tail}."),
            *(f"Can you {deed} the {holder} {identity}{tail}?", f"I want to {deed} the {holder} {identity}{tail}."),
            *(f"{capitalise(deed)} {holder} {identity}{tail}, please.", f"Could you {deed} {holder} {identity}{tail}?"),
            *(f"I need you to {deed} the {holder} {identity}{tail}.", f"You should {deed} {holder} {identity}{tail}."),
            *(f"Is it possible to {deed} the {holder} {identity}{tail}?", f"Will you {deed} {holder} {identity}{tail}, please?"),
            *(f"Let us {deed} the {holder} {identity}{tail}.", f"{capitalise(deed)} {holder} {identity}{tail}"),
            *(f"{capitalise(deed)} the {holder} called {identity}{tail}.", f"I have to {deed} the {holder} {identity}{tail}. Please help."),
            *(f"Do me a favour and {deed} the {holder} {identity}{tail}.", f"Make sure to {deed} {holder} {identity}{tail}."),
            f"My boss says that we must {deed} the {holder} {identity}{tail}.",
            *(f"May I ask you to {deed} the {holder} {identity}{tail}?", f"Hello, please {deed} {holder} {identity}{tail}."),
            *(f"Go on and {deed} the {holder} {identity}{tail}.", f"Somebody has to {deed} {holder} {identity}{tail}. Can you?"),
            *(f"The {holder} {identity}: please {deed} it{tail}.", f"Now {deed} the {holder} {identity}{tail}."),
            f"You may {deed} the {holder} {identity}{tail} now.",
            f"Would you {deed} the {holder} {identity}{tail}?",
            f"It is time to {deed} the {holder} {identity}{tail}.",
            sealed=(f"I would like you to {deed} the {holder} {identity}{tail}.", f"We need to {deed} {holder} {identity}{tail}."),
            commands=(f"{deed} the {holder} {identity}{tail}", f"{deed} {holder} {identity}{tail}"),
            about=(f"{deed} {holder} {identity}{tail}",),
        )
        arguments: dict[str, str | int] = {parameter: _shaped(identity, json_type)}
        arguments |= {name: value for (name, _), value in zip(chosen, values, strict=True)}
        returned = rng.choice(('{"status": "ok"}', '{"ok": true}', "done", '{"result": "success"}'))
        return question, arguments, returned, f"Done: {deed} the {holder} {identity}."

    words = (deed, holder) if rng.random() < 0.8 else (deed, "the", holder)
    return _NewTool(Tool(_styled(rng, *words), description, parameters), (deed, holder), request)


def _listing(rng: Draw, parts: _Parts) -> _NewTool:
    """A tool whose argument is a thing, a dish or a profession named in the request."""
    pool, holder = rng.choice(((ITEMS, "item"), (DISHES, "dish"), (PROFESSIONS, "profession")))
    quantity = rng.choice(parts.quantities)
    said, one = quantity.replace("_", " "), a_or_an(holder)
    parameter = rng.choice((holder, "name", "query", "term", "kind"))
    description = rng.wording(
        *(f"Get the {said} of {one}.", f"Returns the {said} for {one}.", f"The {said} of the {holder}."),
        *(f"Returns which {said} {one} has.", f"Look up {one} and get the {said}.", f"Use this for the {said} of {one}."),
        *(f"Gives the {said} that belongs to {one}.", f"Shows the {said} of any {holder}.", f"Query the {said} for one {holder}."),
        *(f"Takes {one}, returns the {said}.", f"Fetch {one}'s {said}.", f"What {said} {one} has."),
        f"Read the {said} for {one}.",
        f"{capitalise(said)} by {holder}.",
        f"Find out the {said} of {one}.",
    )

    def request(rng: Draw) -> tuple[str, dict[str, str | int], str, str]:
        value = rng.entry(pool)
        question = rng.wording(
            *(f"What is the {said} of {value}?", f"Tell me the {said} for {value}.", f"I need to know the {said} of {value}."),
            *(f"Can you tell me the {said} of {value}?", f"Please find the {said} for {value}."),
            *(f"I would like to know the {said} of {value}.", f"{capitalise(said)} of {value}?", f"Which {said} does one use for {value}?"),
            *(f"Give me the {said} of {value}.", f"Look up the {said} for {value}.", f"Show me the {said} for {value}."),
            *(f"What's the {said} for {value}?", f"For {value}, what is the {said}?", f"Do you know the {said} of {value}?"),
            *(f"Would you check the {said} of {value}?", f"Find out which {said} belongs to {value}."),
            *(f"Get the {said} for {value}, please.", f"I want the {said} of {value}.", f"Is there a {said} for {value}?"),
            f"Which {said} is right for {value}?",
            f"Could you look up the {said} of {value}?",
            commands=(
                *(f"find the {said} of {value}", f"look up the {said} for {value}", f"tell me the {said} of {value}"),
                *(f"find out which {said} {value} has", f"check which {said} is the right one for {value}"),
            ),
            about=(said, value),
            composed=quantities.request_for(rng, f"the {said} of {value}"),
        )
        result = rng.randint(2, 999) if rng.random() < 0.6 else coined_word(rng)
        return question, {parameter: value}, compact_json({quantity: result}), f"The {said} of {value} is {result}."

    name = _styled(rng, pick(rng, "get", "find", "fetch"), holder, quantity)
    # Of what kind a thing is that nobody has heard of, a request does not tell: one such tool for each quantity.
    return _NewTool(Tool(name, description, {parameter: "string"}), (quantity, ""), request)


def _tools(rng: Draw) -> list[_NewTool]:
    made: list[_NewTool] = []
    parts = _parts(rng)
    wanted = rng.choices(range(1, _MOST_TOOLS + 1), (4, 4, 3, 2) if rng.split == "train" else (3, 3, 2, 2))[0]
    while len(made) < wanted:
        new = rng.choices((_query, _deed, _listing), (5, 5, 2))[0](rng, parts)
        if all(new.tool.name != other.tool.name and new.does != other.does for other in made):
            made.append(new)
    return made


def call_new_tool(rng: Draw) -> Exchange:
    """One to four requests that each need one of the tools."""
    made = _tools(rng)
    turns: list[Message] = []
    for _ in range(rng.choices((1, 2, 3, 4, 5), (2, 3, 3, 2, 2))[0]):
        chosen = rng.choice(made)
        question, arguments, returned, answer = chosen.request(rng)
        turns += turns_of_call(rng, question, ToolCall(chosen.tool.name, arguments), returned, answer)
    return Exchange(tuple(turns), "", tools=tuple(new.tool for new in made), verbatim=True)


_CHOOSE_EACH = (
    *("Which of these functions does each request need?", "Name the function for each request.", "Match each request with a function."),
    *("For every request, say which function one has to call.", "Which function would you call for each of these?"),
    *("Give me the name of the right function for each request.", "Route these requests to functions."),
)
_CHOOSE_ONE = ("Which function is for this: {}", "{} Which function do I need?", "Name the function for this request: {}")
_CHOOSE_NEXT = (*_CHOOSE_ONE, "{}", "Request: {}")


def choose_new_tool(rng: Draw) -> Exchange:
    """Which of the tools each of many requests needs, without the calls: many choices for little text."""
    made = _tools(rng)
    while len(made) < 2:
        made = _tools(rng)
    tools = "\n".join(compact_json({"name": new.tool.name, "description": new.tool.description}) for new in made)
    chosen = rng.choices(made, k=rng.randint(3, 8))
    requests = [new.request(rng)[0] for new in chosen]
    if rng.random() < 0.5:
        numbered = "\n".join(f"{number}. {request}" for number, request in enumerate(requests, 1))
        names = "\n".join(f"{number}. {new.tool.name}" for number, new in enumerate(chosen, 1))
        return ask(f"{rng.choice(_CHOOSE_EACH)}\n{tools}\n\n{numbered}", names, verbatim=True)
    asked = rng.choice(_CHOOSE_NEXT)
    turns: list[Message] = []
    for new, request in zip(chosen, requests, strict=True):
        question = asked.format(request)
        if not turns:
            question = f"These are my functions:\n{tools}\n\n{rng.choice(_CHOOSE_ONE).format(request)}"
        turns += [Message("user", question), Message("assistant", new.tool.name)]
    return Exchange(tuple(turns), "", verbatim=True)


def _may_answer(new: _NewTool, question: str) -> bool:
    """Whether somebody might think that the question is for this tool."""
    quantity, holder = new.does
    asked = f" {question.lower()} "
    names = any(part and f" {part.replace('_', ' ')}" in asked for part in (quantity, holder))
    return names or quantities.may_mean(question, quantity)


def ignore_new_tools(rng: Draw) -> Exchange:
    """Tools are there, but the question does not need one, or nobody can answer it."""
    if rng.split == "train" and rng.random() < _UNKNOWN_SHARE:
        while True:
            asked, made = unknown(rng), _tools(rng)
            if not any(_may_answer(new, asked.messages[0].content) for new in made):
                return Exchange(asked.messages, "", tools=tuple(new.tool for new in made), expects=asked.expects)
    fact = random_fact(rng)
    turns = (Message("user", fact.question), Message("assistant", fact.sentence))
    return Exchange(turns, "", tools=tuple(new.tool for new in _tools(rng)), expects=fact.expects)
