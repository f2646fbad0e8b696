"""The types that `collect_json` takes: the schema of each, and the value that a document becomes."""

import dataclasses
import json
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest

from inferlet import ArgumentTypeError
from inferlet._typed import Typed, is_type


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)
    n_reads: int = field(default=7, init=False)


@dataclass
class Node:
    value: int
    next: Optional["Node"] = None


class Label(TypedDict):
    name: str
    rank: NotRequired[int]


@dataclass
class Named:
    name: str
    point: Point


WORD = dataclasses.make_dataclass("Word", [("value", str)])
OTHER_POINT = dataclasses.make_dataclass("Point", [("z", int)])


POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["x"],
    "additionalProperties": False,
}
STRING, INTEGER, NUMBER, BOOLEAN, NULL = ({"type": kind} for kind in ("string", "integer", "number", "boolean", "null"))


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


# The type, its schema, and values of JSON with what becomes of them.
CASES = [
    (str, STRING, [("a", "a")]),
    (int, INTEGER, [(3, 3)]),
    (float, NUMBER, [(3, 3.0), (0.5, 0.5)]),
    (bool, BOOLEAN, [(True, True)]),
    (type(None), NULL, [(None, None)]),
    (list, {"type": "array"}, [([1], [1])]),
    (dict, {"type": "object"}, [({"a": 1}, {"a": 1})]),
    (Any, {}, [([1], [1])]),
    (object, {}, [("a", "a")]),
    (Annotated[float, "a share"], NUMBER, [(1, 1.0)]),
    (Literal["a", 2, Color.RED], {"enum": ["a", 2, "red"]}, [("a", "a"), (2, 2), ("red", Color.RED)]),
    (list[float], {"type": "array", "items": NUMBER}, [([1, 2], [1.0, 2.0])]),
    (Sequence[Color], {"type": "array", "items": ref("Color"), "$defs": {"Color": {"enum": ["red", "blue"]}}}, [(["red"], [Color.RED])]),
    (dict[str, float], {"type": "object", "additionalProperties": NUMBER}, [({"a": 1}, {"a": 1.0})]),
    (
        Mapping[str, list[float]],
        {"type": "object", "additionalProperties": {"type": "array", "items": NUMBER}},
        [({"a": [1]}, {"a": [1.0]})],
    ),
    (tuple[float, ...], {"type": "array", "items": NUMBER}, [([1, 2, 3], (1.0, 2.0, 3.0))]),
    (tuple[int, float], {"type": "array", "prefixItems": [INTEGER, NUMBER], "minItems": 2, "maxItems": 2}, [([1, 2], (1, 2.0))]),
    (
        Point,
        ref("Point") | {"$defs": {"Point": POINT}},
        [({"x": 1}, Point(1)), ({"x": 1, "y": 2, "tags": ["a"]}, Point(1, 2.0, ["a"]))],
    ),
    (
        Label,
        ref("Label")
        | {
            "$defs": {
                "Label": {
                    "type": "object",
                    "properties": {"name": STRING, "rank": INTEGER},
                    "required": ["name"],
                    "additionalProperties": False,
                }
            }
        },
        [({"name": "a"}, {"name": "a"}), ({"name": "a", "rank": 1}, {"name": "a", "rank": 1})],
    ),
    (
        Node,
        ref("Node")
        | {
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {"value": INTEGER, "next": {"anyOf": [ref("Node"), NULL]}},
                    "required": ["value"],
                    "additionalProperties": False,
                }
            }
        },
        [({"value": 1, "next": {"value": 2, "next": None}}, Node(1, Node(2)))],
    ),
    (Color | None, {"anyOf": [ref("Color"), NULL], "$defs": {"Color": {"enum": ["red", "blue"]}}}, [("blue", Color.BLUE), (None, None)]),
]


def kinds(value):
    """The types of a value and of what it holds: 1, 1.0 and True are equal."""
    if isinstance(value, list | tuple):
        return [type(value), *map(kinds, value)]
    return [type(value), *map(kinds, value.values())] if isinstance(value, dict) else type(value)


