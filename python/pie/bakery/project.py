"""What lies at a path.

It is a project or file in one of the languages, with its manifest; a Rust project; or a built program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from pie import _engine
from pie.bakery.manifest import Manifest, parse_manifest, read_own_manifest
from pie.bakery.script_metadata import script_metadata
from pie.errors import PieError
from pie.folder import Folder
from pie.programs import MANIFEST_FILE, Component, Source, check_path, load_folder, load_program, with_files

Kind: TypeAlias = Literal["rust", "python", "javascript"]

_CARGO = "Cargo.toml"
_SOURCES = "src"
"""Where the entry of a folder may lie, too."""


@dataclass(frozen=True)
class Project:
    """What can be built or run."""

    path: Path
    """As it was given: a folder or a file."""
    folder: Path
    """Where its manifest and its dependencies stand."""
    source: Source | Component | None
    """The program from its own files; None for a Rust project, which has to be built."""
    manifest: Manifest | None

    @property
    def kind(self) -> Kind | Literal["component"]:
        """The language, or that it is built already."""
        if self.source is None:
            return "rust"
        return self.source.language if isinstance(self.source, Source) else "component"

    @property
    def base(self) -> Path:
        """The folder that the paths of the files of a program from source start from."""
        if self.path.is_dir() and isinstance(self.source, Source):
            if self.manifest is not None and self.manifest.entry is not None:
                return self.folder / Path(self.manifest.entry).parent
            if not (self.folder / self.source.entry).is_file():
                return self.folder / _SOURCES
        return self.folder

    @property
    def name(self) -> str:
        """What the program is called: by its manifest, else as its file or folder."""
        if self.manifest is not None:
            return self.manifest.name
        resolved = self.path.resolve()
        return resolved.name if resolved.is_dir() else resolved.stem


def open_project(path: Path, given: Manifest | None = None) -> Project:
    """The project at a path, with the manifest in its folder or the one that is given.

    Raises PieError `unknown-program` where there is none, `invalid-program` where it cannot be one, `invalid-manifest`
    for a manifest that does not fit the schema or the files, and as `script_metadata` for a lone file.
    """
    try:
        return _open(path, given)
    except OSError as error:
        raise PieError("unknown-program", f"{error.filename or str(path)!r} cannot be read: {error.strerror}") from error


def _open(path: Path, given: Manifest | None) -> Project:
    check_path(path)
    if not _is_folder(path):
        program = load_program(path)
        if isinstance(program, Component):
            program = replace(program, content=program.read())
            return Project(path, path.parent, _with_manifest(program, given), given or _carried(program))
        program = _with_named_files(program, path)
        return Project(path, path.parent, _with_manifest(program, given), given)
    own = path / MANIFEST_FILE
    with Folder(path) as folder:
        described = given or read_own_manifest(folder, own)
        language = described.language if described else None
        entry = described.entry if described else None
        is_crate = folder.is_file(PurePosixPath(_CARGO))
        has_entry = entry is not None and folder.is_file(PurePosixPath(entry))
    if language == "rust" or (language is None and entry is None and is_crate):
        if not is_crate:
            raise PieError("invalid-manifest", f'{own}: program.language = "rust", but the folder has no {_CARGO}')
        return Project(path, path, None, described)
    if entry is None:
        source = load_program(path)
    else:
        if not has_entry:
            raise PieError("invalid-manifest", f"{own}: program.entry = {entry!r}, but there is no such file in {str(path)!r}")
        source = load_folder(path, PurePosixPath(entry))
    wanted = "javascript" if language == "typescript" else language
    if isinstance(source, Source) and wanted not in {None, source.language}:
        raise PieError("invalid-manifest", f"{own}: program.language = {language!r}, but the entry {source.entry!r} is {source.language}")
    return Project(path, path, _with_manifest(source, described), described)


def _with_named_files(program: Source, path: Path) -> Source:
    """A lone file with the files beside it that its metadata name."""
    if program.language != "python":
        return program
    metadata = script_metadata(program.entry, dict(program.files)[program.entry])
    return with_files(program, path, metadata.files) if metadata is not None and metadata.files else program


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False  # loading it says what is wrong with the path


def _with_manifest(program: Source | Component, manifest: Manifest | None) -> Source | Component:
    return program if manifest is None else replace(program, manifest=manifest.text)


def _carried(component: Component) -> Manifest | None:
    """The manifest that a built program carries."""
    packed = _engine.read_packed(component.read())
    return parse_manifest(packed["manifest"]) if packed is not None and packed["manifest"] is not None else None
