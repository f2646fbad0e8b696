"""Checks of what callers in Python give, before anything is sent or launched.

PieError `invalid-argument` names the argument, its value and what it may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from reprlib import Repr
from typing import Any, SupportsIndex

from pie.errors import PieError

MAX_WHOLE = 2**64 - 1
MAX_CREDITS = 1_000_000_000

_MAX_DEPTH = 500
_shortened = Repr()
_shortened.maxstring = _shortened.maxother = 80


def whole(name: str, value: SupportsIndex, *, least: int = 0, most: int = MAX_WHOLE) -> int:
    """A whole number in a range; what counts as one elsewhere in Python does here, but for truth values."""
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = -1
    if not least <= number <= most:
        raise refused(name, value, f"a whole number from {least} to {most}")
    return number


def text(name: str, value: str, expected: str = "a str") -> str:
    """A text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise refused(name, value, expected)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise refused(name, value, f"{expected} without the half of a character that stands at {error.start}") from error
    return value


def secret(name: str, value: str) -> str:
    """A text that no error shows."""
    if not isinstance(value, str):
        raise PieError("invalid-argument", f"{name} is a {type(value).__name__}; give a str", {"argument": name})
    return value


def flag(name: str, value: bool) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise refused(name, value, "True or False")
    return value


def time_s(name: str, value: float) -> float:
    """A length of time in seconds, above zero."""
    if not _is_number(value) or not value > 0:
        raise refused(name, value, "a number of seconds above 0")
    return value


def wait_s(name: str, value: float | None) -> float | None:
    """How long at most is waited, in seconds; None: as long as it takes."""
    if value is not None and not (_is_number(value) and value >= 0):
        raise refused(name, value, "a number of seconds from 0, or None for a wait without an end")
    return value


def function(name: str, value: object, takes: str) -> None:
    """A function, or None."""
    if value is not None and not callable(value):
        raise refused(name, value, f"a function that takes {takes}, or None")


def amount(name: str, value: float) -> float:
    """An amount of credits."""
    if not (_is_number(value) and 0 <= value <= MAX_CREDITS):
        raise refused(name, value, f"a number of credits from 0 to {MAX_CREDITS}")
    return float(value)


def texts(name: str, value: Sequence[str]) -> list[str]:
    """A list of texts; one text alone is none, though it could be gone through."""
    expected = "a list of str"
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise refused(name, value, expected)
    return [text(f"{name}[{place}]", one) for place, one in enumerate(value)]


def content(name: str, value: bytes | bytearray | memoryview) -> bytes:
    """Bytes."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise refused(name, value, "bytes")
    return bytes(value)


def program(value: str | Path | bytes) -> Path | bytes:
    """The path of a program, or its bytes."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Path):
        return value
    return Path(text("program", value, "the path of a program as a str or a Path, or its bytes"))


def path(name: str, value: str | Path) -> Path:
    """A path on this machine."""
    if isinstance(value, Path):
        return value
    return Path(text(name, value, "a path as a str or a Path"))


def variables(name: str, value: Mapping[str, str]) -> dict[str, str]:
    """Variables of a process by their names."""
    if not isinstance(value, Mapping):
        raise refused(name, value, 'a dict of variables by their names, as in {"LANG": "C"}')
    return {text(f"a name in {name}", key): text(f"{name}[{key!r}]", one) for key, one in value.items()}


def limits(name: str, value: Mapping[str, float | None]) -> dict[str, float | None]:
    """Limits by their names; which there are and how far they reach is for the engine to say."""
    if not isinstance(value, Mapping):
        raise refused(name, value, 'a dict of limits by their names, as in {"cpu_s": 10}')
    for key, limit in value.items():
        text(f"a name in {name}", key)
        if limit is not None and not (_is_number(limit) and math.isfinite(limit)):
            raise refused(f"{name}[{key!r}]", limit, "a number, or None for no limit")
    return dict(value)


def programs(name: str, value: Mapping[str, str]) -> dict[str, str]:
    """What programs are called at a server, by the names that a launch calls them by."""
    if not isinstance(value, Mapping):
        raise refused(name, value, 'a dict of programs by their names, as in {"count": "count@1.0.0"}')
    for key, program in value.items():
        text(f"a name in {name}", key)
        text(f"{name}[{key!r}]", program, "a str: NAME@VERSION, NAME, or what `upload` answered")
    return dict(value)


def json_value(name: str, value: Any) -> Any:
    """A value that JSON holds as it is: nothing is turned into something else on the way."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise PieError("invalid-argument", f"{name} nests deeper than {_MAX_DEPTH} levels, or holds itself; give it flatter")
        if isinstance(one, str):
            text(_within(name, one, value), one)
        elif isinstance(one, Mapping):
            for key in one:
                text(f"a key in {name}", key)
            waiting.extend((inner, depth + 1) for inner in one.values())
        elif isinstance(one, list | tuple):
            waiting.extend((inner, depth + 1) for inner in one)
        elif isinstance(one, float):
            if not math.isfinite(one):
                raise refused(_within(name, one, value), one, "a finite number: JSON has no other")
        elif one is not None and not isinstance(one, bool | int):
            raise refused(_within(name, one, value), one, "JSON: None, bool, int, float, str, or lists and dicts of these")
    return value


def refused(name: str, value: object, expected: str) -> PieError:
    """The error of an argument that cannot be what it is."""
    message = f"{name} is {_shortened.repr(value)} ({type(value).__name__}); give {expected}"
    return PieError("invalid-argument", message, {"argument": name})


def _within(name: str, one: object, whole_value: object) -> str:
    return name if one is whole_value else f"a value in {name}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
