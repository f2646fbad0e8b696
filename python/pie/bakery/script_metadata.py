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
from collections.abc import Sequence
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
_FIELD = re.compile(r"#[ \t]*(?:(?:dependencies|requires-python)[ \t]*=|\[tool\.)")
_NEARLY_END = re.compile(r"#[ \t]*//+[ \t]*")
"""Lines of metadata, whether or not they begin as they should."""


@dataclass(frozen=True)
class ScriptMetadata:
    """The metadata of a script; each as it was written."""

    dependencies: tuple[str, ...]
    files: tuple[str, ...]
    """`tool.pie.files`: files and folders beside the script that belong to the program."""


def script_metadata(file: str, content: bytes) -> ScriptMetadata | None:
    """What the script `file` says of itself; None where it says nothing.

    Raises PieError `build-failed` for a block that cannot be read or has no end, and for several.
    """
    decoded = content.decode("utf-8-sig", "replace")
    blocks = _blocks(decoded)
    closed = [block.content for block in blocks if block.content is not None]
    if not closed:
        _check_beginning(file, decoded)
        _check_ends(file, blocks)
        return None
    if len(closed) > 1:
        raise PieError("build-failed", f"{file}: it has {len(closed)} blocks of metadata ({_BEGIN!r}), and may have one; join them")
    text = "\n".join(line[2:] for line in closed[0]).encode()
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


def _check_ends(file: str, blocks: Sequence[_Block]) -> None:
    """Refuses a comment that is meant as metadata, and has no end."""
    for block in blocks:
        behind = block.behind if _FIELD.match(block.behind) or _NEARLY_END.fullmatch(block.behind) else ""
        if not any(map(_FIELD.match, [*block.comments, behind])):
            continue
        if behind:
            line = block.line + len(block.comments) + 1
            message = f"{shortened(behind)!r} does not begin with '# ', and ends the inline metadata; write a blank behind its '#'"
        else:
            line = block.line
            message = (
                f"no line {_END!r} ends the inline metadata that begin here, so that they are a comment alone; "
                f"write it behind line {line + len(block.comments)}"
            )
        raise PieError("build-failed", f"{file}:{line}: {message}")


def _check_fields(found: dict[str, Any], place: str) -> None:
    """Refuses a field whose name is nearly one of those that there are."""
    for name in sorted(found.keys() - _FIELDS):
        if (near := nearest(name, _FIELDS, 0.8)) is not None:
            raise PieError("build-failed", f"{place}: there is no field {shortened(name)!r}; did you mean {near!r}?")


@dataclass(frozen=True)
class _Block:
    """What begins like a block of metadata, as far as lines follow that can be of it."""

    line: int
    """The number of the line that begins it."""
    comments: Sequence[str]
    """The lines that follow."""
    behind: str
    """The first line that cannot be of it."""

    @property
    def content(self) -> Sequence[str] | None:
        """Its lines without those at its two ends; None where it has no end, and is a plain comment.

        It ends at the last line that can be its end.
        """
        last = next((number for number in range(len(self.comments) - 1, -1, -1) if self.comments[number].rstrip() == _END), None)
        return None if last is None else self.comments[:last]


def _blocks(text: str) -> list[_Block]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    found: list[_Block] = []
    at = 0
    while at < len(lines):
        if lines[at].rstrip() != _BEGIN:
            at += 1
            continue
        end = at + 1
        while end < len(lines) and (lines[end] == "#" or lines[end].startswith("# ")):
            end += 1
        found.append(_Block(at + 1, lines[at + 1 : end], lines[end] if end < len(lines) else ""))
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
