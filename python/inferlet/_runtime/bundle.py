"""The files of a program, importable: modules, packages and their resources."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import posixpath
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType

from inferlet._runtime import clients
from inferlet._runtime.package_resources import PackageResources
from inferlet.errors import ErrorCode, new_error

# What a bundle cannot replace: the SDK that runs it, and what it stands on.
_OURS = frozenset({"builtins", "componentize_py_types", "inferlet", "sys", "wit_world"})


class Bundle(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads modules among the files of a program, by their paths in it."""

    def __init__(self, files: Mapping[str, bytes], entry: str) -> None:
        if entry not in files:
            raise new_error(ErrorCode.INVALID_PROGRAM, f"the entry {entry!r} is not among the {len(files)} files of the program")
        self.files = dict(files)
        self.entry = entry
        self._root = self._import_root()

    def install(self) -> None:
        """Makes the files importable before the standard library, as a script's own folder is."""
        sys.meta_path.insert(0, self)
        for path in self.files:
            top = path.removeprefix(self._root).partition("/")[0].removesuffix(".py")
            # A module of the standard library that is loaded already would hide the program's own.
            if top in sys.modules and top not in _OURS and self._find(top) is not None:
                del sys.modules[top]

    def remove(self) -> None:
        """Undoes `install` for the finder, where the program has not done so itself."""
        with contextlib.suppress(Exception):
            sys.meta_path.remove(self)

    @property
    def entry_name(self) -> str:
        """The name by which other modules import the entry."""
        return self.entry.removeprefix(self._root).removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find(self, fullname: str) -> str | None:
        """The path of a module, `__main__` being the entry; None where the program has none of that name."""
        return self.entry if fullname == "__main__" else self._find(fullname)

    def package_of(self, fullname: str) -> str:
        """The package that relative imports of a module start from; empty at the top."""
        name = self.entry_name if fullname == "__main__" else fullname
        return name if _package_folder(self._path(fullname)) is not None else name.rpartition(".")[0]

    def remember_lines(self) -> None:
        """Gives tracebacks the source lines of the files that are text."""
        for path in self.files:
            # Any file may be bytes that its encoding does not decode, or name an encoding that does not exist.
            with contextlib.suppress(SyntaxError, ValueError, LookupError):
                if path.endswith(".py"):
                    lines = self._text(path).splitlines(keepends=True)
                    linecache.cache[path] = (len(self.files[path]), None, lines, path)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module of the program; None where it has none of that name."""
        found = self._find(fullname)
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=found, is_package=False)
        folder = _package_folder(found)
        if folder is not None:
            spec.submodule_search_locations = [folder]
        spec.has_location = found in self.files
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Runs a module of the program. A client that speaks by sockets gets the way of the engine."""
        super().exec_module(module)
        clients.adapt(module)

    def is_package(self, fullname: str) -> bool:
        """Whether the module is a folder."""
        return _package_folder(self._path(fullname)) is not None

    def get_filename(self, fullname: str) -> str:
        """The path of the module in the program."""
        return self._path(fullname)

    def get_source(self, fullname: str) -> str | None:
        """The source text; None for a folder without `__init__.py`."""
        path = self._path(fullname)
        return self._text(path) if path in self.files else None

    def get_code(self, fullname: str) -> CodeType:
        """The compiled module; its path in the program names it in tracebacks."""
        path = self._path(fullname)
        try:
            code: CodeType = compile(self.files.get(path, b""), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            # The compiler names no file where the fault lies before the first line, as with a null byte.
            error.filename = path
            raise
        return code

    def get_data(self, path: str) -> bytes:
        """The content of a file by its path; OSError where there is none."""
        try:
            return self.files[posixpath.normpath(path)]
        except KeyError:
            raise FileNotFoundError(f"the program has no file {path!r}") from None

    def get_resource_reader(self, fullname: str) -> PackageResources:
        """What `importlib.resources` reads a package's files through."""
        return PackageResources(self.files, _package_folder(self._path(fullname)) or "")

    def _find(self, fullname: str) -> str | None:
        base = self._root + fullname.replace(".", "/")
        for path in (f"{base}/__init__.py", f"{base}.py"):
            if path in self.files:
                return path
        folder = base + "/"
        return folder if any(path.startswith(folder) and path.endswith(".py") for path in self.files) else None

    def _path(self, fullname: str) -> str:
        path = self.find(fullname)
        if path is None:
            raise ImportError(f"the program has no module {fullname!r}", name=fullname)
        return path

    def _text(self, path: str) -> str:
        return importlib.util.decode_source(self.files[path])

    def _import_root(self) -> str:
        """The folder that absolute imports start from: the first one above the entry that is not a package."""
        folder = posixpath.dirname(self.entry)
        while folder and f"{folder}/__init__.py" in self.files:
            folder = posixpath.dirname(folder)
        return folder + "/" if folder else ""


def _package_folder(path: str) -> str | None:
    """The folder of a package; None where the path is a plain module."""
    if path.endswith("/"):
        return path.removesuffix("/")
    folder, _, name = path.rpartition("/")
    return folder if name == "__init__.py" else None
