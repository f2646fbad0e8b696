"""A launch as the engine takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Content: TypeAlias = bytes | tuple[Literal["python", "javascript"], Mapping[str, bytes], str]
"""A program as the engine takes it: a component, or the language, files and entry of sources."""


@dataclass(frozen=True)
class Launch:
    """How a program is launched."""

    input: str = "null"
    """A JSON text; any other text becomes `{"input": text}`."""
    args: Sequence[str] = ()
    """The unparsed arguments."""
    seed: int | None = None
    """The launch seed, 0 to 2^64 - 1; random if not given."""
    username: str | None = None
    """Whose process it is."""
    manifest: str | None = None
    """The text of a `Pie.toml`, in the place of the one that the program carries: the input is checked against its
    parameters.
    """
    token_budget: int | None = None
    """At most so many tokens enter the contexts of the process."""
    limits: Mapping[str, float | None] | None = None
    """Lowers those of the engine for this process, by their names in the section `limits`."""
    programs: Mapping[str, tuple[Content, str | None]] = field(default_factory=dict)
    """Programs that it can start as children, with their manifests, by the names that it calls them by."""
    is_alone: bool = False
    """Nobody but itself and its children launches anything while it lives.

    Where nothing could wake any of them, one ends with the error `deadlock`.
    """
    credits: float | None = None
    """What it begins with in each model, to bid for pages where those are short; None: as configured."""
