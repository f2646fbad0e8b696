"""The error of the Python side of the engine."""

from __future__ import annotations

from collections.abc import Mapping


class PieError(Exception):
    """A mistake or failure with a stable code of `docs/reference/errors.md`.

    The message names the value, the limit and the remedy; `details` holds the values behind it.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: Mapping[str, object] = details or {}


def described(code: str, message: str, kind: str | None) -> str:
    """The message of a failed program, after the type of an exception of its own.

    `KeyError: 'x'` says more than `'x'`.
    """
    if code != "program-error" or not kind or kind == code:
        return message
    return f"{kind}: {message}" if message else kind
