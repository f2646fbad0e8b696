"""Checks of arguments: what cannot cross to the engine at all is refused here, ranges are the engine's to check."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex

from inferlet.errors import ArgumentTypeError, ErrorCode, InvalidArgumentError

MAX_U32 = 2**32 - 1
MAX_U64 = 2**64 - 1
_MAX_SHOWN_CHARS = 60


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


def tokens(name: str, value: Iterable[SupportsIndex]) -> list[int]:
    """Token ids as a new list; an id that is no id of any model is the error `invalid-token`."""
    try:
        items = list(value)
    except TypeError:
        raise _wrong_type(name, value, "a list of token ids") from None
    ids = [item for item in items if type(item) is int]
    if len(ids) != len(items):
        ids = [whole(f"{name}[{index}]", item) for index, item in enumerate(items)]
    if ids and (min(ids) < 0 or max(ids) > MAX_U32):
        index, bad = next((index, token) for index, token in enumerate(ids) if not 0 <= token <= MAX_U32)
        raise InvalidArgumentError(
            ErrorCode.INVALID_TOKEN, f"{name}[{index}] is {bad}; token ids lie in 0..{MAX_U32}", {"token": bad, "index": index}
        )
    return ids


def whole(name: str, value: object) -> int:
    """An integer of any size."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise _wrong_type(name, value, "an int")
    return operator.index(value)


def count(name: str, value: object, code: ErrorCode = ErrorCode.INVALID_ARGUMENT) -> int:
    """An integer in 0..4294967295."""
    return _ranged(name, whole(name, value), MAX_U32, code)


def seed(name: str, value: object) -> int:
    """An integer in 0..18446744073709551615."""
    return _ranged(name, whole(name, value), MAX_U64, ErrorCode.INVALID_ARGUMENT)


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
        raise _wrong_type(name, value, f"a {kind.__name__}")


def _ranged(name: str, value: int, limit: int, code: ErrorCode) -> int:
    if not 0 <= value <= limit:
        raise InvalidArgumentError(code, f"{name} is {value}; it must lie in 0..{limit}", {name: str(value), "limit": str(limit)})
    return value


def _wrong_type(name: str, value: object, wanted: str) -> ArgumentTypeError:
    shown = repr(value)
    shown = shown if len(shown) <= _MAX_SHOWN_CHARS else shown[: _MAX_SHOWN_CHARS - 3] + "..."
    kind = type(value).__name__
    return ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, f"{name} is {shown} of type {kind}; it must be {wanted}")
