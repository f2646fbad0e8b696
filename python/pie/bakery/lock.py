"""`pie.lock`: what a build bundled, so that the next one bundles the same.

It lists the requirements as they were written, and each package that they led to, with its version and a digest: of the
files that are bundled for Python, of the archive (as npm writes it) for npm. Crates stand in `Cargo.lock`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pie.bakery.toml_text import read_toml
from pie.errors import PieError
from pie.folder import read_project_file

MAX_PACKAGES = 4096

Registry: TypeAlias = Literal["python", "npm"]

_FORMAT = 1
_MAX_LOCK_BYTES = 4 << 20
_MAX_SHOWN = 3
_NAMES: dict[Registry, re.Pattern[str]] = {
    "python": re.compile(r"[a-z0-9](?:[a-z0-9-]{0,126}[a-z0-9])?"),
    "npm": re.compile(r"(?:@[A-Za-z0-9._~-]{1,128}/)?[A-Za-z0-9._~-]{1,214}"),
}
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,127}")
_DIGESTS: dict[Registry, re.Pattern[str]] = {
    "python": re.compile(r"sha256:[0-9a-f]{64}"),
    "npm": re.compile(r"(?:sha[0-9]{1,3}-[A-Za-z0-9+/=]{1,128})?"),
}
_SEPARATORS = re.compile(r"[-_.]+")
_HEADER = """\
# What the program was built with. `pie build` writes this file, and every command reads it; keep it under version
# control. `pie build --upgrade` looks for newer releases.
"""


class LockUse(Enum):
    """What a command does with the lock."""

    FOLLOW = "follow"
    """One that does not fit is an error; without one, packages are looked for. Nothing is written."""
    UPDATE = "update"
    """One that does not fit is made anew."""
    UPGRADE = "upgrade"
    """It is made anew."""
    REQUIRE = "require"
    """There has to be one that fits."""


@dataclass(frozen=True)
class Pin:
    """A package that was bundled."""

    name: str
    version: str
    digest: str
    """Empty where npm names none."""


@dataclass(frozen=True)
class Lock:
    """The packages of one registry that a program was built with."""

    registry: Registry
    requirements: tuple[str, ...]
    """As they were written, sorted."""
    packages: tuple[Pin, ...]
    """Sorted by name."""

    def text(self) -> str:
        """As it stands in the file. Raises PieError `build-failed` for more packages than are read again."""
        if len(self.packages) > MAX_PACKAGES:
            message = f"the program has {len(self.packages)} packages, more than the {MAX_PACKAGES} that a lock holds; depend on fewer"
            raise PieError("build-failed", message)
        lines = [_HEADER + f"version = {_FORMAT}", "", f"[{self.registry}]", "requirements = ["]
        lines += [f"  {_quoted(one)}," for one in self.requirements]
        lines.append("]")
        for pin in self.packages:
            lines += ["", f"[[{self.registry}.package]]", f"name = {_quoted(pin.name)}", f"version = {_quoted(pin.version)}"]
            lines += [f"digest = {_quoted(pin.digest)}"] if pin.digest else []
        return "\n".join(lines) + "\n"


def plain_package_name(name: str) -> str:
    """The name of a Python package in the one form of all its spellings."""
    return _SEPARATORS.sub("-", name).lower()


def read_lock(folder: Path, name: str, registry: Registry) -> Lock | None:
    """The lock of that name in the folder of a project; None where there is none, or it is of another registry.

    Raises PieError `build-failed` for one that cannot be read.
    """
    content = read_project_file(folder, name, _MAX_LOCK_BYTES)
    if content is None:
        return None
    path = folder / name
    found = read_toml(path, content)
    if found.get("version") != _FORMAT:
        raise _damaged(path, f"version is {_shown(found.get('version'))}, and this release reads {_FORMAT}")
    section = found.get(registry)
    if section is None:
        return None
    if not isinstance(section, dict):
        raise _damaged(path, f"{registry} is not a table")
    requirements = section.get("requirements", [])
    if not isinstance(requirements, list) or not all(isinstance(one, str) for one in requirements):
        raise _damaged(path, f"{registry}.requirements is not a list of texts")
    packages = section.get("package", [])
    if not isinstance(packages, list) or len(packages) > MAX_PACKAGES:
        raise _damaged(path, f"{registry}.package is not a list of at most {MAX_PACKAGES} tables")
    return Lock(registry, tuple(sorted(requirements)), tuple(_pin(path, registry, one) for one in packages))


def check_fits(lock: Lock, requirements: Sequence[str], lock_file: Path, asked_by: str) -> None:
    """Refuses a lock that was made for other requirements: PieError `build-failed`, which names the first ones."""
    if not (difference := _difference(requirements, lock.requirements)):
        return
    message = f"{lock_file} does not fit {asked_by}: {difference}; `pie build` makes it anew, or take back the change"
    raise PieError("build-failed", message)


def check_pins(lock: Lock, packages: Sequence[Pin], lock_file: Path, remedy: str) -> None:
    """Refuses packages that are not those of the lock: PieError `build-failed`, which names the first one."""
    found = {(pin.name, pin.version): pin.digest for pin in packages}
    locked = {(pin.name, pin.version): pin.digest for pin in lock.packages}
    for name, version in sorted(locked.keys() | found.keys()):
        if (name, version) not in found:
            other = next((pin.version for pin in packages if pin.name == name), None)
            what = "but it was not found" if other is None else f"but {other} was found"
            raise PieError("build-failed", f"{lock_file} pins {name} {version}, {what}; {remedy}")
        if (name, version) not in locked:
            other = next((pin.version for pin in lock.packages if pin.name == name), None)
            what = "does not name it" if other is None else f"pins {other}"
            raise PieError("build-failed", f"{name} {version} was found, and {lock_file} {what}; {remedy}")
        if locked[name, version] and found[name, version] and locked[name, version] != found[name, version]:
            message = (
                f"{name} {version} has the digest {found[name, version]}, and {lock_file} pins {locked[name, version]}: the release was "
                f"changed where it comes from; {remedy} if you trust it"
            )
            raise PieError("build-failed", message)


def _difference(wanted: Sequence[str], locked: Sequence[str]) -> str:
    """What is in one list of requirements alone."""
    added = sorted(set(wanted) - set(locked))
    gone = sorted(set(locked) - set(wanted))
    parts = [f"it lacks {_few(added)}"] if added else []
    parts += [f"it has {_few(gone)}, which nobody asks for"] if gone else []
    return " and ".join(parts)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(map(_shown, names[:_MAX_SHOWN])) + more


def _pin(path: Path, registry: Registry, found: Any) -> Pin:
    if not isinstance(found, dict):
        raise _damaged(path, f"a package is {_shown(found)}, which is not a table")
    name, version, digest = (found.get(field, "") for field in ("name", "version", "digest"))
    for field, value, form in (("name", name, _NAMES[registry]), ("version", version, _VERSION), ("digest", digest, _DIGESTS[registry])):
        if not isinstance(value, str) or not form.fullmatch(value):
            raise _damaged(path, f"the {field} of a package is {_shown(value)}")
    return Pin(name, version, digest)


def _damaged(path: Path, what: str) -> PieError:
    return PieError("build-failed", f"{path} cannot be read: {what}; remove it, and `pie build` makes it anew")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _quoted(text: str) -> str:
    """A text as TOML writes it: in JSON, without the one character that TOML does not take as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
