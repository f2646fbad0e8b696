"""The error of a name that there is not, with the nearest one that there is."""

from __future__ import annotations

from collections.abc import Iterable

from pie.errors import PieError

_MAX_SHOWN_CHARS = 80


def unknown(name: str, known: Iterable[str], where: object, *, what: str) -> PieError:
    """PieError `invalid-config` for `name`, which stands at `where` and is none of the `known` ones."""
    from difflib import get_close_matches  # noqa: PLC0415  # nobody waits for it but who mistyped

    names = list(known)
    shown = name if len(name) <= _MAX_SHOWN_CHARS else name[:_MAX_SHOWN_CHARS] + "..."
    folded = {candidate.lower(): candidate for candidate in names}
    near = get_close_matches(name.lower()[:_MAX_SHOWN_CHARS], folded, n=1, cutoff=0.5)
    remedy = f"did you mean {folded[near[0]]!r}?" if near else f"there are {', '.join(names)}"
    return PieError("invalid-config", f"{where}: there is no {what} {shown!r}; {remedy}", {"name": name, "known": names})
