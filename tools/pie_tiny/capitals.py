"""Upper case as sentences have it; what draws words needs it as well as what puts them together."""

from __future__ import annotations


def capitalise(text: str) -> str:
    """The text with its first character in upper case, the rest unchanged."""
    return text[:1].upper() + text[1:]
