"""Checks of arguments: what cannot cross to the engine at all is refused here, ranges are the engine's to check."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NoReturn, SupportsIndex

from inferlet.errors import ArgumentTypeError, ErrorCode, InvalidArgumentError

MAX_U32 = 2**32 - 1
MAX_U64 = 2**64 - 1
MIN_I64 = -(2**63)
MAX_I64 = 2**63 - 1
MAX_ROW = 2**20
"""The longest row of a mask where it is not known: no vocabulary and no context of a model is longer."""
MAX_DRAFTS = 2**12
"""So many drafts of one step cross to the engine, which takes fewer."""
_MAX_SHOWN_CHARS = 60
_MADE_BY = {"Model": 'Model.load("default")', "Sampler": "Sampler.argmax()"}
"""How an instance of these classes is made."""
_CALLED = frozenset({"function", "method", "builtin_function_or_method"})
"""What a value is whose name was given in the place of its call."""


def text(name: str, value: object) -> str:
    """A string that is Unicode text."""
    if not isinstance(value, str):
        raise _wrong_type(name, value, "a str")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(
                ErrorCode.INVALID_ARGUMENT,
                f"{name} holds the lone surrogate U+{ord(value[error.start]):04X} at index {error.start}; "
                "text that crosses to the engine must be valid Unicode",
            ) from None
    return value


def blob(name: str, value: object) -> bytes:
    """Bytes, as bytes, a bytearray or a memoryview."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong_type(name, value, "bytes, a bytearray or a memoryview")
    return bytes(value)


def tokens(name: str, value: Iterable[SupportsIndex], most: int | None = None) -> list[int]:
    """Token ids as a new list of `most` at most; an id that no model could have is the error `invalid-token`."""
    ids = _wholes(name, value, "a list of token ids", most)
    if ids and (min(ids) < 0 or max(ids) > MAX_U32):
        index, bad = next((index, token) for index, token in enumerate(ids) if not 0 <= token <= MAX_U32)
        raise InvalidArgumentError(
            ErrorCode.INVALID_TOKEN, f"{name}[{index}] is {bad}; token ids lie in 0..{MAX_U32}", {"token": bad, "index": index}
        )
    return ids


def stops(name: str, value: str | Iterable[SupportsIndex | str]) -> tuple[list[int], list[str]]:
    """What a generation stops at, a text alone or ids and texts in any order: the token ids, and the texts."""
    if isinstance(value, str):
        return [], [text(name, value)]
    wanted = "a text, or a list of token ids and texts"
    if isinstance(value, bytes | bytearray | memoryview):
        raise _wrong_type(name, value, wanted)
    try:
        items = list(value)
    except TypeError:
        raise _wrong_type(name, value, wanted) from None
    ids = [item for item in items if not isinstance(item, str)]
    for index, item in enumerate(items):
        if isinstance(item, bool) or not isinstance(item, str | SupportsIndex):
            raise _wrong_type(f"{name}[{index}]", item, "an int or a text")
    if len(ids) == len(items):
        return tokens(name, ids), []
    texts = [text(f"{name}[{index}]", item) for index, item in enumerate(items) if isinstance(item, str)]
    numbered = ((f"{name}[{index}]", item) for index, item in enumerate(items) if not isinstance(item, str))
    return [count(place, item, ErrorCode.INVALID_TOKEN) for place, item in numbered], texts


def _wholes(name: str, value: Iterable[SupportsIndex], wanted: str, most: int | None = None) -> list[int]:
    """Integers as a new list; most lists hold nothing else, and are only copied.

    Where there may be `most` of them, what has no end is not read to its end: more are the error `invalid-argument`.
    """
    try:
        items = list(value if most is None else islice(value, min(most + 1, sys.maxsize)))
    except TypeError:
        raise _wrong_type(name, value, wanted) from None
    if most is not None and len(items) > most:
        message = f"{name} has more than {most} numbers, which is the most that it may have; give fewer"
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"limit": str(most)})
    numbers = [item for item in items if type(item) is int]
    if len(numbers) != len(items):
        numbers = [whole(f"{name}[{index}]", item) for index, item in enumerate(items)]
    return numbers


