"""What stands in for the engine where there is none: in plain Python, as in `help`, notebooks, type checkers and tests.

There the classes of the SDK, its values and what only computes work as they are. A call that needs the engine raises
`OutsideEngineError`, which says what to do. In the engine this module is never imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any, Generic, NoReturn, TypeVar

from inferlet import _outside_masks

_T = TypeVar("_T")
_PACKAGE = "inferlet"
_BINDINGS = "wit_world"
_INTERFACES = (
    "adapter",
    "chat",
    "client",
    "context",
    "files",
    "forward",
    "futures",
    "generation",
    "grammar",
    "http",
    "http_server",
    "masks",
    "messaging",
    "model",
    "monotonic_clock",
    "poll",
    "reasoning",
    "runtime",
    "sampling",
    "session",
    "tokenizer",
    "tools",
    "types",
)
"""The interfaces that modules of the SDK import."""


class OutsideEngineError(RuntimeError):
    """A call that needs the engine was made in plain Python."""


@dataclass
class Ok(Generic[_T]):
    """The answer of a call that went well."""

    value: _T


@dataclass(frozen=True)
class Err(Exception, Generic[_T]):  # noqa: N818  # the name that the bindings have
    """The error of a call."""

    value: _T


class _Kind(type):
    """The class of a class of the engine, whose members are made as they are asked for."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not name.isupper():
            return _refusing(f"{cls.__qualname__}.{name}")
        member = _Member(cls.__qualname__, name)
        setattr(cls, name, member)
        return member

    def __getitem__(cls, name: str) -> Any:
        """A member of an enumeration by its name."""
        return getattr(cls, name)


class _Value(metaclass=_Kind):
    """A record or a case of a variant: what it was made of. Two that were made of the same are equal."""

    def __init__(self, *values: object, **fields: object) -> None:
        self._made_of = (values, fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        fields: dict[str, Any] = self._made_of[1]
        if name in fields:
            return fields[name]
        return _refusing(f"{type(self).__qualname__}.{name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, _Value) and self._made_of == other._made_of

    __hash__ = None  # type: ignore[assignment]  # as those of the bindings

    def __repr__(self) -> str:
        values, fields = self._made_of
        parts = [repr(value) for value in values] + [f"{name}={value!r}" for name, value in fields.items()]
        return f"{type(self).__qualname__}({', '.join(parts)})"


@dataclass(frozen=True)
class _Member:
    """A member of an enumeration."""

    kind: str
    name: str

    def __repr__(self) -> str:
        return f"{self.kind}.{self.name}"


class _Interface(ModuleType):
    """An interface of the engine: what begins with a capital is a class, everything else a function."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        made: Any = _Kind(name, (_Value,), {"__module__": self.__name__}) if name[0].isupper() else _refusing(name)
        setattr(self, name, made)
        return made


def stand_in() -> None:
    """Has the modules of the SDK find what they import of the engine."""
    types = ModuleType("componentize_py_types", "Answers of calls.")
    vars(types).update(Ok=Ok, Err=Err)
    world, imports = ModuleType(_BINDINGS), ModuleType(f"{_BINDINGS}.imports")
    # A package has a path; nothing lies on these.
    vars(world).update(__path__=[], imports=imports)
    vars(imports).update(__path__=[])
    sys.modules.update({types.__name__: types, world.__name__: world, imports.__name__: imports})
    for name in _INTERFACES:
        interface = _Interface(f"{imports.__name__}.{name}")
        setattr(imports, name, interface)
        sys.modules[interface.__name__] = interface
    # Masks are numbers alone, and need no engine.
    vars(imports.masks).update(_outside_masks.FUNCTIONS)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(*_values: object, **_fields: object) -> NoReturn:
        raise OutsideEngineError(
            f"{_called() or name} needs the engine, and this is plain Python; run the program by `pie run FILE`, "
            "from Python by `pie.run(FILE, input)`, or in a test by the fixture `pie_run` (`pie.testing`)"
        )

    return refuse


def _called() -> str | None:
    """The name of the function of the SDK that was called from outside of it."""
    frame: FrameType | None = sys._getframe(1)
    name = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module != _PACKAGE and not module.startswith(f"{_PACKAGE}."):
            break
        if module != __name__:
            function = frame.f_code.co_qualname
            name = function if "." in function else f"{module.removeprefix(f'{_PACKAGE}.')}.{function}"
        frame = frame.f_back
    return name
