"""Finds the program behind a path.

It is a component, a source file with what it imports from beside it, or a project folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Literal

from pie.errors import PieError
from pie.folder import Folder, read_file
from pie.imports import Imports

Language = Literal["python", "javascript"]

MAX_BUNDLE_BYTES = 32 << 20
MAX_BUNDLE_FILES = 4096
MAX_DEPENDENCY_BYTES = 1 << 30
"""What is bundled with a program is no larger: no engine takes more."""
MAX_COMPONENT_BYTES = 1 << 30
"""The longest component that is read at all: the most that `limits.component_bytes` may be."""

MANIFEST_FILE = "Pie.toml"
"""What the manifest of a program is called."""
LOCK_FILE = "pie.lock"
"""What the list of the packages is called that a program was built with."""
RUNTIMES = Path(__file__).resolve().parent / "runtimes"
"""The folder with the language runtimes."""
_RUNTIME_NAMES: dict[Language, str] = {"python": "the Python runtime", "javascript": "the JavaScript runtime"}

_MAX_SHOWN_CHARS = 200
_CRATE_DEPTH = 2
"""How far above a path within a crate its Cargo.toml is looked for: `src/lib.rs`."""

_TOP = PurePosixPath()
_LANGUAGES: dict[str, Language] = {".py": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "javascript"}
ENDINGS = (*_LANGUAGES, ".wasm")
"""How files of programs end."""
_ENTRIES = (
    "main.py",
    "main.ts",
    "main.js",
    "index.ts",
    "index.js",
    "src/main.py",
    "src/main.ts",
    "src/main.js",
    "src/index.ts",
    "src/index.js",
)
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "target", "build", "dist", "venv"})
# Compiled modules, built programs, manifests and locks: what building leaves behind would be built into the program the
# next time.
_SKIPPED_FILES = (".pyc", ".wasm", MANIFEST_FILE, LOCK_FILE)
_MAX_SCANNED_BYTES = 4 << 20
"""The longest file whose imports are looked for."""


@dataclass(frozen=True)
class Component:
    """A compiled or built program: a WebAssembly component."""

    path: Path
    manifest: str | None = None
    """The text of a manifest that takes the place of the one that it carries."""
    content: bytes | None = None
    """Its bytes, where they were built and lie in no file."""

    def read(self) -> bytes:
        """Its bytes; PieError `unknown-program` where they cannot be read, `limit-program` where they are too many."""
        if self.content is not None:
            return self.content
        try:
            if (n_bytes := self.path.stat().st_size) > MAX_COMPONENT_BYTES:
                message = f"{n_bytes} bytes, more than {MAX_COMPONENT_BYTES}, the most that limits.component_bytes may be; make it smaller"
                raise PieError("limit-program", f"the program {str(self.path)!r} has {message}")
            return read_file(self.path, MAX_COMPONENT_BYTES)
        except OSError as error:
            raise PieError("unknown-program", f"{str(self.path)!r} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class Source:
    """A program that runs from source; paths are relative to its folder, with `/` between names."""

    language: Language
    files: tuple[tuple[str, bytes], ...]
    entry: str
    manifest: str | None = None
    """The text of the manifest that inputs are checked against."""


def load_program(path: Path) -> Component | Source:
    """The program at `path`.

    Raises PieError `unknown-program` where there is none, `invalid-program` where it cannot be one.
    """
    check_path(path)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:  # too long, a NUL in it
        reason = getattr(error, "strerror", None) or str(error)
        raise PieError("unknown-program", f"{_shortened(path)!r} cannot be the path of a program: {reason}") from error
    if is_folder:
        return _load_folder(path)
    if not exists:
        raise PieError("unknown-program", f"there is no program at {_shortened(path)!r}; check the path")
    if not path.is_file():  # a pipe would be waited for
        raise PieError("invalid-program", f"{_shortened(path)!r} is not a regular file; give a file or a folder")
    if path.suffix == ".wasm":
        return Component(path)
    language = _LANGUAGES.get(path.suffix)
    if path.suffix == ".rs":
        raise PieError(
            "invalid-program",
            f"{_shortened(path)!r} is a file of Rust, and a program in Rust is a folder with a Cargo.toml; {_crate(path)}",
        )
    if language is None:
        known = ", ".join([".wasm", *_LANGUAGES])
        raise PieError(
            "invalid-program",
            f"{str(path)!r} ends in {path.suffix!r}, which is not a program; a program is a folder or ends in {known}",
        )
    with _folder(path.parent) as folder:
        return Source(language, _reachable(folder, path), path.name)


def compiling(program: Component | Source | Language) -> str:
    """What is said while a program, or the runtime of its language, is compiled."""
    if isinstance(program, Component):
        return "Compiling the program or its language runtime (once)"
    language = program.language if isinstance(program, Source) else program
    return f"Compiling {_RUNTIME_NAMES[language]} (once, about half a minute)"


def check_path(path: Path) -> None:
    """Refuses the path of a program, with PieError `unknown-program`, where it is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise PieError("unknown-program", f"{_shortened(path)!r} cannot be the path of a program: it is not UTF-8; rename it") from error


