"""A launch as the engine takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
