"""Adapters: small changes of a model's weights, by name."""

from __future__ import annotations

from types import TracebackType

from wit_world.imports import adapter as _adapter

from inferlet import _arguments
from inferlet.errors import InferletError, host
from inferlet.model import Model

__all__ = ["Adapter"]

_MISSING = "adapter-missing"


class Adapter:
    """An adapter of a model; `create` and `open` give one. Leaving its `with` block drops the handle alone."""

    def __init__(self, raw: _adapter.Adapter) -> None:
        self._raw = raw

    @classmethod
    def create(cls, model: Model, name: str) -> Adapter:
        """A new adapter of that name; on a driver without adapters the error is `unsupported`."""
        _arguments.of_type("model", model, Model)
        return cls(host(_adapter.Adapter.create, model._raw, _arguments.text("name", name)))

    @classmethod
    def open(cls, model: Model, name: str) -> Adapter | None:
        """The adapter of that name; None where there is none."""
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
        self._raw.__exit__(kind, error, traceback)
