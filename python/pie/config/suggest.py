"""The error of a name that there is not, with the nearest one that there is."""

from __future__ import annotations

from collections.abc import Iterable

from pie.errors import PieError

_MAX_SHOWN_CHARS = 80


def shortened(text: str) -> str:
    """The text, or its beginning where it is longer than a message should repeat."""
    return text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "..."


def nearest(name: str, known: Iterable[str], likeness: float = 0.5) -> str | None:
    """The one of `known` that whoever wrote `name` may have meant, in whatever case; None where none is near.

    `likeness` is how near, of 1.
    """
    from difflib import get_close_matches  # noqa: PLC0415  # nobody waits for it but who mistyped

    folded = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower()[:_MAX_SHOWN_CHARS], folded, n=1, cutoff=likeness)
    return folded[near[0]] if near else None


def unknown(name: str, known: Iterable[str], where: object, *, what: str, place: str = "") -> PieError:
    """PieError `invalid-config` for `name`, which stands at `where` and is none of the `known` ones.

    `place` follows the name.
    """
    names = list(known)
    near = nearest(name, names)
    remedy = f"did you mean {near!r}?" if near is not None else f"there are {', '.join(names)}"
    return PieError("invalid-config", f"{where}: there is no {what} {shortened(name)!r}{place}; {remedy}", {"name": name, "known": names})
