"""What `open` found nothing of. A program that goes on with None is told of that where it fails."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Sequence

from inferlet.errors import InferletError

_MAX_CALLS = 8
"""Older calls are not kept: a program may look for names without an end."""
_MAX_SHOWN_CHARS = 60

found_nothing: list[str] = []
"""The last calls that gave None, the oldest first, as in `Context.open(model, "notes")`."""
_told: list[str] = []
_names: dict[str, tuple[str, Callable[[], Sequence[str]]]] = {}
"""Of each of these calls the name, and what tells the names that there are. It is asked where somebody is told."""
_MAX_COMPARED = 100
"""More names are not compared: a user may have thousands."""
_MAX_LISTED = 8
_KEPT = 'those of an engine that has ended, as of an earlier `pie run`, are kept where snapshots.durability = "disk"'


def note(call: str, name: str, names: Callable[[], Sequence[str]] | None = None) -> None:
    """Notes that a call of `open` or `take` found nothing of a name; `names` gives those that there are."""
    shown = name if len(name) <= _MAX_SHOWN_CHARS else name[:_MAX_SHOWN_CHARS] + "..."
    whole = f"{call}(model, {json.dumps(shown, ensure_ascii=False)})"
    if whole in found_nothing:
        found_nothing.remove(whole)
    found_nothing.append(whole)
    if names is not None:
        _names[whole] = (name, names)
    for call_before in found_nothing[:-_MAX_CALLS]:
        _names.pop(call_before, None)
    del found_nothing[:-_MAX_CALLS]


def there_are(call: str) -> str:
    """Which names there are in place of the one that a call found nothing of, the nearest first.

    A sentence behind a message, or nothing where that is not known.
    """
    if call not in _names:
        return ""
    name, names = _names[call]
    try:
        found = names()
    except InferletError:
        return ""  # the program fails already, by an error of its own
    things = "adapters" if call.startswith("Adapter.") else "snapshots"
    if not found:
        kept = "" if things == "adapters" else f"; {_KEPT}"
        return f". This user has no {things} of this model{kept}"
    near = difflib.get_close_matches(name, found[:_MAX_COMPARED], 1) if len(name) <= _MAX_SHOWN_CHARS else []
    meant = f"; did you mean {json.dumps(near[0], ensure_ascii=False)}?" if near else "."
    shown = ", ".join(json.dumps(one, ensure_ascii=False) for one in found[:_MAX_LISTED])
    more = f" and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
    return f"{meant} The {things} of this user are {shown}{more}"


def tell_of_no_adapter() -> None:
    """Tells, once, that what is generated is computed without the adapter that was looked for.

    The option is given as None, and an `Adapter.open` of this program gave that.
    """
    calls = [call for call in found_nothing if call.startswith("Adapter.")]
    if not calls or _told:
        return
    _told.append(calls[-1])
    message = f"`{calls[-1]}` found nothing of that name, and `adapter=None` computes without an adapter"
    remedy = f"test what `Adapter.open` gives by `is None` before it is used{there_are(calls[-1])}"
    print(f"warning: {message}; {remedy}", file=sys.stderr)


def forget() -> None:
    """Begins anew."""
    found_nothing.clear()
    _names.clear()
    _told.clear()
