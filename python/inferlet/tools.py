"""Tools: what the model is given, the calls that it makes, and their answers."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from wit_world.imports import context as _context
from wit_world.imports import tools as _tools

from inferlet import _arguments, _json
from inferlet._decoding import EventDecoder
from inferlet.errors import ErrorCode, InvalidArgumentError, host
from inferlet.grammar import Grammar, GrammarConstraint, Matcher
from inferlet.model import Model

__all__ = [
    "Choice",
    "Decoder",
    "Event",
    "Tool",
    "answer_prefix",
    "equip_prefix",
    "native_grammar",
    "native_matcher",
    "parse_call",
    "tool",
]

_MAX_NAME_CHARS = 64
"""A longer text is not the name of a tool."""


class Event:
    """What the tokens of one `Decoder.feed` meant; match on the classes below."""

    @dataclass(frozen=True)
    class Idle:
        """Nothing of a call."""

    @dataclass(frozen=True)
    class Start:
        """A call begins."""

    @dataclass(frozen=True)
    class Call:
        """A whole call: the tool, and its arguments as a JSON object."""

        name: str
        args: str
        id: str | None = field(default=None, kw_only=True)

        @property
        def arguments(self) -> str:
            """Another name of `args`."""
            return self.args

    @dataclass(frozen=True)
    class Malformed:
        """What began as a call and is none: its text, as it was written."""

        text: str


AnyEvent = Event.Idle | Event.Start | Event.Call | Event.Malformed


class Decoder(EventDecoder[AnyEvent]):
    """Finds the calls of tools in what the model says, inside thoughts too.

    Of a model whose template writes no calls every event is `Idle`.
    """

    def __init__(self, model: Model) -> None:
        _arguments.of_type("model", model, Model)
        super().__init__(_tools.ToolDecoder.create(model._raw), _event, Event.Idle)


def _event(raw: _tools.ToolEvent) -> AnyEvent:
    match raw:
        case _tools.ToolEvent_Start():
            return Event.Start()
        case _tools.ToolEvent_Call(value=call):
            return _call(call)
        case _tools.ToolEvent_Malformed(value=text):
            return Event.Malformed(text)
        case _:
            return Event.Idle()


def _call(raw: _tools.ToolCall) -> Event.Call:
    return Event.Call(raw.name, raw.args, id=raw.id)


Schema = str | Mapping[str, Any]
"""A schema as its JSON text or as a dict: `{"name", "description", "parameters"}`, the same within
`{"type": "function", "function"}`, or with `inputSchema` in the place of `parameters`.
"""

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


class Tool(Generic[_Parameters, _Answer]):
    """A function that the model can call: what `tool` makes of one.

    Its parameters have plain names, and types that have a JSON Schema: str, int, float, bool, list, dict, Literal or a
    union of them. Any other one is the error `invalid-argument`.
    """

    def __init__(self, function: Callable[_Parameters, _Answer]) -> None:
        self._function = function
        self.name: str = function.__name__
        """The name of the function, by which the model calls it."""
        self._signature = inspect.signature(function)
        hints = typing.get_type_hints(function)
        properties = {}
        for parameter in self._signature.parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                _refuse(f"the parameter {parameter.name} of {self.name} has no name that a model could give; use plain parameters")
            properties[parameter.name] = _schema_of(hints.get(parameter.name, Any), f"the parameter {parameter.name} of {self.name}")
        required = [each.name for each in self._signature.parameters.values() if each.default is each.empty]
        self.schema: dict[str, Any] = {
            "name": self.name,
            "description": inspect.getdoc(function) or "",
            "parameters": {"type": "object", "properties": properties, "required": required},
        }
        """What the model is told: `{"name", "description", "parameters"}`, the parameters as a JSON Schema."""

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        """Calls the function itself."""
        return self._function(*args, **kwargs)

    def call(self, args: str) -> _Answer:
        """Calls the function with the arguments that the model gave, a JSON object.

        Arguments that do not fit its parameters are the error `invalid-argument`.
        """
        try:
            given = json.loads(_arguments.text("args", args))
        except ValueError as error:
            _refuse(f"the call of {self.name}: the arguments are not JSON: {error}")
        if not isinstance(given, dict):
            _refuse(f"the call of {self.name}: the arguments are not an object")
        properties = self.schema["parameters"]["properties"]
        for name in given:
            if name not in properties:
                _refuse(f"the call of {self.name}: there is no argument {name!r}")
        for name in self.schema["parameters"]["required"]:
            if name not in given:
                _refuse(f"the call of {self.name}: the argument {name!r} is missing")
        for name, value in given.items():
            if not _fits(value, properties[name]):
                _refuse(f"the call of {self.name}: the argument {name!r} is not of the type {json.dumps(properties[name])}")
        return self._function(**given)  # type: ignore[call-arg]  # checked above


def tool(function: Callable[_Parameters, _Answer]) -> Tool[_Parameters, _Answer]:
    """Makes a function a tool: its name, its documentation and its type hints are what the model is told.

    Errors: `invalid-argument`, as `Tool` has it.
    """
    if not callable(function):
        _arguments.refuse("function", function, "a function")
    return Tool(function)


def equip_prefix(model: Model, schemas: Iterable[Schema | Tool[..., Any]]) -> list[int]:
    """The tokens that give the model tools, behind other messages and before a question.

    On an empty context use `Context.equip`, which begins the conversation. Errors: `invalid-argument` for a schema of
    another form, a name that cannot stand in a call, and two tools of one name; `template-error` where the template has
    no place for tools.
    """
    _arguments.of_type("model", model, Model)
    return list(host(_tools.equip_tokens, model._raw, schema_texts(schemas)))


def answer_prefix(model: Model, name: str, value: object, *, id: str | None = None) -> list[int]:  # noqa: A002
    """The tokens of the answer of a tool, behind a turn whose end is not written yet.

    `value` is a text, or anything that JSON can hold; `id` is that of the call, where the model gave one.
    """
    _arguments.of_type("model", model, Model)
    return list(host(_tools.answer_tokens, model._raw, _arguments.text("name", name), answer_text(value), call_id(id)))


Choice = Literal["auto", "none", "required"] | Mapping[str, Any] | Tool[..., Any]
"""Whether the model is to call a tool: as it likes, none, at least one, or the one that is given, once. That is a tool,
or a dict with its name, `{"name": ...}` or `{"type": "function", "function": {"name": ...}}`.
"""


def native_grammar(model: Model, schemas: Iterable[Schema | Tool[..., Any]], *, choice: Choice = "required") -> Grammar | None:
    """The grammar of what the model may say where it was given these tools: no call in it is malformed.

    A call is one of the tools, its arguments fit their schema, and it is written as the template of the model writes
    calls, several where the template writes several. None where the template has no way that can be enforced. Errors:
    `invalid-argument` for a choice that is not among the tools, and as `equip_prefix`; `invalid-grammar` for parameters
    that cannot be enforced.
    """
    _arguments.of_type("model", model, Model)
    raw = host(_tools.native_grammar, model._raw, schema_texts(schemas), _raw_choice("choice", choice))
    return None if raw is None else Grammar(raw)


def native_matcher(model: Model, schemas: Iterable[Schema | Tool[..., Any]], *, choice: Choice = "required") -> Matcher | None:
    """A matcher of `native_grammar`, for a `GrammarConstraint`; None and errors are those of it."""
    grammar = native_grammar(model, schemas, choice=choice)
    return None if grammar is None else Matcher(grammar, model.tokenizer())


def constraints_of_choice(context: _context.Context, model: Model, choice: Choice | None) -> list[GrammarConstraint]:
    """What a choice among the tools of a context asks of a generation."""
    if choice is None:
        return []
    raw = host(_tools.choice_grammar, context, _raw_choice("tool_choice", choice))
    return [] if raw is None else [GrammarConstraint.from_grammar(Grammar(raw), model)]


def _raw_choice(argument: str, choice: Choice) -> _tools.ToolChoice:
    match choice:
        case "auto":
            return _tools.ToolChoice_Auto()
        case "none":
            return _tools.ToolChoice_None_()
        case "required":
            return _tools.ToolChoice_Required()
        case Tool(name=name) | {"function": {"name": str(name)}} | {"name": str(name)}:
            return _tools.ToolChoice_Named(_arguments.text(argument, name))
        case _:
            is_short = isinstance(choice, str) and len(choice) <= _MAX_NAME_CHARS
            meant = f" (for the tool of that name {json.dumps({'name': choice})})" if is_short else ""
            return _arguments.refuse(argument, choice, f'"auto", "none", "required", a tool, or {{"name": ...}}{meant}')


def parse_call(model: Model, text: str) -> Event.Call | None:
    """The first call of a finished text; None where it has none."""
    _arguments.of_type("model", model, Model)
    call = host(_tools.parse_call, model._raw, _arguments.text("text", text))
    return None if call is None else _call(call)


def schema_texts(schemas: Iterable[Schema | Tool[..., Any]]) -> list[str]:
    """The JSON texts of schemas."""
    if isinstance(schemas, str | Mapping | Tool) or not isinstance(schemas, Iterable):
        _arguments.refuse("schemas", schemas, "a list of tools, each a function under @tool, a dict or a JSON text")
    return [_schema_text(f"schemas[{place}]", schema) for place, schema in enumerate(schemas)]


def _schema_text(name: str, schema: Schema | Tool[..., Any]) -> str:
    if isinstance(schema, Tool):
        schema = schema.schema
    if isinstance(schema, str):
        return _arguments.text(name, schema)
    if isinstance(schema, Mapping):
        return _json.dumps(dict(schema), name, ErrorCode.INVALID_ARGUMENT)
    return _arguments.refuse(name, schema, "a JSON text, a dict or a tool: a function under @tools.tool")


def answer_text(value: object) -> str:
    """The text of an answer: a string as it is, anything else as JSON."""
    return _arguments.text("value", value) if isinstance(value, str) else _json.dumps(value, "value", ErrorCode.INVALID_ARGUMENT)


def call_id(value: str | None) -> str | None:
    """The id of a call."""
    return None if value is None else _arguments.text("id", value)


_KINDS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    list: {"type": "array"},
    dict: {"type": "object"},
    type(None): {"type": "null"},
    Any: {},
}


def _schema_of(hint: Any, what: str) -> dict[str, Any]:
    """The JSON schema of a type hint."""
    if hint in _KINDS:
        return dict(_KINDS[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, Sequence):
        return {"type": "array", "items": _schema_of(arguments[0], what)}
    if origin in (dict, Mapping) and arguments[0] is str:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1], what)}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema_of(each, what) for each in arguments]}
    return _refuse(
        f"{what} has the type {hint!r}, which has no JSON schema here; use str, int, float, bool, list, dict, Literal or a union of them"
    )


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value is of a type that `_schema_of` described."""
    if "anyOf" in schema:
        return any(_fits(value, each) for each in schema["anyOf"])
    if "enum" in schema:
        return any(type(value) is type(each) and value == each for each in schema["enum"])
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list) and all(_fits(item, schema.get("items", {})) for item in value)
        case "object":
            return isinstance(value, dict) and all(_fits(item, schema.get("additionalProperties", {})) for item in value.values())
        case _:
            return True


def _refuse(message: str) -> typing.NoReturn:
    raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {})
