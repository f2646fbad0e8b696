"""The configuration file: its text, its values, and the line on which each stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pie.config.origin import Origin
from pie.config.suggest import shortened
from pie.errors import PieError

_MAX_FILE_BYTES = 1 << 20

_HEADER = re.compile(r"\s*(\[{1,2})\s*([^\[\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_QUOTES = "\"' "


@dataclass(frozen=True)
class File:
    """A file that was read."""

    path: Path
    values: Mapping[str, Any]
    lines: tuple[str, ...]

    def origin(self, table: tuple[str, ...], key: str | None = None, *, nth: int = 0) -> Origin:
        """Where `key` of a table stands; `nth` counts the tables of that name, as of `[[model]]`.

        Without a key, the table.
        """
        line = self.line(table, key, nth=nth)
        where = str(self.path) if line is None else f"{self.path}:{line}"
        return Origin("file", where, shortened(".".join([*table, *([] if key is None else [key])])))

    def line(self, table: tuple[str, ...], key: str | None = None, *, nth: int = 0) -> int | None:
        """The line of a key or a table, from 1; None where it is not there, or written in another way."""
        return _line(self.lines, table, key, nth)


def read_file(path: Path) -> File:
    """Reads a configuration file; PieError `invalid-config` names the line where it is damaged."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _invalid(f"the configuration file {str(path)!r} cannot be read ({reason}); check its path") from error
    if len(content) > _MAX_FILE_BYTES:
        raise _invalid(f"the configuration file {str(path)!r} is larger than {_MAX_FILE_BYTES} bytes; leave out what is not a setting")
    try:
        text = content.decode("utf-8-sig")
        return File(path, tomllib.loads(text), tuple(text.splitlines()))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _invalid(f"{path}:{line}: the file is not UTF-8; save it as UTF-8") from error
    except RecursionError as error:
        raise _invalid(f"{path}: the file nests too deeply; no setting is nested") from error
    except ValueError as error:  # of the syntax, or a number of more digits than any can have
        found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line_number = f":{found[1] or len(text.splitlines())}" if found else ""
        reason = str(error)[: found.start()] if found else str(error)
        raise _invalid(f"{path}{line_number}: the file is not TOML: {reason}") from error


def _line(lines: tuple[str, ...], table: tuple[str, ...], key: str | None, nth: int) -> int | None:
    """The line, from 1, on which a table begins or a key of it is set; None where it is written in another way."""
    inside, seen = table == (), -1
    for number, line in enumerate(lines, 1):
        if header := _HEADER.match(line):
            inside = _split(header[2]) == table
            seen += inside
            if inside and key is None and seen == nth:
                return number
        elif inside and key is not None and (seen == nth or table == ()):
            name, equals, _ = line.partition("=")
            if equals and name.strip(_QUOTES + "\t") == key:
                return number
    return None


def _split(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; a quoted part may hold dots."""
    parts = re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", name)
    return tuple(part.strip(_QUOTES) for part in parts)


def _invalid(message: str) -> PieError:
    return PieError("invalid-config", message)
