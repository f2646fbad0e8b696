"""The shapes that skills produce: messages, tools, exchanges and conversations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from .draw import Draw

Role = Literal["system", "user", "assistant", "tool"]
Arguments = Mapping[str, str | int]

LETTER_JOINT = "\u2063"
"""Stands between letters that must not share a token; no text that leaves this package holds it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model makes: the tool's name and its arguments in order."""

    name: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the system turn describes; `parameters` maps names to JSON types."""

    name: str
    description: str
    parameters: Mapping[str, str]

    def schema(self) -> dict[str, object]:
        """The description in the form that chat templates take."""
        properties = {name: {"type": kind} for name, kind in self.parameters.items()}
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": {
                    "type": "object",
                    "properties": properties,
                    "required": list(self.parameters),
                },
            },
        }


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `thinking` and `calls` belong to assistant messages only."""

    role: Role
    content: str
    thinking: str | None = None
    calls: tuple[ToolCall, ...] = ()

    def as_template_input(self) -> dict[str, object]:
        """The message as a chat template takes it."""
        message: dict[str, object] = {"role": self.role, "content": self.content.replace(LETTER_JOINT, "")}
        if self.thinking is not None:
            message["reasoning_content"] = self.thinking
        if self.calls:
            message["tool_calls"] = [
                {
                    "type": "function",
                    "function": {"name": call.name, "arguments": dict(call.arguments)},
                }
                for call in self.calls
            ]
        return message


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one skill says: a user turn up to the assistant's last answer to it.

    `key` names what is asked. Exchanges with equal keys fall on the same side of the
    split into training and validation; an empty key (closed sets such as greetings)
    belongs to training. `system` and `tools` bind the conversation they open.
    `forced_thinking` means that the generation prompt opened the thinking block, so that
    its opening is read and not learnt. `opens` means that it is true only at the start of a
    conversation.
    """

    messages: tuple[Message, ...]
    key: str
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    forced_thinking: bool = False
    opens: bool = False
    verbatim: bool = False
    """Whether the letters of the request matter, so that it stays as it is."""
    expects: str = ""
    """What a right answer holds, where it may say more; empty: the last message itself."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A whole document of the data set.

    With `plain` text it is no conversation but a text that is simply continued.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    forced_thinking: frozenset[int] = field(default_factory=frozenset)
    """Indices of assistant messages whose thinking was opened by the generation prompt."""
    plain: str = ""


Skill = Callable[[Draw], Exchange]


def by_letters(word: str) -> str:
    """A space and the word, each letter a token of its own."""
    return LETTER_JOINT + LETTER_JOINT.join([f" {word[0]}", *word[1:]]) + LETTER_JOINT


def ask(question: str, answer: str, *, key: str = "", expects: str = "", verbatim: bool = False) -> Exchange:
    """A question and its answer. An empty key leaves it to wordings and lexica to keep the splits apart."""
    return Exchange((Message("user", question), Message("assistant", answer)), key, expects=expects, verbatim=verbatim)


def asking(what: str) -> tuple[str, ...]:
    """Ways to ask for what a noun phrase or an indirect question names."""
    return (
        *(f"Can you tell me {what}?", f"Could you tell me {what}?", f"Would you tell me {what}?", f"Please tell me {what}."),
        *(f"I would like to know {what}.", f"I want to know {what}.", f"I need to know {what}."),
        *(f"Do you know {what}?", f"Do you happen to know {what}?"),
    )


def pick(rng: Random, *options: str) -> str:
    """One of the wordings."""
    return rng.choice(options)


def compact_json(value: object) -> str:
    """JSON on one line, in insertion order, characters beyond ASCII as they are."""
    return json.dumps(value, ensure_ascii=False)


def a_or_an(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def join_and(items: list[str]) -> str:
    """A list in prose: `a, b and c`."""
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} and {items[-1]}"
