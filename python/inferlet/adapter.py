"""Adapters: small changes of a model's weights (LoRA), by name."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from types import TracebackType

from wit_world.imports import adapter as _adapter

from inferlet import _absent, _arguments
from inferlet.errors import ArgumentTypeError, ErrorCode, InferletError, InvalidArgumentError, host
from inferlet.model import Model

__all__ = ["Adapter"]

_MISSING = "adapter-missing"
_MAX_SHOWN_CHARS = 60
_MAX_CHANGES = 1 << 16
"""More at once are refused by the engine."""
_WRITTEN = {
    "change": "Adapter.open(model, name).change(changes)",
    "fork": "Adapter.open(model, name).fork(new_name)",
    "load": "Adapter.create(model, name).load(folder)",
    "save": "Adapter.open(model, name).save(folder)",
}
"""How the methods are written."""


class Adapter:
    """An adapter of a model; `create` and `open` give one.

    It belongs to the user, and every program of the user finds it by its name, until it is deleted or the engine ends.
    A generator or a pass computes with what the adapter was when it was given it.

    Leaving its `with` block lets go of it; to use it afterwards is the error `invalid-argument`. The adapter of that
    name stays.
    """

    def __init__(self, raw: _adapter.Adapter) -> None:
        self._held: _adapter.Adapter | None = raw

    @classmethod
    def create(cls, model: Model, name: str, *, rank: int = 8, alpha: float = 16.0) -> Adapter:
        """A new adapter of that name, which changes nothing until it is loaded or trained.

        `rank` is 1 to 512; what the adapter changes is multiplied by `alpha / rank`. Errors: `adapter-exists` for a
        name that is taken; `limit-adapters` where there are too many, or they are too large; `unsupported` on a driver
        without adapters.
        """
        _arguments.of_type("model", model, Model)
        given = _arguments.text("name", name)
        rank, alpha = _arguments.count("rank", rank), _arguments.number("alpha", alpha)
        return cls(host(_adapter.Adapter.create, model._raw, given, rank, alpha))

    @classmethod
    def open(cls, model: Model, name: str) -> Adapter | None:
        """The adapter of that name; None where there is none. On a driver without adapters: `unsupported`."""
        _arguments.of_type("model", model, Model)
        try:
            return cls(host(_adapter.Adapter.open, model._raw, _arguments.text("name", name)))
        except InferletError as error:
            if error.code != _MISSING:
                raise
            _absent.note("Adapter.open", name, lambda: cls.names(model))
            return None

    @classmethod
    def names(cls, model: Model) -> list[str]:
        """The names of all adapters of the user, sorted."""
        _arguments.of_type("model", model, Model)
        return list(host(_adapter.Adapter.names, model._raw))

    @classmethod
    def delete(cls, model: Model, name: str) -> None:
        """Deletes the adapter of that name.

        Generators and contexts that have used it go on. Errors: `adapter-missing`; `adapter-busy` while passes are
        computed with it.
        """
        _arguments.of_type("model", model, Model)
        with cls(host(_adapter.Adapter.open, model._raw, _arguments.text("name", name))) as adapter:
            host(adapter._raw.destroy)

    def fork(self, new_name: str) -> Adapter:
        """A copy under another name, which takes no memory until one of both changes.

        Errors: as of `create`.
        """
        return Adapter(host(_instance(self, "fork")._raw.fork, _arguments.text("new_name", new_name)))

    def save(self, path: str) -> None:
        """Writes it to a folder in `/scratch`, in the format of PEFT.

        The folder then has `adapter_config.json` and `adapter_model.safetensors`; what had these names is replaced. A
        path that does not begin with `/` is one in `/scratch`. Errors: `invalid-argument` for a path that lies
        elsewhere, `files-off`, `limit-files`, `disk-full`.
        """
        host(_instance(self, "save")._raw.save, _arguments.text("path", path))

    def load(self, path: str) -> None:
        """Puts the LoRA adapter of a folder in its place, which PEFT or `save` wrote there.

        Errors: `invalid-adapter` where it does not fit the model, is damaged, or asks for what is not supported, and
        nothing changes then; `limit-adapters`; those of `save`.
        """
        host(_instance(self, "load")._raw.load, _arguments.text("path", path))

    def change(self, changes: Iterable[tuple[int, float]] = (), *, sigma: float | None = None) -> None:
        """Adds noise to its weights: of each seed, times a factor.

        It is the noise by which a pass with that `zo_seed` perturbs the adapter, where its factor is the adapter's
        sigma (0.02 at first). `sigma` sets another one. `inferlet.zo.Optimizer` calls this. Errors: `adapter-busy`
        where another program changes it meanwhile; `invalid-adapter` where the weights would not be finite.
        """
        adapter = _instance(self, "change")
        # What has no end is not read to its end: more than the engine takes is refused there.
        given = list(islice(changes, _MAX_CHANGES + 1))
        listed = [_change(index, change) for index, change in enumerate(given)]
        host(adapter._raw.change, listed, None if sigma is None else _arguments.number("sigma", sigma))

    @property
    def _raw(self) -> _adapter.Adapter:
        if self._held is None:
            raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, "the adapter was let go of; open it again by its name")
        return self._held

    def __enter__(self) -> Adapter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.__exit__(kind, error, traceback)


def _instance(given: object, method: str) -> Adapter:
    """The adapter that a method was called on, which is a model in `Adapter.load(model, folder)`."""
    if not isinstance(given, Adapter):
        raise ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, f"{method} is a method of an adapter: `{_WRITTEN[method]}`")
    return given


def _change(index: int, change: tuple[int, float]) -> _adapter.Change:
    try:
        seed, factor = change
    except (TypeError, ValueError):
        _arguments.refuse(f"changes[{index}]", change, "a seed and a factor")
    name = f"changes[{index}]"
    return _adapter.Change(seed=_arguments.signed(name, seed), factor=_arguments.number(name, factor))


def raw_adapter(name: str, given: Adapter | str) -> _adapter.Adapter:
    """The engine's adapter behind the argument of that name; what is not one is refused."""
    if isinstance(given, str):
        shown = repr(given) if len(given) <= _MAX_SHOWN_CHARS else "name"
        _arguments.refuse(name, given, f"an Adapter, such as Adapter.open(model, {shown})")
    _arguments.of_type(name, given, Adapter)
    return given._raw
