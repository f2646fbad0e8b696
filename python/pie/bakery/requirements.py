"""What a Python program says that it depends on.

Its author may be anybody, so no installer reads it before it was looked at here.

A requirement names a release in an index: a name, versions, a marker. Everything else that installers take (paths,
addresses, repositories, options, files of more requirements) would have them read, send or run what the author chose,
and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pie.bakery.manifest import Manifest
from pie.bakery.toml_text import read_toml
from pie.errors import PieError
from pie.folder import read_project_file
from pie.programs import MANIFEST_FILE

PYPROJECT = "pyproject.toml"
REQUIREMENTS = "requirements.txt"

_MAX_FILE_BYTES = 256 << 10
_MAX_SHOWN_CHARS = 200

# Blanks are taken whole and never given back, so that a text is looked at once.
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = rf"\[[ \t]*+(?:{_NAME}[ \t]*+(?:,[ \t]*+{_NAME}[ \t]*+)*)?\]"
_VERSION = r"(?:===|[<>=!~]=|[<>])[ \t]*+[A-Za-z0-9.*+!_-]+[ \t]*+"
_VERSIONS = rf"\(?[ \t]*+{_VERSION}(?:,[ \t]*+{_VERSION})*,?[ \t]*+\)?[ \t]*+"
_MARKER = r""";[A-Za-z0-9_.'"()<>=!~, \t*+-]+"""
_HASH = r"(?<=[ \t])--hash[=: \t][ \t]*+[a-z0-9]+:[0-9a-f]+[ \t]*+"
_PLAIN = re.compile(rf"{_NAME}[ \t]*+(?:{_EXTRAS}[ \t]*+)?(?:{_VERSIONS})?(?:{_MARKER})?(?:{_HASH})*")
_MAX_CHARS = 4096
"""The longest requirement; hashes of many files make one long."""
_FILE = re.compile(r"\.(?:whl|zip|tar|tgz|tbz|txz|tar\.\w+)$", re.IGNORECASE)
_PROVIDED = re.compile(r"[ \t]*(?:inferlet|pie-engine)\b(?![.-])", re.IGNORECASE)
_CONTINUED = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")


def listed_by_manifest(manifest: Manifest | None) -> list[str]:
    """What a manifest lists, without what the runtime brings (`inferlet`). Raises as `checked`."""
    return checked(manifest.python, MANIFEST_FILE) if manifest else []


def listed_beside(folder: Path) -> list[str]:
    """What the files of Python's own in a folder list, without what the runtime brings.

    Raises PieError `build-failed` for a file that cannot be read, and as `checked`.
    """
    wanted: list[str] = []
    if (project := read_project_file(folder, PYPROJECT, _MAX_FILE_BYTES)) is not None:
        wanted += checked(_listed(folder / PYPROJECT, project), PYPROJECT)
    if (listed := read_project_file(folder, REQUIREMENTS, _MAX_FILE_BYTES)) is not None:
        wanted += checked(_lines(listed), REQUIREMENTS)
    return wanted


def _listed(project: Path, content: bytes) -> list[str]:
    """The dependencies in a `pyproject.toml`."""
    table = read_toml(project, content).get("project", {})
    listed = table.get("dependencies", []) if isinstance(table, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise PieError("build-failed", f'{project}: project.dependencies is not a list of texts; write it as ["attrs>=25"]')
    return listed


def _lines(content: bytes) -> Iterable[str]:
    """The requirements in a `requirements.txt`."""
    text = content.decode("utf-8-sig", "replace")
    return filter(None, (_COMMENT.sub("", line).strip() for line in _CONTINUED.sub(" ", text).splitlines()))


def checked(wanted: Iterable[str], file: str) -> list[str]:
    """The requirements of a file that the runtime does not bring.

    Raises PieError `build-failed` for one that is not a release in an index.
    """
    found = []
    for one in wanted:
        shown = repr(one if len(one) <= _MAX_SHOWN_CHARS else f"{one[:_MAX_SHOWN_CHARS]}...")
        if one.lstrip().startswith("-"):
            message = f"{shown} is an option of the installer; name packages alone, and set options for yourself (`pip config`)"
            raise PieError("build-failed", f"{file}: {message}")
        if len(one) > _MAX_CHARS or not _PLAIN.fullmatch(one.strip()) or _FILE.search(one.strip()):
            message = (
                f"the dependency {shown} does not name a release in an index, and nothing else is installed; write it as in "
                '"attrs>=25", and copy what lies at a path into the folder of the program'
            )
            raise PieError("build-failed", f"{file}: {message}")
        if not _PROVIDED.match(one):
            found.append(one.strip())
    return found
