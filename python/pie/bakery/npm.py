"""The dependencies of a JavaScript or TypeScript program: bundled with it into one file by esbuild.

The author of a program may be anybody, so npm is given nothing but releases of the user's registries: `package.json` is
looked at first, then the lock, which lists all that npm would fetch, and only what stands there is installed. No script
of a package runs, and no tool of the project. What the runtime brings is left to it: the SDK by both of its names, and
files as Node has them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pie.bakery import sdk
from pie.bakery.command import run, temporary_folder
from pie.bakery.lock import LockUse, Pin
from pie.bakery.output import named_folder
from pie.bakery.toolchain.machine import cache_folder
from pie.errors import PieError
from pie.folder import read_file, read_project_file
from pie.programs import MAX_DEPENDENCY_BYTES

ESBUILD = "esbuild@0.25.12"
"""What bundles, whatever esbuild a project brings."""
BUNDLE = "main.js"
SOURCE_MAP = f"{BUNDLE}.map"
"""Beside the bundle: by it a traceback names the files that were bundled."""

_PACKAGE = "package.json"
_LOCK = "package-lock.json"
_PACKAGES = "node_modules"
_MAX_PACKAGE_BYTES = 1 << 20
_MAX_LOCK_BYTES = 16 << 20
_MAX_SHOWN_CHARS = 200
_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
# Files by which a project would set options of npm, or a lock that npm prefers to the one that is looked at.
_FOREIGN = {
    ".npmrc": "put options of npm into the .npmrc of your home folder",
    "npm-shrinkwrap.json": f"rename it to {_LOCK}",
}
# Where a package depends on a repository, npm would clone it, and run what prepares it, whatever is said of scripts.
_NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", f"--git={os.devnull}")
_PACKAGE_NAME = r"(?:@[A-Za-z0-9._~-]+/)?[A-Za-z0-9._~-]+"
# Versions, ranges of them, and tags; `npm:NAME@RANGE` is a package of the registry by another name. What begins with a
# dot, or ends as an archive does, is a path to npm.
_RELEASE = re.compile(
    rf"(?![ \t]*+\.)(?!.*\.(?:tgz|tar|tar\.gz)[ \t]*$)(?:npm:{_PACKAGE_NAME}(?:@(?![ \t]*\.)|$))?[A-Za-z0-9.^~<>=|*+ \t_-]*",
    re.IGNORECASE,
)
# In overrides, the version that the program itself asks for.
_SAME_AS = re.compile(rf"\${_PACKAGE_NAME}")
_REGISTRY = ("https", "registry.npmjs.org")
_OPTIONS = (
    "--bundle",
    "--format=esm",
    "--platform=neutral",
    "--target=es2023",
    "--main-fields=module,main",
    "--conditions=import,module",
    *(f"--external:{name}" for name in sdk.NAMES),
    "--external:node:fs/promises",
    "--external:fs/promises",
    "--external:pie:*",
    "--charset=utf8",
    "--log-level=error",
    "--legal-comments=inline",
    "--sourcemap=external",
    "--sources-content=false",
)
_PROVIDED = frozenset(sdk.NAMES)
_TYPESCRIPT = "tsconfig.json"
# How esbuild marks a file that it leaves out.
_DISABLED = "(disabled):"


def has_dependencies(folder: Path) -> bool:
    """Whether the `package.json` in `folder` names packages that the program needs when it runs.

    Raises PieError `build-failed` where it cannot be read.
    """
    return bool(_section(folder, _package(folder), "dependencies").keys() - _PROVIDED)


def wanted(folder: Path) -> list[str]:
    """What the `package.json` in `folder` asks for when the program runs, as `NAME@RANGE`.

    Raises as `has_dependencies`, and for a name or version that is not a plain text.
    """
    listed = {name: asked for name, asked in _section(folder, _package(folder), "dependencies").items() if name not in _PROVIDED}
    for name, asked in listed.items():
        # What cannot be printed, no lock can hold. Of what was installed by other means no more is asked.
        if not name.isprintable() or not isinstance(asked, str) or not asked.isprintable():
            raise _not_a_release(folder / _PACKAGE, f"dependencies.{name}", asked)
    return sorted(f"{name}@{asked}" for name, asked in listed.items())


def install(folder: Path, use: LockUse, *, is_stale: bool = False) -> None:
    """Makes `node_modules` of what `package.json` names.

    It is left alone where it is there, unless it is out of date (`is_stale`) or to be renewed. Raises PieError
    `build-failed` for dependencies that are not releases of a registry, and with what npm said.
    """
    npm = _npm(folder)
    if (folder / _PACKAGES).is_dir() and not is_stale and use is not LockUse.UPGRADE:
        return
    for name, remedy in _FOREIGN.items():
        if read_project_file(folder, name) is not None:
            raise PieError("build-failed", f"{str(folder / name)!r} would tell npm what to do, and comes with the program; {remedy}")
    _check_package(folder)
    if use is LockUse.UPGRADE:
        _resolve(npm, folder)
    elif is_stale or read_project_file(folder, _LOCK, _MAX_LOCK_BYTES) is None:
        run([npm, "install", "--package-lock-only", *_NPM_OPTIONS], folder=folder)
    _check_lock(npm, folder)
    run([npm, "ci", *_NPM_OPTIONS], folder=folder)


def installed(folder: Path) -> tuple[Pin, ...] | None:
    """The packages that are installed for the program: by npm's list of `node_modules`, else by its lock.

    Those for developing are left out, and so are optional ones, which differ from machine to machine. None where
    another tool made `node_modules`, which keeps no such list. Raises PieError `build-failed` for a list that cannot be
    read.
    """
    for name in (f"{_PACKAGES}/.package-lock.json", _LOCK):
        content = read_project_file(folder, name, _MAX_LOCK_BYTES)
        if content is None:
            continue
        packages = _object(folder / name, content).get("packages")
        if not isinstance(packages, dict):
            continue
        return tuple(sorted(set(_pins(folder / name, packages)), key=lambda pin: (pin.name, pin.version)))
    return None


def bundle(folder: Path, entry: Path) -> dict[str, bytes]:
    """One file that holds the entry and all that it imports, but the SDK, which the runtime brings.

    `install` has made `node_modules`. Raises PieError `build-failed` with what esbuild said, and where a file that was
    bundled lies outside of the folder.
    """
    esbuild = _esbuild(_npm(folder))
    with temporary_folder() as made:
        target, listing = made / BUNDLE, made / "inputs.json"
        # Without being told, esbuild would take the one of a folder above.
        settings = f"--tsconfig={_TYPESCRIPT}" if read_project_file(folder, _TYPESCRIPT) is not None else "--tsconfig-raw={}"
        run([esbuild, entry.relative_to(folder), *_OPTIONS, settings, f"--metafile={listing}", f"--outfile={target}"], folder=folder)
        _check_inputs(folder, listing)
        return {BUNDLE: read_file(target, MAX_DEPENDENCY_BYTES), SOURCE_MAP: _source_map(folder, made)}


def _npm(folder: Path) -> str:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        message = (
            f"{folder / _PACKAGE} names dependencies, and bundling them needs Node with npm, which are not there; install Node 20 or newer"
        )
        raise PieError("build-failed", message)
    return npm


def _resolve(npm: str, folder: Path) -> None:
    """Makes the lock anew.

    It is made in a folder of its own: npm would take what `node_modules` has.
    """
    with temporary_folder() as elsewhere:
        (elsewhere / _PACKAGE).write_bytes(read_project_file(folder, _PACKAGE, _MAX_PACKAGE_BYTES) or b"{}")
        run([npm, "install", "--package-lock-only", *_NPM_OPTIONS], folder=elsewhere)
        made = read_file(elsewhere / _LOCK, _MAX_LOCK_BYTES)
    with named_folder(folder) as opened:
        opened.check(_LOCK)
        opened.write(_LOCK, made)


def _pins(path: Path, packages: Mapping[str, Any]) -> Iterator[Pin]:
    for place, entry in packages.items():
        if not place or not isinstance(entry, dict) or entry.get("dev") or entry.get("optional") or entry.get("link"):
            continue
        name, version = entry.get("name") or place.rpartition(f"{_PACKAGES}/")[2], entry.get("version")
        if name in _PROVIDED:
            continue
        if not isinstance(name, str) or not isinstance(version, str):
            raise PieError(
                "build-failed", f"{path} cannot be read: {place[:_MAX_SHOWN_CHARS]!r} has no name or version; install anew with npm"
            )
        # Several digests may stand there; the first is that of the strongest kind that the registry has.
        yield Pin(name, version, str(entry.get("integrity") or "").partition(" ")[0])


def _check_package(folder: Path) -> None:
    """Refuses a `package.json` that names anything but releases of a registry."""
    package = _package(folder)
    if package.get("workspaces"):
        raise PieError("build-failed", f"{folder / _PACKAGE}: workspaces are other folders of packages; build the program by itself")
    for section in _SECTIONS:
        for name, asked in _section(folder, package, section).items():
            _check_release(folder / _PACKAGE, f"{section}.{name}", asked)
    waiting = [("overrides", package.get("overrides", {}))]
    while waiting:
        place, asked = waiting.pop()
        if isinstance(asked, dict):
            waiting += [(f"{place}.{name}"[:_MAX_SHOWN_CHARS], inner) for name, inner in asked.items()]
        elif not (isinstance(asked, str) and _SAME_AS.fullmatch(asked)):
            _check_release(folder / _PACKAGE, place, asked)


def _check_release(file: Path, place: str, asked: object) -> None:
    if not isinstance(asked, str) or not _RELEASE.fullmatch(asked):
        raise _not_a_release(file, place, asked)


def _not_a_release(file: Path, place: str, asked: object) -> PieError:
    remedy = 'write a version as in "^1.3.0", and copy what lies at a path into the folder of the program'
    if place.partition(".")[2] in _PROVIDED:
        remedy = "leave it out: the runtime brings the SDK, and `pie types` its types"
    # Names may hold what no terminal and no file takes.
    shown = place[:_MAX_SHOWN_CHARS].encode("utf-8", "backslashreplace").decode()
    message = (
        f"{file}: {shown} is {repr(asked)[:_MAX_SHOWN_CHARS]}, which does not name a release in a registry, and nothing else is "
        f"installed; {remedy}"
    )
    return PieError("build-failed", message)


def _check_lock(npm: str, folder: Path) -> None:
    """Refuses a lock by which npm would take a package from anywhere but the registries of the user."""
    path = folder / _LOCK
    lock = _object(path, read_project_file(folder, _LOCK, _MAX_LOCK_BYTES) or b"{}")
    # Of a registry its scheme, host and port: some serve archives under other paths than their lists.
    registries: set[tuple[str, str | None]] = {_REGISTRY}
    asked = False
    for name, entry in _locked(path, lock):
        place = entry.get("resolved")
        if place is None and not entry.get("link") and not _has_place(entry):
            continue
        origin = _origin(place)
        is_fetched = origin[0] in {"http", "https"}
        if is_fetched and origin not in registries and not asked:
            registries, asked = registries | _registries(npm), True
        if entry.get("link") or _has_place(entry) or not is_fetched or origin not in registries:
            message = (
                f"{path}: the package {name[:_MAX_SHOWN_CHARS]!r} comes from {repr(place or entry.get('version'))[:_MAX_SHOWN_CHARS]}, "
                "which is not in a registry of yours, and nothing else is installed; depend on a release, and remove the lock"
            )
            raise PieError("build-failed", message)


def _locked(path: Path, lock: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The packages of a lock in its present form; one in the form before that of npm 7 says as much."""
    packages = lock.get("packages")
    if not isinstance(packages, dict) or not all(isinstance(entry, dict) for entry in packages.values()):
        raise PieError("build-failed", f"{path}: it is damaged or older than npm 7; remove it, and it is made anew")
    for name in packages:
        if name and (".." in name.split("/") or not name.startswith(f"{_PACKAGES}/")):
            message = (
                f"it lists {name[:_MAX_SHOWN_CHARS]!r}, which is not in {_PACKAGES}, so a package depends on what lies at a path; "
                "depend on another one, and remove the lock, so that it is made anew"
            )
            raise PieError("build-failed", f"{path}: {message}")
    yield from ((name, entry) for name, entry in packages.items() if name)


