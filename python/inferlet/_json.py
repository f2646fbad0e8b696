"""JSON as it leaves a program: compact, UTF-8, in insertion order, and nothing that is not JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from inferlet.errors import ErrorCode, new_error

_MAX_DEPTH = 100
_MAX_PATH_CHARS = 80
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dumps(value: object, what: str, code: ErrorCode) -> str:
    """The JSON text of `value`.

    Raises the error `code` where JSON cannot hold something in it; the error says where in `what` that is.
    """
    try:
        text = _encode(value)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        path, reason = next(_faults(value, "", ()), ("", str(error)))
        path = path.removeprefix(".")
        if len(path) > _MAX_PATH_CHARS:
            path = f"{path[:_MAX_PATH_CHARS]}..."
        where = f"{what} at {path}" if path else what
        raise new_error(code, f"{where} is {reason}; {_remedy(reason)}", {"path": path}) from None
    return text


def _remedy(reason: str) -> str:
    """What to do about a value that is not JSON, by why it is none."""
    return next((remedy for kind, remedy in _REMEDIES.items() if reason == f"of type {kind}"), _PLAIN_VALUES)


_PLAIN_VALUES = "JSON holds strings, finite numbers, booleans, None, lists and dicts with string keys"
_AWAIT = "did you forget `await`? Write it before the call that gives this"
_REMEDIES = {
    "coroutine": _AWAIT,
    "Task": _AWAIT,
    "Future": _AWAIT,
    "_GatheringFuture": _AWAIT,
    "async_generator": "collect what it yields: [item async for item in ...]",
    "generator": "collect what it yields: list(...)",
    "Generator": "run it and await what it gives: await g.collect_text()",
    "GenStep": "execute it and await what it gives: (await step.execute()).tokens",
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
        if len(above) >= _MAX_DEPTH:
            yield path, f"nested more than {_MAX_DEPTH} deep"
            return
        yield from _faults_within(value, path, (*above, id(value)))
    elif value is not None and not isinstance(value, int):
        yield path, f"of type {type(value).__qualname__}"


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
