"""What a passage says, and what can be asked of it."""

from __future__ import annotations

from typing import NamedTuple


class Statement(NamedTuple):
    """A sentence about somebody or something, the questions about it, and what counts in the answer."""

    sentence: str
    question: str
    answer: str
    value: str
