"""The standard library inside the snapshot: at launch nothing of it exists but what is loaded or packed here."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import marshal
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from inferlet._runtime import clients

# Loaded before the snapshot: what programs commonly import costs nothing at launch.
_EAGER = """
    abc annotationlib argparse array ast asyncio atexit base64 binascii bisect calendar cmath code codecs collections collections.abc
    concurrent.futures configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib enum errno fnmatch
    fractions functools gc getpass glob graphlib gzip hashlib heapq hmac html html.parser http importlib.metadata importlib.resources
    importlib.util inspect io itertools json keyword linecache locale logging marshal math mimetypes numbers operator os os.path
    pathlib pickle pkgutil platform plistlib pprint queue quopri random re reprlib sched secrets select selectors shlex shutil signal
    socket stat statistics string string.templatelib struct subprocess tempfile textwrap threading time timeit token tokenize tomllib
    traceback types typing unicodedata urllib.error urllib.parse uuid warnings weakref xml.etree.ElementTree zlib
    encodings.ascii encodings.base64_codec encodings.cp1252 encodings.hex_codec encodings.idna encodings.latin_1 encodings.punycode
    encodings.raw_unicode_escape encodings.rot_13 encodings.unicode_escape encodings.utf_16 encodings.utf_8 encodings.utf_8_sig
"""

# Never packed: they need what a program does not have (threads of its own, windows, terminals), or are for developing
# CPython.
_LEFT_OUT = {
    *("__phello__", "_pyrepl", "antigravity", "ctypes", "curses", "dbm", "ensurepip", "idlelib", "lib2to3", "multiprocessing"),
    *("pydoc", "pydoc_data", "site-packages", "sqlite3", "test", "this", "tkinter", "turtle", "turtledemo", "venv"),
}
_TESTS = {"__pycache__", "test", "tests"}


@dataclass(frozen=True)
class _Packed:
    """A module that waits as marshalled code."""

    path: str
    code: bytes
    is_package: bool


class PackedLibrary(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the rest of the standard library as marshalled code, compiled once when the component is built."""

    def __init__(self) -> None:
        self._modules: dict[str, _Packed] = {}

    def __len__(self) -> int:
        return len(self._modules)

    def pack(self, root: Path) -> None:
        """Takes every module under `root` that is not loaded already; a module that does not compile is left out."""
        for name, path in _sources(root):
            if name in sys.modules:
                continue
            try:
                code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True, optimize=2)
            except (SyntaxError, ValueError):
                continue
            self._modules[name] = _Packed(str(path), marshal.dumps(code), path.name == "__init__.py")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a packed module."""
        packed = self._modules.get(fullname)
        if packed is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=packed.path, is_package=packed.is_package)
        if packed.is_package:
            spec.submodule_search_locations = [os.path.dirname(packed.path)]  # noqa: PTH120 - a text in, a text out
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """A plain module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Runs the packed code in the module."""
        assert module.__spec__ is not None
        exec(marshal.loads(self._modules[module.__spec__.name].code), module.__dict__)
        clients.adapt(module)


def load() -> PackedLibrary:
    """Imports the common modules, packs the others and makes them importable."""
    for name in _EAGER.split():
        try:
            importlib.import_module(name)
        except ImportError as error:
            # Some modules have no meaning on this platform; a program that imports one meets the same error.
            print(f"standard library: {name} is left out: {error}", file=sys.stderr)
    library = PackedLibrary()
    library.pack(_folder())
    sys.meta_path.append(library)
    return library


def _folder() -> Path:
    """Where the sources of the standard library lie while the component is built."""
    for entry in sys.path:
        # The file names inside of frozen modules point elsewhere.
        if (Path(entry) / "asyncio" / "base_events.py").exists():
            return Path(entry)
    raise RuntimeError(f"none of {sys.path} holds the standard library")


def _sources(root: Path) -> Iterator[tuple[str, Path]]:
    """Every module under the folder of the standard library by name, without tests."""
    for folder, folders, files in os.walk(root):
        parts = Path(folder).relative_to(root).parts
        left_out = _TESTS if parts else _TESTS | _LEFT_OUT
        folders[:] = sorted(name for name in folders if name not in left_out and "-" not in name)
        for file in sorted(files):
            stem = file.removesuffix(".py")
            if stem == file or (not parts and stem in _LEFT_OUT):
                continue
            name = ".".join(parts if stem == "__init__" else (*parts, stem))
            if name:
                yield name, Path(folder) / file
