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

    def __hash__(self) -> int:
        # As those of the bindings.
        raise TypeError(f"unhashable type: {type(self).__qualname__!r}")

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


class _Interfaces(ModuleType):
    """The package of the interfaces, which are made as modules of the SDK import them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        interface = _Interface(f"{self.__name__}.{name}")
        if name == "masks":
            # They are numbers alone, and need no engine.
            vars(interface).update(_outside_masks.FUNCTIONS)
        setattr(self, name, interface)
        return interface


def stand_in() -> None:
    """Has the modules of the SDK find what they import of the engine."""
    types = ModuleType("componentize_py_types", "Answers of calls.")
    vars(types).update(Ok=Ok, Err=Err)
    world, imports = ModuleType(_BINDINGS), _Interfaces(f"{_BINDINGS}.imports")
    vars(world).update(imports=imports)
    sys.modules.update({module.__name__: module for module in (types, world, imports)})


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
