"""Adapters: small changes of a model's weights, by name."""

from __future__ import annotations

from types import TracebackType

from wit_world.imports import adapter as _adapter

from inferlet import _arguments
from inferlet.errors import ErrorCode, InferletError, InvalidArgumentError, host
from inferlet.model import Model

__all__ = ["Adapter"]

_MISSING = "adapter-missing"


class Adapter:
    """An adapter of a model; `create` and `open` give one.

    Leaving its `with` block lets go of it; to use it afterwards is the error `invalid-argument`. The adapter of that
    name stays.
    """

    def __init__(self, raw: _adapter.Adapter) -> None:
        self._held: _adapter.Adapter | None = raw

    @classmethod
    def create(cls, model: Model, name: str) -> Adapter:
        """A new adapter of that name; on a driver without adapters it is the error `unsupported`."""
        _arguments.of_type("model", model, Model)
        return cls(host(_adapter.Adapter.create, model._raw, _arguments.text("name", name)))

    @classmethod
    def open(cls, model: Model, name: str) -> Adapter | None:
        """The adapter of that name; None where there is none. On a driver without adapters: `unsupported`."""
        _arguments.of_type("model", model, Model)
        try:
            return cls(host(_adapter.Adapter.open, model._raw, _arguments.text("name", name)))
        except InferletError as error:
            if error.code != _MISSING:
                raise
            return None

    def __enter__(self) -> Adapter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.__exit__(kind, error, traceback)


def raw_adapter(name: str, given: Adapter) -> _adapter.Adapter:
    """The engine's adapter behind the argument of that name."""
    _arguments.of_type(name, given, Adapter)
    if given._held is None:
        raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, "the adapter was let go of; open it again by its name")
    return given._held
