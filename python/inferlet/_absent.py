"""What `open` found nothing of. A program that goes on with None is told of that where it fails."""

from __future__ import annotations

import json
import sys

_MAX_CALLS = 8
"""Older calls are not kept: a program may look for names without an end."""
_MAX_SHOWN_CHARS = 60

found_nothing: list[str] = []
"""The last calls that gave None, the oldest first, as in `Context.open(model, "notes")`."""
_told: list[str] = []


def note(call: str, name: str) -> None:
    """Notes that a call of `open` or `take` found nothing of a name."""
    shown = name if len(name) <= _MAX_SHOWN_CHARS else name[:_MAX_SHOWN_CHARS] + "..."
    whole = f"{call}(model, {json.dumps(shown, ensure_ascii=False)})"
    if whole in found_nothing:
        found_nothing.remove(whole)
    found_nothing.append(whole)
    del found_nothing[:-_MAX_CALLS]


def tell_of_no_adapter() -> None:
    """Tells, once, that what is generated is computed without the adapter that was looked for.

    The option is given as None, and an `Adapter.open` of this program gave that.
    """
    calls = [call for call in found_nothing if call.startswith("Adapter.")]
    if not calls or _told:
        return
    _told.append(calls[-1])
    message = f"`{calls[-1]}` found nothing of that name, and `adapter=None` computes without an adapter"
    print(f"warning: {message}; test what `Adapter.open` gives by `is None` before it is used", file=sys.stderr)


def forget() -> None:
    """Begins anew."""
    found_nothing.clear()
    _told.clear()
