"""Turns what follows `--` on the command line into the one JSON object that a program gets as its input."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from pie.errors import PieError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_INPUT_BYTES = 64 << 20
"""What `--input @FILE` and `--input -` read at most; the engine takes `limits.message_bytes`, which is less."""
WORDS = "_positional"
"""The name of what has no name on the command line."""
STDIN = "-"
"""What `--input` is given to read standard input."""

END = "--"
"""What ends the options of a command; all that follows is for the program."""

_MAX_SHOWN_CHARS = 80
_BEGINS_VALUE = re.compile(r"-\.?\d")


def read_input(arguments: Sequence[str], input_text: str | None, *, texts: Collection[str] = ()) -> Json:
    """The input that the command line gives a program; the values of the names in `texts` stay as they were typed.

    `input_text` may be `@FILE`, or `-` for standard input, whose text it stands for then.

    Raises PieError `invalid-argument` where both forms were given, for text that is not UTF-8, for a file that cannot
    be read or is too long, and as `parse_input`.
    """
    for text in (*arguments, input_text or ""):
        if not _is_unicode(text):
            raise PieError("invalid-argument", f"the argument {text!r} is not UTF-8; give it in UTF-8, or in a file")
    if input_text is None:
        return parse_arguments(arguments, texts)
    if arguments:
        raise PieError("invalid-argument", f"both --input and arguments were given ({' '.join(arguments)!r}); use one of them")
    if input_text == STDIN or input_text.startswith("@"):
        return parse_input(_read(input_text), given_as=input_text)
    return parse_input(input_text)


def _read(source: str) -> str:
    """The text of a file, `@FILE`, or of standard input, `-`; of the end of its last line nothing is kept."""
    try:
        if source == STDIN:
            if sys.stdin is None:
                raise _unreadable(source, "standard input is closed")
            content = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            path = _path(source)
            if path.exists() and not path.is_file():
                raise _unreadable(source, "it is not a regular file")
            with path.open("rb") as file:
                content = file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:  # also a NUL in the path, and the home folder of nobody
        raise _unreadable(source, getattr(error, "strerror", None) or str(error)) from error
    if len(content) > MAX_INPUT_BYTES:
        raise PieError("invalid-argument", f"--input {source!r} has more than {MAX_INPUT_BYTES} bytes, the most of an input; give less")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PieError("invalid-argument", f"--input {source!r} is not UTF-8 at byte {error.start}; save it as UTF-8") from error
    return text.removesuffix("\n").removesuffix("\r")


def input_file(input_text: str | None) -> Path | None:
    """The file that `--input @FILE` names; None where it names none."""
    if input_text is None or not input_text.startswith("@"):
        return None
    try:
        return _path(input_text)
    except RuntimeError:
        return None  # the home folder of nobody, as reading it says


def _path(source: str) -> Path:
    return Path(source[1:]).expanduser()


def _unreadable(source: str, reason: str) -> PieError:
    remedy = f"check the path, or give the text itself in quotes: --input '\"{source}\"'" if source != STDIN else "give --input @FILE"
    return PieError("invalid-argument", f"--input {source!r} cannot be read: {reason}; {remedy}")


def parse_value(text: str) -> Json:
    """What one argument stands for.

    It is a JSON number, boolean, array or object where it parses as one, else the text itself.

    `null` and quoted text stay text, and so do NaN and the infinities, which are not JSON, and numbers that none can
    be.
    """
    try:
        value = _parse(text)
    except (ValueError, RecursionError):
        return text
    return text if value is None or isinstance(value, str) else value


def parse_arguments(arguments: Sequence[str], texts: Collection[str] = ()) -> dict[str, Json]:
    """Folds `--key v`, `--key=v`, `-k v` and `--flag` into one object; the rest stands in `_positional`, in order.

    Hyphens in a name become underscores, a flag without a value is true, and a minus followed by a digit begins a
    value. The last of several equal names wins, as with most command lines. The values of the names in `texts` stay as
    they were typed.
    """

    def value_of(key: str, text: str) -> Json:
        return text if key in texts else parse_value(text)

    named: dict[str, Json] = {}
    positional: list[Json] = []
    for key, text in _pairs(arguments):
        if key is None:
            positional.append(parse_value(text or ""))
        else:
            named[key] = True if text is None else value_of(key, text)
    if positional:
        named[WORDS] = positional
    return named


def doubts(arguments: Sequence[str], texts: Collection[str] = ()) -> list[str]:
    """What was probably meant otherwise than `parse_arguments` takes it: a sentence each, for people."""
    found = []
    for key, text in _pairs(arguments):
        place = "a word without a name" if key is None else f"the value of {key!r}"
        if text == END:
            found.append(f"{END!r} behind the first {END!r} is {place}; leave it out: all that follows the first one is for the program")
        elif text is not None and key not in texts and (reason := _out_of_range(text)) is not None:
            found.append(f"{reason}, so that {place} stays a text; give a smaller one")
    return found


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """The arguments, as key and text: without a key what has no name, without a text a flag without a value."""
    rest = _Peekable(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not _is_name(argument):
            yield None, argument
        elif equals:
            yield _key(name), value
        else:
            yield _key(name), next(rest) if rest.has_value() else None


def parse_input(text: str, *, given_as: str | None = None) -> Json:
    """Launch text as a program sees it: JSON where it parses, else `{"input": text}`.

    Errors name the text, or what it was given as.

    Raises PieError `invalid-argument`, with the place, for what begins like an object or an array and is none, and for
    a number that is out of range: it was meant to be JSON, and as a text it would be something else.
    """
    try:
        return _parse(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos + 1}"
    except _OutOfRangeError as error:
        reason = f"{error} at character {text.find(error.number) + 1}"
        raise _no_json(given_as or text, reason) from error
    except UnicodeEncodeError:
        reason = "an escape stands for half a character"
    except ValueError as error:
        reason = str(error)
    except RecursionError:
        reason = "it nests too deeply"
    if text.lstrip().startswith(("{", "[")):
        raise _no_json(given_as or text, reason)
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


class _OutOfRangeError(ValueError):
    """A number of JSON that no program could be given as it is."""

    def __init__(self, number: str) -> None:
        shown = number if len(number) <= _MAX_SHOWN_CHARS else f"{number[:_MAX_SHOWN_CHARS]}..."
        super().__init__(f"the number {shown} is out of range")
        self.number = number


def _parse(text: str) -> Json:
    """JSON that a program can be given.

    Raises RecursionError, or ValueError: also `_OutOfRangeError` and UnicodeEncodeError.
    """
    value: Json = json.loads(text, parse_float=_float, parse_int=_int, parse_constant=_refuse)
    json.dumps(value, ensure_ascii=False).encode()  # an escape may stand for half a character
    return value


def _out_of_range(text: str) -> str | None:
    """Why a text is not the JSON that it could be, where that is a number that is out of range."""
    try:
        _parse(text)
    except _OutOfRangeError as error:
        return str(error)
    except (ValueError, RecursionError):
        pass
    return None


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _OutOfRangeError(text)
    return number


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # more digits than Python converts
        raise _OutOfRangeError(text) from error


def _no_json(text: str, reason: str) -> PieError:
    shown = text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."
    remedy = "correct it, or give it as a text: -- --input TEXT"
    return PieError("invalid-argument", f"--input {shown!r} is not JSON: {reason}; {remedy}")


def _is_unicode(text: str) -> bool:
    """Whether the text can be encoded: bytes of the command line that are not UTF-8 arrive as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_name(argument: str) -> bool:
    return len(argument) > 1 and argument.startswith("-") and not _BEGINS_VALUE.match(argument) and argument != END


def _key(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