def _shortened(path: Path) -> str:
    text = str(path)
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."


def _load_folder(path: Path) -> Source:
    with _folder(path) as folder:
        entry = next((entry for entry in map(PurePosixPath, _ENTRIES) if folder.is_file(entry)), None)
    if entry is None:
        message = f"the folder {str(path)!r} holds no program; its entry must be one of {', '.join(_ENTRIES)}"
        raise PieError("invalid-program", f"{message}, and a program in Rust has a Cargo.toml there: {_crate(path)}")
    return load_folder(path, entry)


def _crate(path: Path) -> str:
    """What to give in place of a path within a Rust program, or of one that has no Cargo.toml."""
    try:
        above = next((folder for folder in islice(path.parents, _CRATE_DEPTH) if (folder / "Cargo.toml").is_file()), None)
    except OSError:
        above = None
    return "`pie new NAME --rust` makes one" if above is None else f"give {_shortened(above)!r}, which has one"


def load_folder(path: Path, entry: PurePosixPath) -> Source:
    """The program whose entry is a file below the folder at `path`.

    It has every file of the folder that the entry lies in, at any depth.

    Links are followed as far as they stay below `path`. Raises PieError `invalid-program` where the program is too
    large, in no known language, or has files that lie elsewhere.
    """
    language = _LANGUAGES.get(entry.suffix)
    if language is None:
        known = ", ".join(_LANGUAGES)
        raise PieError("invalid-program", f"the entry {str(entry)!r} ends in {entry.suffix!r}; a program in source form ends in {known}")
    with _folder(path) as folder:
        return Source(language, _bundle(folder, path, entry.parent), entry.name)


def with_files(program: Source, path: Path, names: Sequence[str]) -> Source:
    """The program of the lone file at `path`, with files and folders beside it that it names.

    Raises PieError `invalid-program` for what is not there or lies elsewhere, and where the program is too large.
    """
    with _folder(path.parent) as folder:
        room = _Room(path.parent)
        found = dict(program.files)
        for content in found.values():
            room.take(len(content))
        for name in names:
            for file in _named(folder, path, name):
                if str(file) not in found:
                    found[str(file)] = room.read(folder, file)
    return replace(program, files=tuple(found.items()))


def _named(folder: Folder, path: Path, name: str) -> Iterator[PurePosixPath]:
    """The files that a name stands for, beside the lone file at `path`."""
    place = PurePosixPath(name)
    is_inside = bool(name) and not place.is_absolute() and ".." not in place.parts and place != _TOP
    if is_inside and folder.is_file(place):
        yield place
    elif is_inside and folder.is_dir(place):
        for file, _ in folder.walk(place, skips=_SKIPPED_FOLDERS):
            if not file.name.endswith(_SKIPPED_FILES):
                yield place / file
    else:
        shown = name if len(name) <= _MAX_SHOWN_CHARS else f"{name[:_MAX_SHOWN_CHARS]}..."
        message = f"{_shortened(path)!r} names {shown!r} in tool.pie.files, and there is no such file or folder beside it; correct the name"
        raise PieError("invalid-program", message)


