"""JSON as it leaves a program: compact, UTF-8, in insertion order, and nothing that is not JSON.

The types that `collect_json` makes values of leave it as they came: a dataclass is the object of its fields, an Enum is
its value. A model of pydantic, or whatever has its `model_dump(mode="json")`, is what that gives.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from collections.abc import Collection, Iterator
from itertools import accumulate
from typing import Any

from inferlet.errors import ErrorCode, new_error

_MAX_DEPTH = 500
"""Levels of lists and dicts around a value, as the engine and clients of every language hold them."""
_MAX_SEARCHED = 100
"""Levels within which the place is looked for of what is not JSON."""
_MAX_PATH_CHARS = 80
_NOTHING = object()


def _stand_in(value: Any) -> Any:
    """What JSON holds in the place of a value of another type; `_NOTHING` where it holds none."""
    if isinstance(value, type):
        return _NOTHING
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    # Asked of the type: an object may claim any attribute.
    dump = getattr(type(value), "model_dump", None)
    return dump(value, mode="json") if callable(dump) else _NOTHING


def _plain(value: object) -> object:
    stand_in = _stand_in(value)
    if stand_in is _NOTHING:
        raise TypeError(f"a value of type {type(value).__qualname__} is not JSON")
    return stand_in


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def dumps(value: object, what: str, code: ErrorCode) -> str:
    """The JSON text of `value`.

    Raises the error `code` where JSON cannot hold something in it; the error says where in `what` that is.
    """
    try:
        text = _encode(value)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        path, reason = next(_faults(value, "", ()), ("", _elsewhere(error)))
        path = path.removeprefix(".")
        if len(path) > _MAX_PATH_CHARS:
            path = f"{path[:_MAX_PATH_CHARS]}..."
        # A name goes on as an expression does, `args.user`; a phrase does not.
        joint = " at " if " " in what else "" if path.startswith("[") else "."
        where = f"{what}{joint}{path}" if path else what
        raise new_error(code, f"{where} is {reason}; {_remedy(reason)}", {"path": path}) from None
    if _is_too_deep(text):
        raise new_error(code, f"{what} is {_TOO_DEEP}; {_FLATTER}", {"path": ""})
    if doubled := _doubled_key(value):
        raise new_error(code, f"{what} has a dict with {doubled}, which are one key in JSON; give one of them", {"path": ""})
    return text


_TOO_DEEP = f"nested more than {_MAX_DEPTH} deep"
_FLATTER = "give it flatter"
_TOO_LONG = "a number of more than 4300 digits, which Python does not write"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


def _is_too_deep(text: str) -> bool:
    """Whether a compact JSON text nests deeper than it may; texts with too few brackets, as most have, are not read."""
    if len(text) <= 2 * _MAX_DEPTH or text.count("[") + text.count("{") <= _MAX_DEPTH:
        return False
    # An empty list or dict is as deep as a number in its place.
    bare = _STRING.sub("0", text).replace("[]", "0").replace("{}", "0")
    depths = accumulate(1 if character in "[{" else -1 for character in bare if character in "[]{}")
    return max(depths, default=0) > _MAX_DEPTH


_PLAIN = {str, int, float, bool, type(None)}


def _doubled_key(value: object) -> str | None:
    """Two keys of a dict within what JSON holds that it writes alike.

    Lists and dicts of plain values are gone through by their types alone.
    """
    waiting = [value]
    while waiting:
        one = waiting.pop()
        inside: Collection[Any] = ()
        if isinstance(one, dict):
            inside = one.values()
            for key in one if set(map(type, one)) - {str} else ():
                if not isinstance(key, str) and (written := _encode(key)) in one:
                    return f"{key!r} and {written!r}"
        elif isinstance(one, list | tuple):
            inside = one
        if set(map(type, inside)) - _PLAIN:
            waiting.extend(inside)
    return None


def _elsewhere(error: Exception) -> str:
    """Why a value is not JSON where no place was found."""
    return _TOO_DEEP if isinstance(error, RecursionError) else f"not JSON more than {_MAX_SEARCHED} levels within ({error})"


def _remedy(reason: str) -> str:
    """What to do about a value that is not JSON, by why it is none."""
    if reason == _TOO_DEEP:
        return _FLATTER
    if reason == _TOO_LONG:
        return "give it as a text, as by hex()"
    return next((remedy for kind, remedy in _REMEDIES.items() if reason == f"of type {kind}"), _PLAIN_VALUES)


_PLAIN_VALUES = (
    "JSON holds strings, finite numbers, booleans, None, lists and dicts with string keys (numbers, booleans and None become texts), "
    "and dataclasses and Enums of those"
)
_AWAIT = "did you forget `await`? Write it before the call that gives this"
_REMEDIES = {
    "coroutine": _AWAIT,
    "Task": _AWAIT,
    "Future": _AWAIT,
    "_GatheringFuture": _AWAIT,
    "Deferred": _AWAIT,
    "async_generator": "collect what it yields: [item async for item in ...]",
    "generator": "collect what it yields: list(...)",
    "Generator": "run it and await what it gives: await g.collect_text()",
    "Output": "take what it has: output.tokens",
    "GenStep": "execute it and await what it gives: (await step.execute()).tokens; texts come by `async for text in g.texts()`",
    "TextStream": "await the whole text: await g.collect_text(), or [text async for text in g.texts()]",
    "Child": "await it: `await child` gives what it returned",
}
"""What to do about values of these types."""


def _faults(value: object, path: str, above: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Where a value is not JSON, and why, in document order."""
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            yield path, "text with a lone surrogate"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield path, f"the number {value}"
    elif isinstance(value, dict | list | tuple):
        if id(value) in above:
            yield path, f"a {type(value).__name__} that contains itself"
            return
        if len(above) < _MAX_SEARCHED:
            yield from _faults_within(value, path, (*above, id(value)))
    elif isinstance(value, int):
        try:
            str(value)
        except ValueError:
            yield path, _TOO_LONG
    elif value is not None:
        yield from _faults_of_object(value, path, above)


def _faults_of_object(value: object, path: str, above: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    if id(value) in above:
        yield path, f"a {type(value).__qualname__} that contains itself"
    elif (stand_in := _stand_in(value)) is _NOTHING:
        yield path, f"of type {type(value).__qualname__}"
    elif len(above) < _MAX_SEARCHED:
        yield from _faults(stand_in, path, (*above, id(value)))


def _faults_within(
    value: dict[object, object] | list[object] | tuple[object, ...], path: str, above: tuple[int, ...]
) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", above)
        return
    for key, item in value.items():
        if key is not None and not isinstance(key, str | int | float):
            yield path, f"a dict with a key of type {type(key).__qualname__}"
            continue
        step = f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"
        yield from _faults(item, path + step, above)
