"""The error of the Python side of the engine."""

from __future__ import annotations


class PieError(Exception):
    """A mistake or failure with a stable code of `docs/reference/errors.md`; the message names the value, the limit and the remedy."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
