"""Where a value comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Origin:
    """The layer that a value comes from, and where in it; as text, what a message or `pie config show` says of it."""

    kind: Literal["default", "file", "environment", "flag"]
    where: str = ""
    """The file, with the line where it is known; the name of the variable; the flag."""
    key: str = ""
    """The key in the file."""

    def __str__(self) -> str:
        return f"{self.where} {self.key}".strip() or self.kind


DEFAULT = Origin("default")