@pytest.mark.rows("PY-069")
@pytest.mark.parametrize(("wanted", "schema", "values"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_type_is_a_schema_and_makes_its_values(wanted, schema, values):
    typed = Typed(wanted)
    assert typed.schema == schema
    assert json.loads(json.dumps(typed.schema)) == schema
    for given, value in values:
        built = typed.build(given)
        assert built == value
        assert kinds(built) == kinds(value)


# Of several types the first that a value fits, by its kind and the names of its fields.
UNIONS = [
    (int | bool, [(True, True), (1, 1)]),
    (float | bool, [(1, 1.0), (True, True), (0.5, 0.5)]),
    (Literal[1] | bool, [(1, 1), (True, True)]),
    (Literal["red"] | Color, [("red", "red"), ("blue", Color.BLUE)]),
    (str | list[float], [("ab", "ab"), ([1], [1.0])]),
    (list[float] | dict[str, float], [([1], [1.0]), ({"a": 1}, {"a": 1.0})]),
    (tuple[float, ...] | None, [([1], (1.0,)), (None, None)]),
    (dict[str, float] | list[int], [({"a": 1}, {"a": 1.0}), ([1], [1])]),
    (Point | Label | None, [({"x": 1, "y": 2}, Point(1, 2.0)), ({"name": "a", "rank": 1}, {"name": "a", "rank": 1}), (None, None)]),
    # All that a type requires has to be there, and nothing that it does not have.
    (Named | Label, [({"name": "a", "point": {"x": 1}}, Named("a", Point(1))), ({"name": "a"}, {"name": "a"})]),
    (Label | Named, [({"name": "a", "point": {"x": 1}}, Named("a", Point(1)))]),
    # A field of another kind tells two types of one form apart.
    (Node | WORD, [({"value": 1}, Node(1)), ({"value": "a"}, WORD("a"))]),
    (Annotated[int, "n"] | str, [(1, 1), ("a", "a")]),
    ((int | None) | str, [(None, None), ("a", "a")]),
    (Any | None, [([1], [1])]),
]


@pytest.mark.rows("PY-069")
@pytest.mark.parametrize(("wanted", "values"), UNIONS, ids=[str(case[0]) for case in UNIONS])
def test_a_value_of_a_union_is_one_of_the_type_that_it_fits(wanted, values):
    typed = Typed(wanted)
    for given, value in values:
        built = typed.build(given)
        assert built == value
        assert kinds(built) == kinds(value)


@pytest.mark.rows("PY-069")
def test_types_of_one_name_have_definitions_of_their_own():
    typed = Typed(tuple[Point, OTHER_POINT, Point, Color])
    assert typed.schema["prefixItems"] == [ref("Point"), ref("Point_"), ref("Point"), ref("Color")]
    assert typed.schema["$defs"]["Point_"]["properties"] == {"z": INTEGER}
    assert list(typed.schema["$defs"]) == ["Point", "Point_", "Color"]
    assert typed.build([{"x": 1}, {"z": 2}, {"x": 3}, "red"]) == (Point(1), OTHER_POINT(2), Point(3), Color.RED)


@pytest.mark.rows("PY-069")
@pytest.mark.parametrize("wanted", [set, bytes, complex, list[set], Point | bytes, "Point", dict[str, range]])
def test_a_type_that_json_does_not_hold_is_refused(wanted):
    with pytest.raises(ArgumentTypeError, match=r"^schema is .*it must be a dataclass, TypedDict, Enum") as caught:
        Typed(wanted)
    assert caught.value.code == "invalid-argument"


@pytest.mark.rows("PY-069")
def test_types_are_told_from_schemas():
    assert all(map(is_type, [int, Color, Point, Label, list[int], Literal["a"], Any, Annotated[int, 1], int | None]))
    assert not any(map(is_type, ["{}", {}, {"type": "string"}, True, None]))
    assert typing.get_origin(int | None) is not None
