"""The dependencies of a program: what it asks for, by which rules, and the files that it gets.

For Python the first of these that lists anything is the whole list:

1. `[dependencies]` of `Pie.toml`;
2. the metadata in the entry itself (PEP 723);
3. `[project] dependencies` of `pyproject.toml` and `requirements.txt`, together.

A lone file takes a list from beside it only where it imports a module that is neither of the standard library nor among
its own files: the list may be that of another program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pie.bakery import npm, package_cache, pure_python
from pie.bakery.foreign_imports import foreign_imports
from pie.bakery.lock import Lock, LockUse, check_fits, check_pins, read_lock
from pie.bakery.manifest import Manifest, read_own_manifest
from pie.bakery.project import Project
from pie.bakery.pure_python import Bundled
from pie.bakery.requirements import PYPROJECT, REQUIREMENTS, checked, listed_beside, listed_by_manifest
from pie.bakery.script_metadata import script_metadata
from pie.errors import PieError
from pie.folder import Folder
from pie.programs import LOCK_FILE, MANIFEST_FILE, Source

_MISNAMED = ("requirement.txt", "requirments.txt", "requirements.text", "requirements", "Requirements.txt", "require.txt")
"""What people call `requirements.txt`."""
_UPGRADE = "`pie build --upgrade` takes what is there"


@dataclass(frozen=True)
class Wanted:
    """What a Python program asks for."""

    requirements: tuple[str, ...]
    asked_by: str
    """The file that says so, for people."""
    lock_file: str
    """What its lock is called, in the folder of the project."""


@dataclass(frozen=True)
class Dependencies:
    """What a program gets beside its own files."""

    files: Mapping[str, bytes]
    """For Python what is added to them; for JavaScript what takes their place."""
    lock: Lock | None
    """What there is to lock; None where nothing is known of it."""
    lock_file: str


def has_dependencies(project: Project) -> bool:
    """Whether a program from source depends on packages.

    Raises PieError `build-failed` for a list that cannot be read, and as `read_own_manifest`.
    """
    if project.kind == "javascript":
        return project.path.is_dir() and npm.has_dependencies(project.folder)
    return bool(_wanted(project, _source(project)).requirements)


def dependencies(project: Project, use: LockUse) -> Dependencies:
    """The packages of a program that has some.

    Raises PieError `build-failed` for what cannot be installed, and where the lock does not allow it.
    """
    source = _source(project)
    if project.kind == "javascript":
        return _javascript(project.folder, project.base / source.entry, use)
    return _python(project.folder, _wanted(project, source), use)


def _python(folder: Path, wanted: Wanted, use: LockUse) -> Dependencies:
    path = folder / wanted.lock_file
    lock = _fitting(folder, wanted, use)
    key = package_cache.key_of_requirements(wanted.requirements) if lock is None else package_cache.key_of_pins(lock.packages)
    bundled = None if use is LockUse.UPGRADE else package_cache.kept(key)
    if bundled is None:
        bundled = _installed(wanted, lock)
        if lock is not None:
            check_pins(lock, bundled.packages, path, _UPGRADE)
        package_cache.keep(key, bundled)
    if lock is None and use in {LockUse.UPDATE, LockUse.UPGRADE}:
        # The lock that is written now is gone by from here on, and without asking where packages come from.
        package_cache.keep(package_cache.key_of_pins(bundled.packages), bundled)
    return Dependencies(bundled.files, Lock("python", tuple(sorted(wanted.requirements)), bundled.packages), wanted.lock_file)


def _installed(wanted: Wanted, lock: Lock | None) -> Bundled:
    """The packages that a lock pins, else those that the requirements lead to. An error names who asked for them."""
    try:
        return pure_python.install(wanted.requirements) if lock is None else pure_python.install_pinned(lock.packages)
    except PieError as error:
        raise PieError(error.code, f"{wanted.asked_by}: {error.message}", error.details) from error


def _fitting(folder: Path, wanted: Wanted, use: LockUse) -> Lock | None:
    """The lock to go by; None where packages are to be looked for."""
    lock = None if use is LockUse.UPGRADE else read_lock(folder, wanted.lock_file, "python")
    path = folder / wanted.lock_file
    if lock is None:
        if use is LockUse.REQUIRE:
            raise _no_lock(path)
        return None
    if use is LockUse.UPDATE and tuple(sorted(wanted.requirements)) != lock.requirements:
        return None
    check_fits(lock, wanted.requirements, path, wanted.asked_by)
    return lock


def _javascript(folder: Path, entry: Path, use: LockUse) -> Dependencies:
    path = folder / LOCK_FILE
    wanted = npm.wanted(folder)
    lock = None if use is LockUse.UPGRADE else read_lock(folder, LOCK_FILE, "npm")
    if lock is None and use is LockUse.REQUIRE:
        raise _no_lock(path)
    is_stale = False
    if lock is not None:
        if use is LockUse.UPDATE:
            is_stale = tuple(wanted) != lock.requirements
        else:
            check_fits(lock, wanted, path, str(folder / "package.json"))
    npm.install(folder, use, is_stale=is_stale)
    packages = npm.installed(folder)
    if lock is not None and use is not LockUse.UPDATE:
        check_pins(lock, packages or (), path, f"`npm ci` installs what package-lock.json lists, and {_UPGRADE}")
    return Dependencies(npm.bundle(folder, entry), None if packages is None else Lock("npm", tuple(wanted), packages), LOCK_FILE)


def _wanted(project: Project, source: Source) -> Wanted:
    """What a Python program asks for, by the rules above."""
    is_lone = not project.path.is_dir()
    entry = dict(source.files).get(source.entry, b"")
    if listed := listed_by_manifest(project.manifest):
        return Wanted(tuple(listed), MANIFEST_FILE, LOCK_FILE)
    takes_from_beside = not is_lone or bool(foreign_imports(source))
    if is_lone and takes_from_beside and (listed := listed_by_manifest(_manifest_beside(project))):
        return Wanted(tuple(listed), MANIFEST_FILE, LOCK_FILE)
    metadata = script_metadata(source.entry, entry)
    if metadata is not None and (listed := checked(metadata.dependencies, source.entry)):
        name = f"{Path(source.entry).stem}.{LOCK_FILE}" if is_lone else LOCK_FILE
        return Wanted(tuple(listed), source.entry, name)
    listed = listed_beside(project.folder) if takes_from_beside else []
    files = [name for name in (PYPROJECT, REQUIREMENTS) if (project.folder / name).is_file()]
    return Wanted(tuple(listed), " and ".join(files), LOCK_FILE)


def misnamed_list(project: Project) -> str | None:
    """A file beside a program that is called nearly as a list of packages; None where nothing misses a list.

    Nothing does where the program imports its own modules and those of the standard library alone, or has a list.
    """
    source = project.source
    if not isinstance(source, Source) or source.language != "python":
        return None
    name = next((name for name in _MISNAMED if (project.folder / name).is_file()), None)
    if name is None or not foreign_imports(source) or _wanted(project, source).requirements:
        return None
    return name


def _manifest_beside(project: Project) -> Manifest | None:
    """The manifest in the folder of a lone file."""
    try:
        with Folder(project.folder) as folder:
            return read_own_manifest(folder, project.folder / MANIFEST_FILE)
    except OSError as error:
        raise PieError("unknown-program", f"{str(project.folder)!r} cannot be read: {error.strerror}") from error


def _source(project: Project) -> Source:
    assert isinstance(project.source, Source), "only sources have packages"
    return project.source


def _no_lock(path: Path) -> PieError:
    return PieError("build-failed", f"there is no {path}, which --locked goes by; `pie build` makes it, and then keep it with the program")
