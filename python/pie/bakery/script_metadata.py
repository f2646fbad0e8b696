"""What a Python script says of itself in a comment: inline metadata, by PEP 723.

# /// script
# dependencies = ["python-slugify>=8"]
#
# [tool.pie]
# files = ["prompts"]
# ///
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pie.bakery.toml_text import read_toml
from pie.config.suggest import nearest, shortened
from pie.errors import PieError

MAX_METADATA_BYTES = 256 << 10
MAX_FILES = 64
"""The most files and folders that a script names."""

_BEGIN = "# /// script"
_END = "# ///"
_FIELDS = frozenset({"dependencies", "requires-python", "tool"})
_NEARLY_BEGUN = re.compile(
    r"^(#[ \t]*/+[ \t]*script)[ \t]*\r?\n#[ \t]*(?:dependencies|requires-python)[ \t]*=", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True)
class ScriptMetadata:
    """The metadata of a script; each as it was written."""

    dependencies: tuple[str, ...]
    files: tuple[str, ...]
    """`tool.pie.files`: files and folders beside the script that belong to the program."""


def script_metadata(file: str, content: bytes) -> ScriptMetadata | None:
    """What the script `file` says of itself; None where it says nothing.

    Raises PieError `build-failed` for a block that cannot be read, and for several.
    """
    blocks = _blocks(content.decode("utf-8-sig", "replace"))
    if not blocks:
        _check_beginning(file, content.decode("utf-8-sig", "replace"))
        return None
    if len(blocks) > 1:
        raise PieError("build-failed", f"{file}: it has {len(blocks)} blocks of metadata ({_BEGIN!r}), and may have one; join them")
    text = "\n".join(line[2:] for line in blocks[0]).encode()
    if len(text) > MAX_METADATA_BYTES:
        raise PieError("build-failed", f"{file}: its metadata have {len(text)} bytes, more than {MAX_METADATA_BYTES}; shorten them")
    place = f"the metadata of {file}"
    found = read_toml(place, text)
    _check_fields(found, place)
    return ScriptMetadata(_texts(found, "dependencies", place, '["attrs>=25"]'), _files(found, place))


def _check_beginning(file: str, text: str) -> None:
    """Refuses a comment that is meant as metadata, and begins in another way."""
    found = _NEARLY_BEGUN.search(text)
    if found is not None and found[1] != _BEGIN:
        line = text.count("\n", 0, found.start()) + 1
        message = f"{shortened(found[1])!r} does not begin inline metadata, so that it is a comment alone; write {_BEGIN!r}"
        raise PieError("build-failed", f"{file}:{line}: {message}")


def _check_fields(found: dict[str, Any], place: str) -> None:
    """Refuses a field whose name is nearly one of those that there are."""
    for name in sorted(found.keys() - _FIELDS):
        if (near := nearest(name, _FIELDS, 0.8)) is not None:
            raise PieError("build-failed", f"{place}: there is no field {shortened(name)!r}; did you mean {near!r}?")


def _blocks(text: str) -> list[list[str]]:
    """The lines of each block. It ends at the last line that can be its end; without one it is a plain comment."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    found: list[list[str]] = []
    at = 0
    while at < len(lines):
        if lines[at].rstrip() != _BEGIN:
            at += 1
            continue
        end = at + 1
        while end < len(lines) and (lines[end] == "#" or lines[end].startswith("# ")):
            end += 1
        closing = next((number for number in range(end - 1, at, -1) if lines[number].rstrip() == _END), None)
        if closing is not None:
            found.append(lines[at + 1 : closing])
        at = end
    return found


def _files(found: dict[str, Any], place: str) -> tuple[str, ...]:
    tool = found.get("tool", {})
    own = tool.get("pie", {}) if isinstance(tool, dict) else {}
    if not isinstance(own, dict):
        raise PieError("build-failed", f"{place}: tool.pie is not a table; write [tool.pie], and files = [...] below it")
    if unknown := sorted(own.keys() - {"files"}):
        raise PieError("build-failed", f"{place}: there is no field tool.pie.{unknown[0]}; expected files")
    files = _texts(own, "files", f"{place}: tool.pie", '["prompts", "table.csv"]')
    if len(files) > MAX_FILES:
        raise PieError("build-failed", f"{place}: tool.pie.files names {len(files)} files, more than {MAX_FILES}; name their folder")
    return files


def _texts(table: dict[str, Any], name: str, place: str, example: str) -> tuple[str, ...]:
    listed = table.get(name, [])
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise PieError("build-failed", f"{place}: {name} is not a list of texts; write it as {example}")
    return tuple(listed)