def _has_place(entry: Mapping[str, Any]) -> bool:
    """Whether the version of a locked package is a place, as in `file:../lib`."""
    version = entry.get("version", "")
    return not isinstance(version, str) or ":" in version or "/" in version


def _origin(place: object) -> tuple[str, str | None]:
    """The scheme, and the host with its port, of an address; nothing of what is not one."""
    try:
        address = urlsplit(place) if isinstance(place, str) else None
        return (address.scheme, address.netloc) if address is not None else ("", None)
    except ValueError:
        return "", None


def _registries(npm: str) -> set[tuple[str, str | None]]:
    """The origins of the registries that npm was configured with by the user, whatever a project says."""
    with temporary_folder() as elsewhere:
        said = json.loads(run([npm, "config", "list", "--json"], folder=elsewhere))
    return {_origin(value) for key, value in said.items() if key == "registry" or key.endswith(":registry")}


def _esbuild(npm: str) -> Path:
    """The esbuild that bundles, in a folder of its own: that of a project is a program of its author."""
    place = cache_folder() / ESBUILD
    command = place / _PACKAGES / ".bin" / "esbuild"
    if command.exists():
        return command
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".esbuild-", dir=place.parent) as name:
            made = Path(name) / "made"
            made.mkdir()
            run([npm, "install", f"--prefix={made}", *_NPM_OPTIONS, ESBUILD], folder=made)
            if not place.exists():
                made.rename(place)
    except OSError as error:
        # Another build may have put it there meanwhile.
        if not command.exists():
            raise PieError("build-failed", f"{str(place)!r} cannot be made for esbuild: {error.strerror}") from error
    return command


