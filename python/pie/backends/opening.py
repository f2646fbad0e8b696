"""Back ends by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from pie.backends.base import Driver, DriverOptions
from pie.backends.sizes import invalid
from pie.config.tree import DriverName
from pie.errors import PieError

BACKENDS: tuple[str, ...] = tuple(name for name in get_args(DriverName) if name != "dummy")
"""The names that `open_driver` knows: modules of this package, each with `open_driver` and its `OPTIONS`."""


def open_driver(name: str, folder: Path, options: DriverOptions | None = None, own: Mapping[str, Any] | None = None) -> Driver:
    """Loads a model folder on the back end of that name; `own` are options of that back end itself.

    Raises PieError `invalid-model` for the folder, `invalid-argument` for the name or the options, and `invalid-config`
    where the package that a back end needs is not installed.
    """
    if name not in BACKENDS:
        raise PieError("invalid-argument", f"the back end {name!r} is unknown; choose one of {', '.join(BACKENDS)}")
    try:
        # Each back end is imported when it is asked for: torch alone takes seconds.
        module = import_module(f"pie.backends.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "pie":
            raise
        remedy = f"the {name} back end needs {error.name}, which is not installed: pip install 'pie-engine[{name}]'"
        raise PieError("invalid-config", remedy) from None
    driver: Driver = module.open_driver(folder, _options(name, module.OPTIONS, options or DriverOptions(), own or {}))
    return driver


def check_own(name: str, own: Mapping[str, Any], known: Sequence[str] = ()) -> None:
    """PieError `invalid-argument` for an option that is not `known` among those that the back end has of its own."""
    for option in own:
        if option not in known:
            there_are = f"its own options are {', '.join(known)}" if known else "it has none of its own"
            raise invalid(f"the back end {name} has no option {option}: {there_are}; leave {option} out", option)


def _options(name: str, kind: type[DriverOptions], options: DriverOptions, own: Mapping[str, Any]) -> DriverOptions:
    """The options as a back end takes them, of which `kind` is the type."""
    common = {field.name for field in fields(DriverOptions)}
    given = {field.name: getattr(options, field.name) for field in fields(options)}
    others = [field for field in fields(options) if field.name not in common]
    set_own = {field.name: given[field.name] for field in others if given[field.name] != field.default}
    own = {**set_own, **own}
    check_own(name, own, [field.name for field in fields(kind) if field.name not in common])
    return kind(**{option: given[option] for option in common}, **own)