def _folder(path: Path) -> Folder:
    try:
        return Folder(path)
    except OSError as error:
        raise PieError("unknown-program", f"{_shortened(path)!r} cannot be read: {error.strerror}") from error


def _bundle(folder: Folder, path: Path, base: PurePosixPath) -> tuple[tuple[str, bytes], ...]:
    """The files below `base` by their paths there. Their sizes are summed before the first is read."""
    room = _Room(path, base)
    found: list[PurePosixPath] = []
    for name, size_bytes in folder.walk(base, skips=_SKIPPED_FOLDERS):
        if not name.name.endswith(_SKIPPED_FILES):
            room.take(size_bytes)
            found.append(name)
    room = _Room(path, base)
    return tuple((str(name), room.read(folder, base / name)) for name in found)


class _Room:
    """What the files of a program may still have; PieError `invalid-program` for more."""

    def __init__(self, folder: Path, base: PurePosixPath = _TOP) -> None:
        self._folder = folder
        self._base = base
        self._n_files = MAX_BUNDLE_FILES
        self.n_bytes = MAX_BUNDLE_BYTES
        """What may still be read."""

    def check(self, size_bytes: int) -> None:
        """Refuses a file of such a size where there is no room for it."""
        if self._n_files < 1 or self.n_bytes < size_bytes:
            raise PieError(
                "invalid-program",
                f"the program in {str(self._folder / self._base)!r} is larger than {MAX_BUNDLE_FILES} files or "
                f"{MAX_BUNDLE_BYTES >> 20} MiB; move what it does not need out of its folder",
            )

    def take(self, size_bytes: int) -> None:
        self.check(size_bytes)
        self._n_files -= 1
        self.n_bytes -= size_bytes

    def read(self, folder: Folder, name: PurePosixPath) -> bytes:
        """The content of a file.

        No more of it is read than there is room for, even if it grew since it was looked at.
        """
        self.check(folder.size(name))
        content = folder.read(name, self.n_bytes)
        if content is None:
            raise PieError("unknown-program", f"{str(self._folder / name)!r} cannot be read: it was removed meanwhile")
        self.take(len(content))
        return content


def _reachable(folder: Folder, entry: Path) -> tuple[tuple[str, bytes], ...]:
    """The entry and every file beside it that it imports, directly or not: a script's folder may be anyone's home."""
    room, imports = _Room(entry.parent), Imports(folder)
    found: dict[PurePosixPath, bytes] = {}
    waiting = [PurePosixPath(entry.name)]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        # Whoever names the entry means what it leads to, and so it alone may be a link out of the folder.
        found[path] = room.read(folder, path) if found else _entry(entry, room)
        if path.suffix not in _LANGUAGES:
            continue
        if len(found[path]) > _MAX_SCANNED_BYTES:
            message = f"{len(found[path])} bytes, more than the {_MAX_SCANNED_BYTES} in which imports are looked for"
            remedy = f"split it, or make {_ENTRIES[0]} the entry of a folder, which is taken whole"
            raise PieError("invalid-program", f"{str(entry.parent / path)!r} has {message}; {remedy}")
        waiting.extend(imports.of(path, found[path]))
    return tuple((str(path), content) for path, content in found.items())


def _entry(path: Path, room: _Room) -> bytes:
    try:
        room.check(path.stat().st_size)
        content = read_file(path, room.n_bytes)
    except OSError as error:
        raise PieError("unknown-program", f"{str(path)!r} cannot be read: {error.strerror}") from error
    room.take(len(content))
    return content
