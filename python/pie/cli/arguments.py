"""Turns what follows `--` on the command line into the one JSON object that a program gets as its input."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from pie.errors import PieError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_BEGINS_VALUE = re.compile(r"-\.?\d")


def read_input(arguments: Sequence[str], input_text: str | None, *, texts: Collection[str] = ()) -> Json:
    """The input that the command line gives a program; the values of the names in `texts` stay as they were typed.

    Text that looks like JSON and is none is taken as text, with a note on stderr.

    Raises PieError `invalid-argument` where both forms were given, or for text that is not UTF-8.
    """
    for text in (*arguments, input_text or ""):
        if not _is_unicode(text):
            raise PieError("invalid-argument", f"the argument {text!r} is not UTF-8; give it in UTF-8, or in a file")
    if input_text is None:
        return parse_arguments(arguments, texts)
    if arguments:
        raise PieError("invalid-argument", f"both --input and arguments were given ({' '.join(arguments)!r}); use one of them")
    value = parse_input(input_text)
    if value == {"input": input_text} and (reason := _mistake_in(input_text)):
        print(f"note: --input begins like JSON and is none ({reason}); the program gets it as a text", file=sys.stderr)
    return value


def parse_value(text: str) -> Json:
    """What one argument stands for: a JSON number, boolean, array or object where it parses as one, else the text itself.

    `null` and quoted text stay text, and so do NaN and the infinities, which are not JSON.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    if value is None or isinstance(value, str) or (isinstance(value, float) and not math.isfinite(value)):
        return text
    return value  # type: ignore[no-any-return]  # json.loads is untyped; every remaining case is Json


def parse_arguments(arguments: Sequence[str], texts: Collection[str] = ()) -> dict[str, Json]:
    """Folds `--key v`, `--key=v`, `-k v` and `--flag` into one object; the rest stands in `_positional`, in order.

    Hyphens in a name become underscores, a flag without a value is true, and a minus followed by a digit begins a value. The
    last of several equal names wins, as with most command lines. The values of the names in `texts` stay as they were typed.
    """

    def value_of(key: str, text: str) -> Json:
        return text if key in texts else parse_value(text)

    named: dict[str, Json] = {}
    positional: list[Json] = []
    rest = iter(_Peekable(arguments))
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not _is_name(argument):
            positional.append(parse_value(argument))
        elif equals:
            named[_key(name)] = value_of(_key(name), value)
        elif rest.has_value():
            named[_key(name)] = value_of(_key(name), next(rest))
        else:
            named[_key(name)] = True
    if positional:
        named["_positional"] = positional
    return named


def parse_input(text: str) -> Json:
    """Launch text as a program sees it: JSON where it parses, else `{"input": text}`."""
    try:
        value: Json = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()  # an escape may stand for half a character, which no program can be given
        return value
    except (ValueError, RecursionError):
        return {"input": text}


class _Peekable(Iterator[str]):
    """The arguments, with a look at whether the next one is a value."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._next_idx = 0

    def __iter__(self) -> _Peekable:
        return self

    def __next__(self) -> str:
        if self._next_idx >= len(self._arguments):
            raise StopIteration
        self._next_idx += 1
        return self._arguments[self._next_idx - 1]

    def has_value(self) -> bool:
        """Whether an argument follows that is no name."""
        return self._next_idx < len(self._arguments) and not _is_name(self._arguments[self._next_idx])


def _mistake_in(text: str) -> str | None:
    """Why a text that begins like an object or an array is no JSON; None for every other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        return f"{error.msg} at character {error.pos + 1}"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it nests too deeply"
    return "it holds half a character"


def _is_unicode(text: str) -> bool:
    """Whether the text can be encoded: bytes of the command line that are not UTF-8 arrive as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_name(argument: str) -> bool:
    return len(argument) > 1 and argument.startswith("-") and not _BEGINS_VALUE.match(argument) and argument != "--"


def _key(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
