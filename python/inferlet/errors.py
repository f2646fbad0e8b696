"""The exceptions of the SDK: an error is a code, a message and details."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from componentize_py_types import Err
from wit_world.imports import types as _types

from inferlet._error_codes import ErrorCode

__all__ = [
    "ArgumentTypeError",
    "DeadlockError",
    "ErrorCode",
    "InferletError",
    "InvalidArgumentError",
    "JsonCutError",
    "SessionClosed",
]

_MAX_SHOWN_CHARS = 60
_P = ParamSpec("_P")
_T = TypeVar("_T")


class InferletError(Exception):
    """What the engine or the SDK refused.

    `code` is one of the error codes (an `ErrorCode` compares equal to it), `message` names the value, the limit and the
    remedy, `details` holds the values behind the message.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code: str = str(code)
        """One of the error codes."""
        self.message: str = message
        """What was wrong: the value, the limit and the remedy. It is the text of the exception too."""
        self.details: dict[str, Any] = dict(details or {})
        """The values behind the message, by their names; empty where there are none."""

    def __str__(self) -> str:
        return self.message


class InvalidArgumentError(InferletError, ValueError):
    """An argument was out of its range; it is a ValueError too.

    Its code is `invalid-argument`, `invalid-token`, `invalid-sampler` or `truncate-range`.
    """


class ArgumentTypeError(InferletError, TypeError):
    """An argument was of the wrong type; its code is `invalid-argument`. It is a TypeError too."""


class DeadlockError(InferletError, RuntimeError):
    """Every task of the program waits, and nothing could wake one: the code `deadlock`."""


class JsonCutError(InferletError):
    """A document was cut before its end, by `max_tokens` or the length of the context: the code `json-cut`."""

    def __init__(self, text: str, n_tokens: int) -> None:
        shown = repr(text if len(text) <= _MAX_SHOWN_CHARS else f"...{text[-_MAX_SHOWN_CHARS:]}")
        message = (
            f"the document was cut after {n_tokens} tokens, where it ends with {shown}; raise max_tokens, or ask for a smaller document: a "
            "number, text or list without a bound may go on until the cut"
        )
        super().__init__(ErrorCode.JSON_CUT, message)
        self.text: str = text
        """The text of the document as far as it goes."""


class SessionClosed(InferletError, ConnectionError):  # noqa: N818 - the name that programs catch
    """The client has disconnected: the code `session-closed`. It is a ConnectionError too."""


_CLASSES: dict[str, type[InferletError]] = {
    ErrorCode.INVALID_ARGUMENT: InvalidArgumentError,
    ErrorCode.INVALID_TOKEN: InvalidArgumentError,
    ErrorCode.INVALID_SAMPLER: InvalidArgumentError,
    ErrorCode.TRUNCATE_RANGE: InvalidArgumentError,
    ErrorCode.DEADLOCK: DeadlockError,
    ErrorCode.SESSION_CLOSED: SessionClosed,
}


def new_error(code: str, message: str, details: Mapping[str, Any] | None = None) -> InferletError:
    """An exception of the class that belongs to the code."""
    return _CLASSES.get(code, InferletError)(code, message, details)


def from_host(error: _types.Error) -> InferletError:
    """The exception for an error that crossed from the engine."""
    return new_error(error.code, error.message, json.loads(error.details or "{}"))


def host(function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
    """Calls the engine and raises its error as an `InferletError`.

    The bindings' own exception is frozen, so that nothing may attach a traceback to it: it must not travel further than
    here.
    """
    try:
        return function(*arguments, **options)
    except Err as error:
        raise from_host(error.value) from None
