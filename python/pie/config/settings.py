"""Every setting of the tree as a row, and the check of one value against it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta

from pie import _engine
from pie.config.environment import home
from pie.config.origin import Origin
from pie.config.suggest import shortened
from pie.config.tree import ClientConfig, EngineConfig, McpServerConfig, ModelConfig, RuntimeConfig, ServerConfig, SnapshotConfig
from pie.errors import PieError

NO_LIMIT = "none"
"""What is written for no limit: the format of the file has no null."""

_UNITS = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)},
}
_SIZE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?) ?([KMGT]?i?B)")

_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class Setting:
    """One thing that can be configured."""

    section: str
    name: str
    kind: Any
    """What it may be, without what limits it: int, float, str, Path, a Literal, a tuple of str."""
    meta: Meta
    """Its range and description."""
    default: Any
    """What holds where it is not given; of a folder, how it is written."""
    optional: bool = False
    """Whether it may be None."""

    @property
    def description(self) -> str:
        """What it is, in a sentence or two."""
        return self.meta.description or ""

    @property
    def is_path(self) -> bool:
        """Whether it names a file or a folder; a text that does may be empty."""
        return self.kind is Path or self.name == "path" or bool((self.meta.extra or {}).get("path"))

    @property
    def is_secret(self) -> bool:
        """Whether its value is shown to nobody."""
        return bool((self.meta.extra or {}).get("secret"))

    @property
    def driver(self) -> str | None:
        """The one driver whose option it is; None: of all, or of the engine."""
        name: str | None = (self.meta.extra or {}).get("driver")
        return name

    @property
    def expected(self) -> str:
        """What it may be, as a noun: `a whole number from 0 to 65535`."""
        choices = get_args(self.kind)
        if self.kind is bool:
            text = "true or false"
        elif self.kind is int:
            text = f"a whole number from {self.meta.ge} to {self.meta.le}"
        elif self.kind is float:
            text = f"a number from {self.meta.ge:.10g} to {self.meta.le:.10g}"
        elif self.kind is Path:
            text = "a path"
        elif get_origin(self.kind) is tuple:
            text = "a list of texts"
        elif choices:
            text = " or ".join(f'"{choice}"' for choice in choices)
        elif self.meta.pattern:
            text = "a name of letters, digits, `.`, `_`, `-` and `/`, beginning with a letter or digit"
        else:
            text = "a text that is not empty" if self.meta.min_length else "a text"
        if self.name.endswith("_bytes"):
            text += ', or a text with a unit, as in "256MiB"'
        return text + (f', or "{NO_LIMIT}"' if self.optional else "")

    def check(self, raw: Any, key: str, origin: Origin) -> Any:
        """The value that `raw`, as the file holds it, stands for.

        Raises PieError `invalid-config`, which names value, range and origin.

        A path that begins with `~` is in the user's own folder.
        """
        if self.optional and raw == NO_LIMIT:
            return None
        if self.name.endswith("_bytes") and isinstance(raw, str):
            raw = _size(raw)
        try:
            if self.is_path and (raw or self.kind is Path or self.name == "path"):
                value: Any = _path(msgspec.convert(raw, str))
                return Path(value) if self.kind is Path else value
            return msgspec.convert(raw, Annotated[self.kind, self.meta])
        except (msgspec.ValidationError, ValueError) as error:
            raise self.refused(raw, key, origin) from error

    def parse(self, text: str, key: str, origin: Origin) -> Any:
        """The value that a text of the environment or of a flag stands for; as `check` otherwise."""
        raw: Any = text
        if get_origin(self.kind) is tuple:
            raw = [part.strip() for part in text.split(",") if part.strip()]
        elif self.kind is bool:
            raw = _TRUTHS.get(text.strip().lower(), text)
        elif self.kind in {int, float} and not (self.optional and text == NO_LIMIT):
            raw = _number(text)
            if self.kind is int and isinstance(raw, float) and raw.is_integer():
                raw = int(raw)
        return self.check(raw, key, origin)

    def refused(self, raw: Any, key: str, origin: Origin) -> PieError:
        """The error of a value that this setting cannot have."""
        shown = "what is there" if self.is_secret else shortened(repr(raw))
        message = f"{origin.where}: {key} = {shown} is not possible; give {self.expected}"
        return PieError("invalid-config", message, {"key": key, "origin": str(origin)})


@cache
def settings() -> dict[str, dict[str, Setting]]:
    """Every setting by section and name, in the order of the reference: what the engine does not know goes first."""
    stated = {section: {row.name: _stated(row) for row in rows} for section, rows in _engine.settings().items()}
    return {
        "engine": _rows("engine", EngineConfig, stated["engine"]),
        "limits": stated["limits"],
        "runtime": _rows("runtime", RuntimeConfig, stated["runtime"]),
        "snapshots": _rows("snapshots", SnapshotConfig, stated["snapshots"]),
        "server": _rows("server", ServerConfig, stated["server"]),
        "client": _rows("client", ClientConfig, {}),
        "model": _rows("model", ModelConfig, stated["model"]),
        "mcp": _rows("mcp", McpServerConfig, stated["mcp"]),
    }


def of_engine(section: str, values: msgspec.Struct) -> dict[str, Any]:
    """What of a section is the engine's, as it takes it."""
    return {row.name: getattr(values, row.name) for row in _engine.settings()[section]}


def _rows(section: str, tree: type[msgspec.Struct], stated: dict[str, Setting]) -> dict[str, Setting]:
    hints = get_type_hints(tree, include_extras=True)
    rows = {}
    for item in msgspec.structs.fields(tree):
        if item.name not in stated and get_origin(hints[item.name]) is Annotated:
            kind, meta = get_args(hints[item.name])
            default = (meta.extra or {})["default"] if item.default is NODEFAULT else item.default
            rows[item.name] = Setting(section, item.name, kind, meta, default)
    return rows | stated


_SECRETS = {("mcp", "env"), ("mcp", "headers")}
"""What the engine states and nobody is shown: keys of servers stand there."""

_KINDS: dict[str, Any] = {
    "whole": int,
    "seconds": float,
    "flag": bool,
    "text": str,
    "path": str,
    "texts": tuple[str, ...],
}


def _stated(row: _engine.Setting) -> Setting:
    """A row of a table of the engine."""
    kind = Literal[tuple(row.choices)] if row.kind == "choice" else _KINDS[row.kind]
    low, high = row.low, row.high
    if row.kind in {"whole", "seconds"}:
        meta = Meta(ge=low, le=high, description=row.description)
    elif row.kind == "text":
        meta = Meta(min_length=int(low or 0), max_length=None if high is None else int(high), description=row.description)
    else:
        extra = {"path": row.kind == "path", "secret": (row.section, row.name) in _SECRETS}
        meta = Meta(description=row.description, extra=extra)
    return Setting(row.section, row.name, kind, meta, row.default, row.optional)


def _size(text: str) -> Any:
    """The bytes that a text with a unit means; the text itself where it is none."""
    if not (match := _SIZE.fullmatch(text)):
        return text
    n_bytes = float(match[1]) * _UNITS[match[2]] if "." in match[1] else int(match[1]) * _UNITS[match[2]]
    return int(n_bytes) if not isinstance(n_bytes, float) or n_bytes.is_integer() else text


def _number(text: str) -> Any:
    """The number that a text is; the text itself where it is none."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _path(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("no path")
    if text == "~" or text.startswith("~/"):
        return str(home() / text[2:])
    return text
