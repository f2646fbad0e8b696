"""Sources of which the parts that could mislead a reader are blanked: comments, and what stands in strings.

Both copies have the length of the source, so that a place in one is a place in the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Comment:
    """A comment that documents what follows it, or with `is_inner` what it stands in."""

    start: int
    end: int
    text: str
    is_inner: bool = False


@dataclass(frozen=True)
class Masked:
    """A source in two copies."""

    code: str
    """Without comments."""
    bare: str
    """Without comments and without what stands in strings."""
    comments: tuple[Comment, ...]

    def closing(self, start: int) -> int:
        """The place behind the bracket that closes the one at this place."""
        close, depth = _PAIRS[self.bare[start]], 0
        for place in range(start, len(self.bare)):
            if self.bare[place] == self.bare[start]:
                depth += 1
            elif self.bare[place] == close:
                depth -= 1
                if depth == 0:
                    return place + 1
        raise ValueError(f"the bracket at {start} is not closed")

    def end_of(self, start: int, ends: str) -> int:
        """The place of the first of these characters from here on that stands in no bracket."""
        place = start
        while place < len(self.bare):
            if self.bare[place] in ends:
                return place
            place = self.closing(place) if self.bare[place] in _PAIRS else place + 1
        return len(self.bare)

    def line(self, start: int, end: int) -> str:
        """A part of the code on one line."""
        text = re.sub(r"\s+", " ", self.code[start:end]).strip()
        text = re.sub(r"(?<=[(\[]) | (?=[)\]])", "", text)
        return re.sub(r",(?=[)\]])", "", text)

    def comment_before(self, place: int) -> Comment | None:
        """The comment that ends here, but for white space."""
        found = [comment for comment in self.comments if not comment.is_inner and comment.end <= place]
        return found[-1] if found and not self.bare[found[-1].end : place].strip() else None


def blanked(text: str) -> str:
    """White space of the same length, with its line ends."""
    return re.sub(r"[^\n]", " ", text)
