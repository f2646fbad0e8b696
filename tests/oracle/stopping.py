"""Where stop texts end a generation, and what is shown of it, by looking at the whole text again for each character."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .decoder import Vocabulary


@dataclass(frozen=True)
class Said:
    """What is known of a generation behind some of its tokens."""

    before: str
    """The text before the last control token."""
    segment: str
    """The text behind it. A stop text stands within one segment."""
    cut: int | None = None
    """Where the first stop text begins in the segment; None: none is complete."""

    @property
    def text(self) -> str:
        """All of it, up to the stop text."""
        return self.before + self.segment[: self.cut]

    def shown(self, texts: Iterable[str]) -> str:
        """What is shown at once: all that cannot be the beginning of a stop text."""
        if self.cut is not None:
            return self.text
        beginnings = [text[:n] for text in texts for n in range(1, len(text)) if self.segment.endswith(text[:n])]
        n_held = max(map(len, beginnings), default=0)
        return self.text[: len(self.text) - n_held]


def said(vocabulary: Vocabulary, tokens: Iterable[int], texts: frozenset[str]) -> Iterator[Said]:
    """What is known behind each of the tokens, up to the one that completes a stop text."""
    utf8 = codecs.getincrementaldecoder("utf-8")("replace")
    before, segment = "", ""
    for token in tokens:
        if token in vocabulary.control:
            before, segment = before + segment + utf8.decode(b"", True), ""
            yield Said(before, segment)
            continue
        for character in utf8.decode(vocabulary.bytes[token]):
            segment += character
            ends = [len(text) for text in texts if segment.endswith(text)]
            if ends:
                yield Said(before, segment, len(segment) - max(ends))
                return
        yield Said(before, segment)
