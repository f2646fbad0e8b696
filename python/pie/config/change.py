"""Changes one setting in a configuration file: its line, and nothing else of what the user has written there."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pie.config.file import File, read_file
from pie.config.load import Flags, load
from pie.config.origin import Origin
from pie.config.settings import Setting, settings
from pie.config.show import as_value
from pie.config.suggest import shortened, unknown
from pie.errors import PieError

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# Lines that one value may take.
_MAX_VALUE_LINES = 4096


class _Place(NamedTuple):
    """Where a setting stands in a file."""

    table: tuple[str, ...]
    """The names in the header of its table."""
    key: str
    setting: Setting


def change_setting(path: Path, name: str, text: str) -> str:
    """Sets the setting `name`, as in `server.port`, to the value that a text stands for; returns its line.

    The file is made where it is missing, and readable by its user alone then. Nothing is written where the
    configuration would not be valid afterwards. PieError `invalid-config` names what is wrong.
    """
    place = _place(name)
    value = place.setting.parse(_absolute(text, place.setting), name, Origin("flag", "pie config set"))
    path = path.resolve()
    file = read_file(path) if path.exists() else File(path, {}, ())
    line = f"{place.key} = {as_value(value)}"
    lines = _changed(file, place, line)
    _check(file, place, lines, line)
    _write(path, "\n".join(lines) + "\n")
    return line


def _place(name: str) -> _Place:
    section, _, rest = name.partition(".")
    origin = Origin("flag", "pie config set")
    if section not in settings():
        raise unknown(section, settings(), origin, what="section")
    table: tuple[str, ...] = (section,)
    key = rest
    if section in {"model", "mcp"}:
        owner, _, key = rest.rpartition(".")
        if not owner:
            raise _invalid(f"{shortened(name)!r} names no {section}; write it as {section}.NAME.{rest or 'KEY'}")
        table = (section, owner)
    if key not in settings()[section] or (section == "model" and key == "name"):
        raise unknown(key, [row for row in settings()[section] if row != "name"], origin, what="setting", place=f" in [{section}]")
    return _Place(table, key, settings()[section][key])


def _absolute(text: str, setting: Setting) -> str:
    """What the user means by a path is one of the current folder; in the file it would be one of the file's."""
    if not setting.is_path or not text or text.startswith("~") or (setting.name == "path" and "/" not in text):
        return text
    return str(Path(text).absolute())


def _changed(file: File, place: _Place, line: str) -> list[str]:
    lines = list(file.lines)
    start, end = _span(file, place)
    if start is not None:
        return [*lines[: start - 1], line, *lines[end:]]
    table, nth = _table(file, place)
    header = file.line(table, nth=nth)
    if header is None:
        return [*lines, *([""] if lines and lines[-1].strip() else []), f"[{_dotted(place.table)}]", line]
    return [*lines[:header], line, *lines[header:]]


def _table(file: File, place: _Place) -> tuple[tuple[str, ...], int]:
    """The table as it is written: a model stands in `[model.NAME]`, or in a `[[model]]` of that name."""
    models = file.values.get("model")
    if place.table[0] == "model" and isinstance(models, list):
        names = [values.get("name") if isinstance(values, dict) else None for values in models]
        if place.table[1] not in names:
            raise _invalid(f"{file.path} has no [[model]] with name = {place.table[1]!r}; add one by hand, with its path")
        return ("model",), names.index(place.table[1])
    return place.table, 0


def _span(file: File, place: _Place) -> tuple[int | None, int]:
    """The lines of the present value, from 1, the first and the last; None where it has none of its own."""
    table, nth = _table(file, place)
    first = file.line(table, place.key, nth=nth)
    if first is None:
        return None, 0
    for last in range(first, min(len(file.lines), first + _MAX_VALUE_LINES) + 1):
        try:
            tomllib.loads("\n".join(file.lines[first - 1 : last]))
        except tomllib.TOMLDecodeError:
            continue  # an array may have a line for each of its values
        return first, last
    return first, first


def _check(file: File, place: _Place, lines: list[str], line: str) -> None:
    """Refuses to write what would change anything else, or would not be a configuration."""
    shown = place.key if place.setting.is_secret else repr(line)
    with tempfile.TemporaryDirectory(prefix="pie-config-") as folder:
        # Beside nothing: relative paths in it are those of the file's folder, and are not looked at here.
        written = Path(folder) / file.path.name
        written.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            after = read_file(written).values
            load(Flags(file=written), variables={})
        except PieError as error:
            message = error.message.replace(str(written), str(file.path))
            raise _invalid(f"{shown} was not written, for the configuration would not be valid: {message}") from error
    if _without(after, place) != _without(file.values, place):
        header = _dotted(place.table)
        raise _invalid(f"{file.path} is written in a way that only its author can change; put {shown} into [{header}] by hand")


def _without(values: Mapping[str, Any], place: _Place) -> dict[str, Any]:
    """The values of a file but the one of a setting, and tables that hold nothing."""
    copied = {name: value for name, value in values.items() if name != place.table[0]}
    section = values.get(place.table[0], {})
    if isinstance(section, list):
        rest: Any = [{key: value for key, value in one.items() if key != place.key or one.get("name") != place.table[1]} for one in section]
    elif len(place.table) == 1:
        rest = {key: value for key, value in section.items() if key != place.key}
    else:
        own = {key: value for key, value in section.get(place.table[1], {}).items() if key != place.key}
        rest = {name: value for name, value in section.items() if name != place.table[1]} | ({place.table[1]: own} if own else {})
    return copied | ({place.table[0]: rest} if rest else {})


def _write(path: Path, text: str) -> None:
    """Writes the file whole or not at all."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            written = Path(folder) / path.name
            with written.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            written.chmod(mode)
            written.replace(path)
    except OSError as error:
        raise _invalid(f"the configuration file {str(path)!r} cannot be written ({error.strerror}); check its folder") from error


def _dotted(table: tuple[str, ...]) -> str:
    return ".".join(name if _BARE_KEY.fullmatch(name) else f'"{name}"' for name in table)


def _invalid(message: str) -> PieError:
    return PieError("invalid-config", message)