def _check_inputs(folder: Path, listing: Path) -> None:
    """Refuses a bundle that holds files of outside of the project: esbuild follows links, and paths that lead up."""
    top = folder.resolve()
    try:
        names = list(json.loads(read_file(listing, MAX_DEPENDENCY_BYTES))["inputs"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PieError("build-failed", f"esbuild did not say what it bundled ({error}); use {ESBUILD} or a newer one") from error
    for name in names:
        place = (top / name).resolve()
        if place.is_relative_to(top) or name.startswith(_DISABLED):
            continue
        message = (
            f"the program imports {str(place)!r}, which lies outside of its folder {str(folder)!r}, and nothing outside is bundled; "
            f"copy it into the folder, or, if it is a package that is linked into {_PACKAGES}, remove that folder and depend on a release"
        )
        raise PieError("build-failed", message)


def _source_map(folder: Path, made: Path) -> bytes:
    """The map of the bundle, with its sources as paths from the folder, so that the same input gives the same bytes."""
    top = folder.resolve()
    try:
        found = json.loads(read_file(made / SOURCE_MAP, MAX_DEPENDENCY_BYTES))
        sources = [_relative(made, source, top) for source in found["sources"]]
        mappings = found["mappings"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PieError("build-failed", f"esbuild did not say what it bundled where ({error}); use {ESBUILD} or a newer one") from error
    # Names and texts of sources are left out: a traceback has the names of the bundle.
    return json.dumps({"version": 3, "sources": sources, "names": [], "mappings": mappings}, separators=(",", ":")).encode()


def _relative(made: Path, source: str, top: Path) -> str:
    """A source, which is written from where the bundle was made, as a path from the folder."""
    path = Path(os.path.normpath(made / source))
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else path.name


def _package(folder: Path) -> dict[str, Any]:
    """What `package.json` says; nothing where there is none."""
    content = read_project_file(folder, _PACKAGE, _MAX_PACKAGE_BYTES)
    return {} if content is None else _object(folder / _PACKAGE, content)


def _section(folder: Path, package: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Packages that `package.json` lists under a name."""
    listed = package.get(name, {})
    if not isinstance(listed, dict):
        raise PieError("build-failed", f'{folder / _PACKAGE}: {name} is not an object; write it as {{"left-pad": "^1.3.0"}}')
    return listed


def _object(path: Path, content: bytes) -> dict[str, Any]:
    """A JSON object that a file holds."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise PieError("build-failed", f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise PieError("build-failed", f"{path} cannot be read: it holds no object")
    return found
