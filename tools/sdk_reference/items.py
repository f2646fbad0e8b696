"""What a reader of sources finds: public names with their signatures and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LANGUAGES = ("python", "typescript", "rust")
TITLES: Mapping[str, str] = {"python": "Python", "typescript": "TypeScript", "rust": "Rust"}
SEPARATORS: Mapping[str, str] = {"python": ".", "typescript": ".", "rust": "::"}


class SourceError(Exception):
    """A source that the readers do not understand, or a name that has no place in the reference."""


@dataclass(frozen=True)
class Item:
    """A public name of one language."""

    language: str
    """One of `LANGUAGES`."""
    path: str
    """From the root of the SDK, as a program writes it: `chat.Decoder`, `chat::Decoder`, and `Context.open`."""
    kind: str
    """`module`, `type` (a class, an interface, a struct, a trait), `function`, `value`, or for members: `constructor`,
    `method`, `field` and `variant`.
    """
    signature: str
    """Its declaration on one line, without a body."""
    doc: str
    """Its text, in Markdown."""
    source: str
    """The file, from the root of the tree."""
    members: tuple[Item, ...] = ()
    uses: tuple[str, ...] = ()
    """The statements and traits of the language that it works with, as `async for` or `IntoFuture`."""
    also: tuple[str, ...] = ()
    """Other paths of it."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(SEPARATORS[self.language])[2]

    @property
    def everything(self) -> tuple[Item, ...]:
        """The item itself and its members."""
        return (self, *self.members)
