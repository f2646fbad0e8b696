"""`pie build`: a project or a file becomes one `.wasm`, with its `Pie.toml` beside it.

The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from pie import _engine
from pie.bakery import cargo, npm, sdk
from pie.bakery.check import check
from pie.bakery.dependencies import Dependencies, dependencies, has_dependencies
from pie.bakery.lock import LockUse
from pie.bakery.manifest import Manifest, new_manifest
from pie.bakery.output import Output, named_folder, own_folder
from pie.bakery.project import Project, open_project
from pie.bakery.type_check import check_types
from pie.errors import PieError
from pie.folder import MAX_PROJECT_FILE_BYTES, check_inside
from pie.programs import MANIFEST_FILE, MAX_COMPONENT_BYTES, RUNTIMES, Component, Source, compiling

_DIST = "dist"
_SUFFIX = ".wasm"
_PREFIX = "sha256:"


@dataclass(frozen=True)
class Built:
    """What a build made."""

    wasm: Path
    manifest_path: Path
    manifest: Manifest
    n_bytes: int
    digest: str
    """`sha256:` and the digest of the `.wasm`."""
    runtime: str | None
    """The digest of the language runtime that the program needs; None for a Rust program."""
    lock_path: Path | None
    """Where it stands which packages the program was built with; None where there are none."""
    types: str | None
    """What was found of its types, for people; None where nobody asked."""


def build(  # noqa: PLR0913  # options of one command
    path: Path,
    output: Path | None = None,
    *,
    standalone: bool = False,
    lock: LockUse = LockUse.UPDATE,
    with_types: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Built:
    """Builds what lies at `path` to `output`; to `dist/NAME.wasm` in its folder if not given.

    With `standalone`, a Python or JavaScript program carries its language runtime and runs in any engine. `with_types`
    has its types checked first, where the tool for that is there. Which packages it was built with is written to
    `pie.lock` in its folder, as far as `lock` allows. `tell` is given the words for what takes long beside the building
    itself: a language runtime that is compiled for the first time. Raises PieError `build-failed` for what the tools of
    the language refuse, and those of `open_project` and `check`.
    """
    if output is not None:
        _check_output(output)
    project = open_project(path)
    if project.kind == "component":
        raise PieError("build-failed", f"{str(path)!r} is built already; give the folder or the file that it was made from")
    manifest = _manifest(project)
    if project.path.is_dir():
        sdk.link(project.folder, is_needed=project.source is None)
    wanted = _dependencies(project, lock)
    types = check_types(project, wanted.files if wanted and project.kind == "python" else {}) if with_types else None
    wasm, runtime = _program(project, manifest, wanted, standalone=standalone, locked=lock is LockUse.REQUIRE)
    compiled = project.source if isinstance(project.source, Source) else Component(project.path)
    check(wasm, None if tell is None else lambda: tell(compiling(compiled)))
    name = f"{manifest.name}{_SUFFIX}"
    folder: AbstractContextManager[Output]
    if output is None:
        check_inside(project.folder, _DIST)
        folder = own_folder(project.folder, _DIST)
    else:
        target = _target(output, name)
        folder, name = named_folder(target.parent), target.name
    with folder as opened:
        if output is None:
            opened.check(name)
        beside = _manifest_name(opened, name, manifest)
        opened.write(name, wasm)
        opened.write(beside, manifest.text.encode())
    lock_path = _kept_lock(project.folder, wanted, lock)
    return Built(opened.path / name, opened.path / beside, manifest, len(wasm), _digest(wasm), runtime, lock_path, types)


def _check_output(output: Path) -> None:
    """Refuses what no program can be written to, before anything is built."""
    if output.is_dir():
        return
    if output.suffix != _SUFFIX:
        message = f"{str(output)!r} does not end in {_SUFFIX}, by which programs are known; name the output so, or a folder that is there"
        raise PieError("build-failed", message)
    if not output.parent.is_dir():
        raise PieError("build-failed", f"{str(output)!r} cannot be written: there is no folder {str(output.parent)!r}; make it before")


def _target(output: Path, name: str) -> Path:
    """Where the program goes that the user named a place for: the file itself, or into the folder."""
    target = output / name if output.is_dir() else output
    if target.exists() and not target.is_file():
        raise PieError("build-failed", f"{str(target)!r} is not a regular file; name another output")
    return target


def ready(project: Project) -> Component | Source:
    """The program of a project, to be launched: as it is where it can run so, else with its packages, or built.

    That may take minutes. Raises PieError as `build` does, and where a `pie.lock` does not fit what the program asks
    for.
    """
    if project.path.is_dir() and project.kind != "component":
        sdk.link(project.folder, is_needed=project.source is None)
    if not isinstance(project.source, Source):
        return project.source or Component(project.path, content=_program(project, _manifest(project), None)[0])
    wanted = _dependencies(project, LockUse.FOLLOW)
    if wanted is None:
        return project.source
    files, entry = _files(project.source, wanted)
    return replace(project.source, files=tuple(files.items()), entry=entry)


def needs_building(project: Project) -> bool:
    """Whether the program cannot run from its own files alone."""
    return project.source is None or (isinstance(project.source, Source) and has_dependencies(project))


def _manifest(project: Project) -> Manifest:
    return project.manifest or new_manifest(project.name)


def _dependencies(project: Project, use: LockUse) -> Dependencies | None:
    """The packages of a program; None where it has none, or they are crates."""
    if project.kind == "rust" and use is LockUse.UPGRADE:
        raise PieError("build-failed", f"crates are upgraded by cargo: run `cargo update` in {str(project.folder)!r}, then `pie build`")
    if not isinstance(project.source, Source) or not has_dependencies(project):
        return None
    return dependencies(project, use)


def _program(
    project: Project, manifest: Manifest, wanted: Dependencies | None, *, standalone: bool = False, locked: bool = False
) -> tuple[bytes, str | None]:
    """The bytes of the built program, and the digest of its runtime."""
    if not isinstance(project.source, Source):
        component = cargo.build(project.folder, locked=locked)
        return _engine.pack_program("component", {}, "", manifest.text, None, component), None
    source = project.source
    files, entry = _files(source, wanted)
    try:
        runtime = (RUNTIMES / f"{source.language}.wasm").read_bytes()
    except OSError as error:
        message = f"the {source.language} runtime cannot be read ({error.strerror}); install the package again, or run `make build`"
        raise PieError("build-failed", message) from error
    digest = _digest(runtime)
    return _engine.pack_program(source.language, files, entry, manifest.text, digest, runtime if standalone else None), digest


def _files(source: Source, wanted: Dependencies | None) -> tuple[dict[str, bytes], str]:
    """The files of a program with its packages, and its entry among them."""
    if wanted is None:
        return dict(source.files), source.entry
    if source.language == "javascript":
        return dict(wanted.files), npm.BUNDLE
    return _merged(dict(source.files), wanted.files), source.entry


def _kept_lock(folder: Path, wanted: Dependencies | None, use: LockUse) -> Path | None:
    """Where it stands which packages a program was built with; it is written where `use` allows that."""
    if wanted is None or wanted.lock is None:
        return None
    if use in {LockUse.UPDATE, LockUse.UPGRADE}:
        with named_folder(folder) as opened:
            opened.check(wanted.lock_file)
            opened.write(wanted.lock_file, wanted.lock.text().encode())
    return folder / wanted.lock_file


def _merged(own: dict[str, bytes], others: Mapping[str, bytes]) -> dict[str, bytes]:
    if both := sorted(own.keys() & others.keys()):
        raise PieError("build-failed", f"the program and one of its dependencies both have the file {both[0]!r}; rename the program's")
    return {**own, **others}


def _manifest_name(folder: Output, wasm: str, manifest: Manifest) -> str:
    """`Pie.toml` beside the program; `NAME.Pie.toml` where there is another one, which may be written by hand.

    One that says what the program that is there carries was written with it.
    """
    if not folder.has(MANIFEST_FILE):
        return MANIFEST_FILE
    there = folder.held(MANIFEST_FILE, MAX_PROJECT_FILE_BYTES)
    is_free = there is not None and (there == manifest.text.encode() or there == _carried_manifest(folder, wasm))
    return MANIFEST_FILE if is_free else f"{wasm.removesuffix(_SUFFIX)}.{MANIFEST_FILE}"


def _carried_manifest(folder: Output, wasm: str) -> bytes | None:
    """What the program at a name carries, if one is there."""
    content = folder.held(wasm, MAX_COMPONENT_BYTES)
    if content is None:
        return None
    try:
        packed = _engine.read_packed(content)
    except PieError:
        return None
    return packed["manifest"].encode() if packed is not None and packed["manifest"] is not None else None


def _digest(content: bytes) -> str:
    return _PREFIX + hashlib.sha256(content).hexdigest()
