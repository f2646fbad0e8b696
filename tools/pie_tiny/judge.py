"""Whether an answer is right: one function a rule."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_FEWEST_STORY_SENTENCES = 4
_CALL = re.compile(r"\s*<tool_call>\n(.*)\n</tool_call>\s*", re.DOTALL)
_THOUGHT = re.compile(r"\s*(?:<think>\n)?(.+?)\n</think>\n\n(.+)", re.DOTALL)


def parsed_call(answer: str) -> dict[str, Any] | None:
    """The call that the answer consists of: an object with a name and an object of arguments.

    `None` where it is no such call.
    """
    match = _CALL.fullmatch(answer)
    if match is None:
        return None
    call = _parsed(match[1])
    well_formed = (
        isinstance(call, dict)
        and set(call) == {"name", "arguments"}
        and isinstance(call["name"], str)
        and isinstance(call["arguments"], dict)
    )
    return call if well_formed else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _says(answer: str, expected: str) -> bool:
    """The expected text stands in the answer as whole words, in any case."""
    wanted = re.escape(expected.strip())
    return re.search(rf"(?<!\w){wanted}(?!\w)", answer, re.IGNORECASE) is not None


def _story(answer: str, expected: str) -> bool:
    sentences = re.findall(r"[.!?]\"?(?=\s|$)", answer)
    lines = re.split(r"(?<=[.!?])\s", answer)
    return _says(answer, expected) and len(sentences) >= _FEWEST_STORY_SENTENCES and len(set(lines)) == len(lines)


def _thinks(answer: str, expected: str) -> bool:
    match = _THOUGHT.fullmatch(answer)
    return match is not None and _says(match[2], expected)


_RULES: dict[str, Callable[[str, Any], bool]] = {
    "says": _says,
    "exact": lambda answer, expected: answer.strip() == expected,
    "one of": lambda answer, expected: answer.strip() in expected,
    "json": lambda answer, expected: (found := _parsed(answer)) is not None and found == json.loads(expected),
    "call": lambda answer, expected: parsed_call(answer) == expected,
    "story": _story,
    "thinks": _thinks,
}


def right(rule: str, answer: str, expected: Any) -> bool:
    """Whether the answer (control tokens of thinking and calls shown, the end of turn not) fulfils the rule."""
    return _RULES[rule](answer, expected)
