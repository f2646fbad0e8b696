"""Types whose annotations are texts, as behind `from __future__ import annotations`, as schemas and values."""

from __future__ import annotations

import typing
from typing import Annotated, NotRequired, Required, TypedDict

import pytest

from inferlet._typed import Typed


class Plain(TypedDict):
    name: str
    rank: NotRequired[int]
    note: Annotated[NotRequired[str], "a note"]


class Loose(TypedDict, total=False):
    a: int
    b: Required[int]
    c: Annotated[Required[int], "a share"]


class Below(Loose):
    d: int
    e: NotRequired[int]


class BelowLoose(Plain, total=False):
    f: int
    g: Required[list[NotHere] | int]


class NotHere(TypedDict):
    x: NotRequired[NotHere]


CASES = [
    (Plain, ["name"]),
    (Loose, ["b", "c"]),
    (Below, ["b", "c", "d"]),
    (BelowLoose, ["name", "g"]),
    (NotHere, []),
]


if hasattr(typing, "ReadOnly"):

    class Fixed(TypedDict):
        a: typing.ReadOnly[NotRequired[int]]
        b: typing.ReadOnly[int]

    CASES.append((Fixed, ["b"]))


@pytest.mark.rows("PY-069")
@pytest.mark.parametrize(("wanted", "required"), CASES)
def test_keys_are_required_as_their_annotations_say(wanted: type, required: list[str]) -> None:
    definition = Typed(wanted).schema["$defs"][wanted.__name__]
    assert (list(definition["properties"]), definition["required"]) == (list(wanted.__annotations__), required)


def test_the_option_of_a_union_is_found_by_the_keys_that_it_needs() -> None:
    build = Typed(Below | Plain).build
    assert build({"name": "a"}) == {"name": "a"}
    assert build({"b": 1, "c": 2, "d": 3}) == {"b": 1, "c": 2, "d": 3}