def counts(name: str, value: Iterable[SupportsIndex], most: int | None = None) -> list[int]:
    """Integers in 0..4294967295 as a new list of `most` at most."""
    numbers = _wholes(name, value, "a list of ints", most)
    if numbers and (min(numbers) < 0 or max(numbers) > MAX_U32):
        index = next(index for index, number in enumerate(numbers) if not 0 <= number <= MAX_U32)
        count(f"{name}[{index}]", numbers[index])
    return numbers


def runs(name: str, value: Iterable[SupportsIndex], length: int = MAX_ROW) -> list[int]:
    """A mask of a row of `length` elements as a new list of run lengths.

    A row needs one run more than it has elements at most. The engine says so too, but more runs may not fit a call.
    """
    if isinstance(value, str | bytes | bytearray | memoryview | AbstractSet | dict):
        raise _wrong_type(name, value, "a mask: a list of run lengths")
    return counts(name, value, length + 1)


def masks(name: str, value: Iterable[Iterable[SupportsIndex]], length: int = MAX_ROW) -> list[list[int]]:
    """Masks of rows of `length` elements, each as a new list of run lengths."""
    try:
        items = list(value)
    except TypeError:
        raise _wrong_type(name, value, "a list of masks") from None
    return [runs(f"{name}[{index}]", item, length) for index, item in enumerate(items)]


def whole(name: str, value: object) -> int:
    """An integer of any size."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise _wrong_type(name, value, "an int")
    return operator.index(value)


def count(name: str, value: object, code: ErrorCode = ErrorCode.INVALID_ARGUMENT) -> int:
    """An integer in 0..4294967295."""
    return _ranged(name, whole(name, value), MAX_U32, code)


def horizon(name: str, value: object) -> int:
    """How many tokens a text is thought to become: an integer from 1 on. 0 is the engine's to refuse."""
    number = whole(name, value)
    if not 0 <= number <= MAX_U32:
        message = f"{name} is {number}; it is how many tokens the text is thought to become, from 1 to {MAX_U32}"
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {name: str(number), "limit": str(MAX_U32)})
    return number


def seed(name: str, value: object) -> int:
    """An integer in 0..18446744073709551615."""
    return _ranged(name, whole(name, value), MAX_U64, ErrorCode.INVALID_ARGUMENT)


def signed(name: str, value: object) -> int:
    """An integer in -9223372036854775808..9223372036854775807."""
    number = whole(name, value)
    if not MIN_I64 <= number <= MAX_I64:
        message = f"{name} is {number}; it must lie in {MIN_I64}..{MAX_I64}"
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {name: str(number)})
    return number


def number(name: str, value: object) -> float:
    """A real number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(name, value, "a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, f"{name} is too large for a floating-point number") from None


def of_type(name: str, value: object, kind: type) -> None:
    """Refuses what is not an instance of the SDK's class `kind`."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        made_by = f", such as {_MADE_BY[kind.__name__]}" if kind.__name__ in _MADE_BY else ""
        call = "; write `()` behind the name to call it" if isinstance(value, type) and issubclass(value, kind) else ""
        raise _wrong_type(name, value, f"{article} {kind.__name__}{made_by}{call}")


def refuse(name: str, value: object, wanted: str) -> NoReturn:
    """Refuses a value that is not what is wanted, by its type."""
    raise _wrong_type(name, value, wanted)


def _ranged(name: str, value: int, limit: int, code: ErrorCode) -> int:
    if not 0 <= value <= limit:
        raise InvalidArgumentError(code, f"{name} is {value}; it must lie in 0..{limit}", {name: str(value), "limit": str(limit)})
    return value


def _wrong_type(name: str, value: object, wanted: str) -> ArgumentTypeError:
    shown = repr(value)
    shown = shown if len(shown) <= _MAX_SHOWN_CHARS else shown[: _MAX_SHOWN_CHARS - 3] + "..."
    kind = type(value).__name__
    remedy = "; write `()` behind the name to call it" if kind in _CALLED and "function" not in wanted else ""
    return ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, f"{name} is {shown} of type {kind}; it must be {wanted}{remedy}")
