"""Writes a configuration out: as a file that makes it again, with the origin of each value beside it, or as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from pie.config.settings import NO_LIMIT, settings
from pie.config.tree import Config


def as_toml(config: Config) -> str:
    """The configuration in the form of its file, each value with its origin as a comment.

    Reading the text as a file gives the same configuration.
    """
    lines = []
    for header, key, values in _tables(config):
        lines += ["", header]
        rows = [(_row(key, name, value), str(config.origins[f"{key}.{name}"])) for name, value in values.items()]
        width = min(48, max(len(row) for row, _ in rows))
        lines += [f"{row:<{width}}  # {origin}" for row, origin in rows]
    return "\n".join(lines).lstrip("\n") + "\n"


def as_json(config: Config) -> str:
    """The configuration as one JSON object: each value with its origin, no limit as null."""
    sections: dict[str, Any] = {}
    for header, key, values in _tables(config):
        rows = {name: {"value": _shown(key, name, value), "origin": _origin(config, f"{key}.{name}")} for name, value in values.items()}
        if header == "[[model]]":
            sections.setdefault("model", []).append(rows)
        elif key.startswith("mcp."):
            sections.setdefault("mcp", {})[key.removeprefix("mcp.")] = rows
        else:
            sections[key] = rows
    return json.dumps(sections, indent=2, ensure_ascii=False)


def _row(section: str, name: str, value: Any) -> str:
    """A line of a file. One with a secret is a comment: it is not shown, and so does not make it again."""
    return f"# {name} is set and is not shown" if _is_hidden(section, name, value) else f"{name} = {as_value(value)}"


def _shown(section: str, name: str, value: Any) -> Any:
    return "(not shown)" if _is_hidden(section, name, value) else _plain(value)


def _is_hidden(section: str, name: str, value: Any) -> bool:
    return bool(value) and settings()[section.partition(".")[0]][name].is_secret


def _tables(config: Config) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The header of each table, the name before its keys, and its values."""
    yield "[engine]", "engine", _values("engine", config.engine)
    yield "[limits]", "limits", dict(config.limits)
    yield "[runtime]", "runtime", _values("runtime", config.runtime)
    yield "[snapshots]", "snapshots", _values("snapshots", config.snapshots)
    yield "[server]", "server", _values("server", config.server)
    yield "[client]", "client", _values("client", config.client)
    for model in config.models:
        yield "[[model]]", f"model.{model.name}", _values("model", model)
    for name, server in config.mcp.items():
        header = f"mcp.{name}" if "." not in name else f'mcp."{name}"'
        yield f"[{header}]", f"mcp.{name}", _values("mcp", server)


def _values(section: str, values: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(values, name) for name in settings()[section]}


def _origin(config: Config, key: str) -> dict[str, str]:
    origin = config.origins[key]
    return {name: text for name, text in dataclasses.asdict(origin).items() if text}


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def as_value(value: Any) -> str:
    """The value as TOML. Its texts are those of JSON but for DEL, which has to be escaped as well."""
    value = NO_LIMIT if value is None else _plain(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
