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
_BEGINNING = re.compile(rf"(?P<package>{_NAME}[ \t]*+(?:{_EXTRAS}[ \t]*+)?)(?P<versions>{_VERSIONS})?")
"""What is right at the beginning of a requirement that is not."""
_NEARLY_VERSION = re.compile(r"(?P<operator>[<>=!~^]*)[ \t]*(?P<version>v?[0-9][A-Za-z0-9.*+!_-]*)")
_ELSEWHERE = re.compile(r"[/\\@:$\n]|\A[ \t]*\.")
"""What paths, addresses and variables have, and no release."""
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
        shown = _shown(one)
        if one.lstrip().startswith("-"):
            message = f"{shown} is an option of the installer; name packages alone, and set options for yourself (`pip config`)"
            raise PieError("build-failed", f"{file}: {message}")
        if len(one) > _MAX_CHARS or not _PLAIN.fullmatch(one.strip()) or _FILE.search(one.strip()):
            raise PieError("build-failed", f"{file}: the dependency {shown} {_fault(one)}")
        if not _PROVIDED.match(one):
            found.append(one.strip())
    return found


def _fault(one: str) -> str:
    """What is wrong with a requirement that is refused, and the remedy."""
    text = one.strip()
    if len(one) > _MAX_CHARS or _ELSEWHERE.search(one) or _FILE.search(text):
        return (
            'does not name a release in an index, and nothing else is installed; write it as in "attrs>=25", and copy what lies at a path '
            "into the folder of the program"
        )
    begins = _BEGINNING.match(text)
    if begins is None:
        return 'is not a requirement: it does not begin with the name of a package; write it as in "attrs>=25"'
    before, behind = begins[0].strip(), text[begins.end() :]
    right = _corrected(begins, behind)
    remedy = f"write {_shown(right)}" if right else 'write it as in "attrs>=25,<26"'
    return f"is not a requirement: {_shown(behind)} behind {_shown(before)} is neither a version nor a marker; {remedy}"


def _corrected(begins: re.Match[str], behind: str) -> str | None:
    """A requirement whose next version is written with an operator that there is; None where that is not all."""
    nearly = _NEARLY_VERSION.match(behind)
    if nearly is None:
        return None
    versions = (begins["versions"] or "").strip()
    joint = "," if versions and not versions.endswith(",") else ""
    whole = f"{begins[0].strip()}{joint}{_operator(nearly['operator'])}{nearly['version']}{behind[nearly.end() :]}"
    return whole if _PLAIN.fullmatch(whole) else None


def _operator(written: str) -> str:
    """The operator of Python that is meant."""
    if "!" in written or {"<", ">"} <= set(written):
        return "!="
    for kind in "<>":
        if kind in written:
            return f"{kind}=" if "=" in written else kind
    if "^" in written:  # npm and Cargo have it
        return ">="
    return "~=" if "~" in written else "=="


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}...")
