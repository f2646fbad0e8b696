"""The files of a program's package, as `importlib.resources` reads them."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterator, Mapping
from importlib.resources import abc
from os import PathLike
from typing import IO, Any


class PackageResources(abc.TraversableResources):
    """The resources of one package: its folder in the program."""

    def __init__(self, files: Mapping[str, bytes], folder: str) -> None:
        self._root = _Node(files, folder)

    def files(self) -> abc.Traversable:
        """The folder of the package."""
        return self._root


class _Node(abc.Traversable):
    """A file or a folder, by its path in the program."""

    def __init__(self, files: Mapping[str, bytes], path: str) -> None:
        self._files = files
        self._path = path

    @property
    def name(self) -> str:
        return posixpath.basename(self._path)

    def iterdir(self) -> Iterator[abc.Traversable]:
        prefix = self._prefix()
        names = {path[len(prefix) :].partition("/")[0] for path in self._files if path.startswith(prefix)}
        return (_Node(self._files, prefix + name) for name in sorted(names))

    def is_dir(self) -> bool:
        prefix = self._prefix()
        return any(path.startswith(prefix) for path in self._files)

    def is_file(self) -> bool:
        return self._path in self._files

    def joinpath(self, *descendants: str | PathLike[str]) -> abc.Traversable:
        return _Node(self._files, posixpath.normpath(posixpath.join(self._path, *map(str, descendants))))

    def __truediv__(self, child: str | PathLike[str]) -> abc.Traversable:
        return self.joinpath(child)

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        data = io.BytesIO(self.read_bytes())
        return data if "b" in mode else io.TextIOWrapper(data, *args, **kwargs)

    def read_bytes(self) -> bytes:
        if self._path not in self._files:
            raise FileNotFoundError(f"the program has no file {self._path!r}")
        return self._files[self._path]

    def read_text(self, encoding: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8")

    def __str__(self) -> str:
        return self._path

    def _prefix(self) -> str:
        return self._path + "/" if self._path else ""
