"""Types as JSON Schemas, and JSON values as values of those types."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inferlet import _arguments

Build = Callable[[Any], Any]
"""Makes a value of a type from a JSON value that fits its schema."""

_READ_ONLY: Any = getattr(typing, "ReadOnly", typing.Annotated)
"""What stands around the type of a key that is not to be written; not in every Python."""

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    list: {"type": "array"},
    dict: {"type": "object"},
}


def is_type(given: object) -> bool:
    """Whether it is a type rather than a schema."""
    return isinstance(given, type) or typing.get_origin(given) is not None or given is Any


class Typed:
    """The schema of a type, with definitions for types that have names of their own."""

    def __init__(self, wanted: object) -> None:
        self._definitions: dict[str, dict[str, Any]] = {}
        self._names: dict[object, str] = {}
        self._builds: dict[object, Build] = {}
        schema, self.build = self._of(wanted)
        self.schema: dict[str, Any] = {**schema, "$defs": self._definitions} if self._definitions else schema

    def _of(self, wanted: Any) -> tuple[dict[str, Any], Build]:
        if wanted is Any or wanted is object:
            return {}, _same
        if wanted is float:
            return _PLAIN[float], float
        if wanted in _PLAIN:
            return _PLAIN[wanted], _same
        origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
        if origin is typing.Annotated or origin in (typing.Required, typing.NotRequired, _READ_ONLY):
            return self._of(arguments[0])
        if origin is typing.Literal:
            return {"enum": [_json_of(value) for value in arguments]}, _among(arguments)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if origin is tuple:
            return self._tuple(arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            schema, build = self._of(arguments[1])
            return {"type": "object", "additionalProperties": schema}, lambda given: {k: build(v) for k, v in given.items()}
        if isinstance(origin, type) and issubclass(origin, Sequence):
            schema, build = self._of(arguments[0])
            return {"type": "array", "items": schema}, lambda given: [build(item) for item in given]
        return self._named(wanted)

    def _union(self, options: tuple[Any, ...]) -> tuple[dict[str, Any], Build]:
        made = [self._of(option) for option in options]

        def build(given: Any) -> Any:
            for option, (_, build_option) in zip(options, made, strict=True):
                if _fits(option, given):
                    return build_option(given)
            return given

        return {"anyOf": [schema for schema, _ in made]}, build

    def _tuple(self, arguments: tuple[Any, ...]) -> tuple[dict[str, Any], Build]:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            schema, build = self._of(arguments[0])
            return {"type": "array", "items": schema}, lambda given: tuple(build(item) for item in given)
        made = [self._of(argument) for argument in arguments]
        schema = {
            "type": "array",
            "prefixItems": [schema for schema, _ in made],
            "minItems": len(made),
            "maxItems": len(made),
        }
        return schema, lambda given: tuple(build(item) for (_, build), item in zip(made, given, strict=True))

    def _named(self, wanted: Any) -> tuple[dict[str, Any], Build]:
        """A type with a name: it may hold itself."""
        if wanted not in self._names:
            name = getattr(wanted, "__name__", "type")
            while name in self._definitions:
                name += "_"
            self._names[wanted] = name
            self._definitions[name] = {}
            self._definitions[name], self._builds[wanted] = self._fields(wanted)
        return {"$ref": f"#/$defs/{self._names[wanted]}"}, lambda given: self._builds[wanted](given)  # noqa: PLW0108 - made later

    def _fields(self, wanted: Any) -> tuple[dict[str, Any], Build]:
        if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
            by_value = {member.value: member for member in wanted}
            return {"enum": [_json_of(value) for value in by_value]}, lambda given: by_value[given]
        if isinstance(wanted, type) and dataclasses.is_dataclass(wanted):
            fields = [field for field in dataclasses.fields(wanted) if field.init]
            missing = dataclasses.MISSING
            required = {it.name for it in fields if it.default is missing and it.default_factory is missing}
            return self._object(wanted, [field.name for field in fields], required, lambda given: wanted(**given))
        if typing.is_typeddict(wanted):
            return self._object(wanted, list(wanted.__annotations__), _required_keys(wanted), _same)
        remedy = "a dataclass, TypedDict, Enum, Literal, str, int, float, bool, None, or a list, tuple, dict or union of them"
        return _arguments.refuse("schema", wanted, remedy)

    def _object(self, wanted: Any, names: list[str], required: set[str], make: Build) -> tuple[dict[str, Any], Build]:
        hints = typing.get_type_hints(wanted)
        made = {name: self._of(hints[name]) for name in names}
        schema = {
            "type": "object",
            "properties": {name: schema for name, (schema, _) in made.items()},
            "required": [name for name in names if name in required],
            "additionalProperties": False,
        }
        return schema, lambda given: make({name: made[name][1](value) for name, value in given.items()})


def _required_keys(wanted: Any) -> set[str]:
    """The keys that a TypedDict must have.

    Where its annotations are texts, as behind `from __future__ import annotations`, it does not see by itself what they
    say of a key, and takes each for one that follows `total` of the class that names it.
    """
    required = set(wanted.__required_keys__)
    for name, hint in typing.get_type_hints(wanted, include_extras=True).items():
        while (origin := typing.get_origin(hint)) is not None:
            if origin is typing.Required:
                required.add(name)
            elif origin is typing.NotRequired:
                required.discard(name)
            elif origin is not typing.Annotated and origin is not _READ_ONLY:
                break
            hint = typing.get_args(hint)[0]  # noqa: PLW2901 - what it stands around
    return required


def _same(given: Any) -> Any:
    return given


def _among(values: tuple[Any, ...]) -> Build:
    return lambda given: next((value for value in values if _json_of(value) == given), given)


def _json_of(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _fits(option: Any, given: Any) -> bool:
    """Whether a JSON value may be one of a type, as far as its kind and its names tell."""
    origin, arguments = typing.get_origin(option), typing.get_args(option)
    if option is Any or option is object:
        return True
    if origin is typing.Annotated:
        return _fits(arguments[0], given)
    if origin is typing.Literal:
        return any(_json_of(value) == given and type(_json_of(value)) is type(given) for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(argument, given) for argument in arguments)
    kind = origin or option
    if kind is float:
        return isinstance(given, int | float) and not isinstance(given, bool)
    if kind is int:
        return isinstance(given, int) and not isinstance(given, bool)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return any(member.value == given for member in kind)
    if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
        return isinstance(given, dict) and _has_fields(kind, given)
    if kind is tuple or (isinstance(kind, type) and issubclass(kind, Sequence) and kind is not str):
        return isinstance(given, list)
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return isinstance(given, dict)
    return type(given) is kind


def _has_fields(kind: Any, given: dict[str, Any]) -> bool:
    hints = typing.get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        fields = dataclasses.fields(kind)
        required = {it.name for it in fields if it.init and it.default is missing and it.default_factory is missing}
    else:
        required = _required_keys(kind)
    return required <= given.keys() <= hints.keys() and all(_fits(hints[name], value) for name, value in given.items())
