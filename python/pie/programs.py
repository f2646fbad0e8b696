"""Finds the program behind a path: a component, a source file with what it imports from beside it, or a project folder."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pie.errors import PieError

Language = Literal["python", "javascript"]

MAX_BUNDLE_BYTES = 32 << 20
MAX_BUNDLE_FILES = 4096

MANIFEST_FILE = "Pie.toml"
"""What the manifest of a program is called."""
RUNTIMES = Path(__file__).resolve().parent / "runtimes"
"""The folder with the language runtimes."""

_MAX_SHOWN_CHARS = 200

_LANGUAGES: dict[str, Language] = {".py": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "javascript"}
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
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "target", "build", "dist", "venv"}
# Compiled modules, built programs and manifests: what building leaves behind would be built into the program the next time.
_SKIPPED_FILES = (".pyc", ".wasm", MANIFEST_FILE)
_PYTHON_IMPORT = re.compile(r"^[ \t]*((?:from[ \t][^\n(#]*import[ \t]*\([^)]*\)|(?:from|import)[ \t][^\n#;]*))", re.MULTILINE)
_SCRIPT_IMPORT = re.compile(r"""(?:\bfrom|\bimport|\bimport\s*\()\s*(['"])(\.{1,2}/[^'"\n]+)\1""")


@dataclass(frozen=True)
class Component:
    """A compiled or built program: a WebAssembly component."""

    path: Path
    manifest: str | None = None
    """The text of a manifest that takes the place of the one that it carries."""
    content: bytes | None = None
    """Its bytes, where they were built and lie in no file."""

    def read(self) -> bytes:
        """Its bytes; PieError `unknown-program` where they cannot be read."""
        return _read(self.path) if self.content is None else self.content


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
    try:
        str(path).encode()
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:  # too long, not UTF-8, a NUL in it
        reason = "it is not UTF-8" if isinstance(error, UnicodeError) else getattr(error, "strerror", None) or str(error)
        raise PieError("unknown-program", f"{_shortened(path)!r} cannot be the path of a program: {reason}") from error
    if is_folder:
        return _load_folder(path)
    if not exists:
        raise PieError("unknown-program", f"there is no program at {_shortened(path)!r}; check the path")
    if not path.is_file():  # a pipe would be waited for
        raise PieError("invalid-program", f"{_shortened(path)!r} is no regular file; give a file or a folder")
    if path.suffix == ".wasm":
        return Component(path)
    language = _LANGUAGES.get(path.suffix)
    if language is None:
        known = ", ".join([".wasm", *_LANGUAGES])
        raise PieError(
            "invalid-program",
            f"{str(path)!r} ends in {path.suffix!r}, which is no program; a program is a folder or ends in {known}",
        )
    finder = _python_imports if language == "python" else _script_imports
    return Source(language, _bundle(path.parent, _reachable(path.parent, path.name, finder)), path.name)


def _shortened(path: Path) -> str:
    text = str(path)
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."


def _load_folder(folder: Path) -> Source:
    for entry in _ENTRIES:
        if (folder / entry).is_file():
            return load_folder(folder, PurePosixPath(entry))
    raise PieError(
        "invalid-program",
        f"the folder {str(folder)!r} holds no program; its entry must be one of {', '.join(_ENTRIES)}",
    )


def load_folder(folder: Path, entry: PurePosixPath) -> Source:
    """The program whose entry is a file below `folder`: every file of the folder that the entry lies in, at any depth.

    Raises PieError `invalid-program` where it is too large or in no known language.
    """
    language = _LANGUAGES.get(entry.suffix)
    if language is None:
        known = ", ".join(_LANGUAGES)
        raise PieError("invalid-program", f"the entry {str(entry)!r} ends in {entry.suffix!r}; a program in source form ends in {known}")
    root = folder / entry.parent
    return Source(language, _bundle(root, _walk(root)), entry.name)


def _walk(root: Path) -> Iterable[PurePosixPath]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED_FOLDERS and not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith(_SKIPPED_FILES):
                yield PurePosixPath(Path(folder, name).relative_to(root).as_posix())


def _bundle(root: Path, paths: Iterable[PurePosixPath]) -> tuple[tuple[str, bytes], ...]:
    files: list[tuple[str, bytes]] = []
    size_bytes = 0
    for path in paths:
        content = _read(root / path)
        size_bytes += len(content)
        files.append((str(path), content))
        if size_bytes > MAX_BUNDLE_BYTES or len(files) > MAX_BUNDLE_FILES:
            raise PieError(
                "invalid-program",
                f"the program in {str(root)!r} is larger than {MAX_BUNDLE_FILES} files or {MAX_BUNDLE_BYTES >> 20} MiB; "
                "move what it does not need out of its folder",
            )
    return tuple(files)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PieError("unknown-program", f"{str(path)!r} cannot be read: {error.strerror}") from error


def _reachable(root: Path, entry: str, imports: Callable[[Path, PurePosixPath, bytes], list[PurePosixPath]]) -> list[PurePosixPath]:
    """The entry and every file beside it that it imports, directly or not: a script's folder may be anyone's home."""
    found: dict[PurePosixPath, None] = {}
    waiting = [PurePosixPath(entry)]
    while waiting and len(found) <= MAX_BUNDLE_FILES:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = None
        waiting.extend(imports(root, path, _read(root / path)))
    return list(found)


def _python_imports(root: Path, path: PurePosixPath, content: bytes) -> list[PurePosixPath]:
    if path.suffix != ".py":
        return []
    names: set[str] = set()
    for node in _import_statements(content):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.parent.parts[: len(path.parent.parts) - node.level + 1] if node.level else ()
            base = ".".join([*package, *([node.module] if node.module else [])])
            names.update([base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)])
    return [file for name in sorted(names) if name for file in _python_files(root, name)]


def _import_statements(content: bytes) -> Iterator[ast.AST]:
    """The import statements of a file, and what else stands there."""
    try:
        yield from ast.walk(ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Python of the language runtime may be newer than this one: it judges the file, and is to find what that imports.
        for statement in _PYTHON_IMPORT.findall(content.decode("utf-8", "replace")):
            with suppress(SyntaxError, ValueError):
                yield from ast.walk(ast.parse(statement))


def _python_files(root: Path, name: str) -> list[PurePosixPath]:
    """The files that importing the dotted `name` runs, packages on the way included."""
    files = []
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        module = PurePosixPath(*parts[:depth])
        files += [file for file in (module / "__init__.py", module.with_suffix(".py")) if (root / file).is_file()]
    return files


def _script_imports(root: Path, path: PurePosixPath, content: bytes) -> list[PurePosixPath]:
    found = []
    for match in _SCRIPT_IMPORT.finditer(content.decode("utf-8", "replace")):
        target = PurePosixPath(os.path.normpath(path.parent / match[2]))
        stem = target.with_suffix("") if target.suffix == ".js" else target
        for file in (
            target,
            stem.with_suffix(".ts"),
            target.with_name(target.name + ".js"),
            target.with_name(target.name + ".ts"),
        ):
            if ".." not in file.parts and (root / file).is_file():
                found.append(file)
                break
    return found
