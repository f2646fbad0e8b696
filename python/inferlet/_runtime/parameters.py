"""What `main` is called with: the whole input, or its parts by the names of the parameters.

A `main` with one parameter gets the whole input, whatever the parameter is called. One with several, or with one behind
a `*`, is bound by name from the keys of the input. One without any gets nothing.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter
from types import FunctionType
from typing import Any

from inferlet.errors import ErrorCode, InferletError, new_error

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (*_POSITIONAL, Parameter.KEYWORD_ONLY)
_UNNAMED_KEY = "_positional"
"""Where the command line puts arguments without a name."""
_MAX_SHOWN_CHARS = 40
_WHOLE = "input"
"""What a parameter that takes the whole input is called, which may have a key of that name."""
_SCALARS = ("str", "int", "float", "bool")
"""Types that an object of JSON never has, by the names that annotations have for them."""
_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,), "None": (types.NoneType,)}
"""What of JSON fits each."""
_UNKNOWN = object()
"""An annotation that cannot be looked at."""


@dataclass(frozen=True)
class Arguments:
    """What a call takes."""

    by_position: Sequence[object] = ()
    by_name: Mapping[str, object] = field(default_factory=dict)


def bind(main: Callable[..., Any], value: object, entry: str) -> Arguments:
    """What `main` of the file `entry` gets of the input.

    A key that is missing or unknown is the error `invalid-input`.
    """
    plain = _plain_parameters(main)
    if plain is not None and len(plain) < 2:
        return Arguments((value,) if plain else ())
    try:
        parameters = list(inspect.signature(main).parameters.values())
    except ValueError:
        return Arguments((value,))
    kinds = {parameter.kind for parameter in parameters}
    named = [parameter for parameter in parameters if parameter.kind in _NAMED]
    takes_rest = Parameter.VAR_KEYWORD in kinds
    if not takes_rest and len(named) < 2:
        takes_whole = Parameter.VAR_POSITIONAL in kinds or any(parameter.kind in _POSITIONAL for parameter in named)
        if takes_whole or not named:
            return Arguments((value,) if takes_whole else ())
    return _bind_by_name(named, {} if value is None else value, entry, takes_rest=takes_rest)


def doubt(main: Callable[..., Any], value: object, entry: str, keys_read: Callable[[], Sequence[str] | None]) -> str | None:
    """What to say of a `main` with one parameter that seems to want a field of the input, and gets the whole input.

    `keys_read` tells which keys of the input it reads, where that can be told.
    """
    plain = _plain_parameters(main)
    if not isinstance(value, dict) or plain is None or len(plain) != 1:
        return None
    name = plain[0]
    why = _wants_a_field(main, name, value)
    if why is None or keys_read():
        return None
    head = "async def main" if inspect.iscoroutinefunction(main) else "def main"
    made = _dataclass(main, _annotation(main, name))
    by_name = f"write `{head}(*, {_written(main, name)})`, and it is bound by its name, or `{head}(input)` and input[{name!r}]"
    remedy = by_name if made is None else f"make one of it: `{made}(**{name})`"
    return f"main in {entry!r} has one parameter, which gets the whole input, {_shown(value)} of type dict, and {why}; {remedy}"


def _wants_a_field(main: Callable[..., Any], name: str, value: Mapping[str, object]) -> str | None:
    """Why the one parameter of `main` seems to want a field of the input; None where it may want all of it."""
    annotation = _annotation(main, name)
    kind = _scalar(annotation) or _dataclass(main, annotation)
    if kind is not None:
        return f"`{name}` is annotated as {kind}"
    if annotation is not None:
        return None
    defaults = getattr(main, "__defaults__", None)
    if defaults and not isinstance(defaults[0], dict | None):
        return f"`{name}` has the default {_shown(defaults[0])}, which is never used"
    return f"the input has the key {name!r}" if name in value and name != _WHOLE else None


def unfit(main: Callable[..., Any], by_name: Mapping[str, object], entry: str) -> str | None:
    """What to say of an argument that the annotation of its parameter does not fit; None where all fit."""
    for name, item in by_name.items():
        annotation = _annotation(main, name)
        if (kind := _scalar(annotation)) is not None:
            if type(item) not in (fitting for part in kind.split(" | ") for fitting in _TYPES[part]):
                return (
                    f"`{name}` of main in {entry!r} is annotated as {kind} and gets {_shown(item)} of type {type(item).__name__}; "
                    "annotations are not checked, and the types under [parameters] of Pie.toml are"
                )
        elif isinstance(item, dict) and (made := _dataclass(main, annotation)) is not None:
            return f"`{name}` of main in {entry!r} is annotated as {made} and gets a dict; make one of it: `{made}(**{name})`"
    return None


def _plain_parameters(main: Callable[..., Any]) -> tuple[str, ...] | None:
    """The parameters of a function that has no others than these, by position; None of anything else.

    Most are of this kind, and `inspect` takes its time.
    """
    if not isinstance(main, FunctionType) or hasattr(main, "__wrapped__"):
        return None
    code = main.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
        return None
    return code.co_varnames[: code.co_argcount]


def _annotation(main: Callable[..., Any], name: str) -> object:
    """How a parameter is annotated: a type, a text, or `_UNKNOWN`; None where it is not."""
    try:
        return getattr(main, "__annotations__", {}).get(name)
    except Exception:
        # Annotations are looked at when somebody asks for them, and may name what is imported for type checkers alone.
        return _UNKNOWN


def _scalar(annotation: object) -> str | None:
    """How a parameter is annotated, where no object of JSON fits that; None where one may."""
    if isinstance(annotation, str):
        parts = [part.strip() for part in annotation.split("|")]
    elif isinstance(annotation, types.UnionType):
        parts = ["None" if part is types.NoneType else getattr(part, "__name__", "") for part in typing.get_args(annotation)]
    else:
        parts = [annotation.__name__] if isinstance(annotation, type) else []
    if not parts or not all(part in _SCALARS or part == "None" for part in parts) or parts == ["None"]:
        return None
    return " | ".join(parts)


def _dataclass(main: Callable[..., Any], annotation: object) -> str | None:
    """The name of the dataclass that a parameter is annotated as; None where it is not."""
    if isinstance(annotation, str):
        annotation = getattr(main, "__globals__", {}).get(annotation)
    return annotation.__name__ if isinstance(annotation, type) and dataclasses.is_dataclass(annotation) else None


def _written(main: Callable[..., Any], name: str) -> str:
    """A parameter as it stands in the source: with its annotation and its default, where it has them.

    A long default is `...`: what is to be pasted is not cut inside.
    """
    kind = _scalar(_annotation(main, name))
    defaults = getattr(main, "__defaults__", None)
    if not defaults:
        return name if kind is None else f"{name}: {kind}"
    default = repr(defaults[0])
    default = default if len(default) <= _MAX_SHOWN_CHARS else "..."
    return f"{name}={default}" if kind is None else f"{name}: {kind} = {default}"


def _bind_by_name(named: Sequence[Parameter], value: object, entry: str, *, takes_rest: bool) -> Arguments:
    names = [parameter.name for parameter in named]
    if not isinstance(value, dict):
        raise _error(
            f"main in {entry!r} takes {_list(names)} by name, and the input is of type {type(value).__name__}; "
            "give an object with these keys, as by `-- --name VALUE` or `--input '{...}'`"
        )
    if not takes_rest:
        unknown = [key for key in value if key not in names]
        if unknown:
            raise _unknown(unknown[0], value, names, entry)
    missing = [parameter.name for parameter in named if parameter.default is Parameter.empty and parameter.name not in value]
    if missing:
        had = f"it has {_list(list(value))}" if value else "it is empty"
        raise _error(
            f"the input lacks {_list(missing)}, which main in {entry!r} takes by name; {had}. "
            f"Give it, as by `-- --{missing[0]} VALUE`, or give the parameter a default"
        )
    by_position = [value.get(each.name, each.default) for each in named if each.kind == Parameter.POSITIONAL_ONLY]
    only_by_position = {each.name for each in named if each.kind == Parameter.POSITIONAL_ONLY}
    return Arguments(by_position, {key: item for key, item in value.items() if key not in only_by_position})


def _unknown(key: str, value: Mapping[str, object], names: Sequence[str], entry: str) -> InferletError:
    parameters = f"main in {entry!r} takes {_list(names)} by name"
    unnamed = value[key]
    if key == _UNNAMED_KEY and isinstance(unnamed, list) and unnamed:
        return _error(f"the argument {_shown(unnamed[0])} has no name, and {parameters}; write it as `-- --{names[0]} VALUE`")
    near = difflib.get_close_matches(key, names, 1)
    meant = f"; did you mean {near[0]!r}?" if near else "; leave it out, or add a parameter"
    return _error(f"the input has the key {_shown(key)}, and {parameters}{meant}")


def _error(message: str) -> InferletError:
    return new_error(ErrorCode.INVALID_INPUT, message)


def _list(names: Sequence[str]) -> str:
    return ", ".join(_shown(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN_CHARS else f"{shown[:_MAX_SHOWN_CHARS]}..."
