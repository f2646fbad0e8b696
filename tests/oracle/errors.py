"""What operations of vectors are refused with."""

from __future__ import annotations


class RefusedError(Exception):
    """An operation that must fail with a code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
