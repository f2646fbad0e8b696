"""Packages that were bundled before, kept by what asked for them, so that the next run needs no index and no installer.

An entry is one file, named by the digest of its key, and is never changed. What was used longest ago is dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pie.bakery.lock import Pin
from pie.bakery.pure_python import RUNTIME_PYTHON, Bundled
from pie.bakery.toolchain.machine import cache_folder, package_sources
from pie.errors import PieError
from pie.programs import MAX_DEPENDENCY_BYTES

MAX_BYTES = 1 << 30
MAX_ENTRIES = 256

_FORMAT = "1"
_SUFFIX = ".zip"
_NEW = ".new-"
_STALE_S = 3600
"""What a command that was killed left half written is dropped after this time."""
# What reading a damaged archive raises.
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, LookupError, TypeError, RuntimeError, EOFError)
_PACKAGES = "packages.json"
_FILES = "files/"
# A fixed time, so that what is kept of the same packages is the same.
_TIME = (1980, 1, 1, 0, 0, 0)


def key_of_requirements(requirements: Iterable[str]) -> str:
    """What requirements lead to is kept by their texts and by where the user takes packages from."""
    return _key(["requirements", *sorted(requirements), "sources", *package_sources()])


def key_of_pins(packages: Iterable[Pin]) -> str:
    """Pinned packages are kept by their versions and digests, wherever they came from."""
    return _key(["pins", *(f"{pin.name} {pin.version} {pin.digest}" for pin in packages)])


def kept(key: str) -> Bundled | None:
    """What is kept; None where nothing is. A damaged entry is dropped.

    Raises PieError `build-failed` where the cache cannot be read.
    """
    path = _folder() / f"{key}{_SUFFIX}"
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > 2 * MAX_DEPENDENCY_BYTES:
                raise ValueError("it is larger than what is kept")
            packages = tuple(Pin(*one) for one in json.loads(archive.read(_PACKAGES)))
            names = [name for name in archive.namelist() if name.startswith(_FILES)]
            files = {name.removeprefix(_FILES): archive.read(name) for name in names}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from error
    except _DAMAGED:
        with suppress(OSError):  # a folder that cannot be written: it is read again, and found damaged again
            path.unlink()
        return None
    with suppress(OSError):  # dropped meanwhile, or not ours to change
        os.utime(path)
    return Bundled(files, packages)


def keep(key: str, bundled: Bundled) -> None:
    """Keeps packages, and drops others where there are too many. Raises PieError `build-failed` as `kept`."""
    folder = _folder()
    if sum(len(content) for content in bundled.files.values()) > MAX_BYTES:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=_NEW, delete=False) as file:
            try:
                _write(Path(file.name), bundled)
                os.replace(file.name, folder / f"{key}{_SUFFIX}")  # noqa: PTH105  # as it is named by the library
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        _trim(folder, f"{key}{_SUFFIX}")
    except OSError as error:
        raise _unusable(folder, error) from error


def _write(path: Path, bundled: Bundled) -> None:
    packages = json.dumps([[pin.name, pin.version, pin.digest] for pin in bundled.packages])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_PACKAGES, _TIME), packages)
        for name, content in sorted(bundled.files.items()):
            archive.writestr(zipfile.ZipInfo(f"{_FILES}{name}", _TIME), content)


def _trim(folder: Path, newest: str) -> None:
    """Drops what was used longest ago, until the rest is within the bounds; other commands may do so meanwhile."""
    entries: list[tuple[float, int, Path]] = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            status = path.stat()
            if path.suffix == _SUFFIX:
                entries.append((status.st_mtime, status.st_size, path))
            elif path.name.startswith(_NEW) and status.st_mtime < time.time() - _STALE_S:
                path.unlink(missing_ok=True)
    entries.sort(key=lambda entry: (entry[2].name == newest, entry[0]), reverse=True)
    n_bytes = 0
    for number, (_, size_bytes, path) in enumerate(entries, 1):
        n_bytes += size_bytes
        if number > MAX_ENTRIES or (n_bytes > MAX_BYTES and path.name != newest):
            path.unlink(missing_ok=True)


def _folder() -> Path:
    return cache_folder() / "python"


def _key(parts: Iterable[str]) -> str:
    hashed = hashlib.sha256()
    for part in (_FORMAT, RUNTIME_PYTHON, *parts):
        content = part.encode("utf-8", "surrogateescape")
        hashed.update(len(content).to_bytes(8, "big") + content)
    return hashed.hexdigest()


def _unusable(path: Path, error: OSError) -> PieError:
    message = f"the packages that are kept in {str(path)!r} cannot be used: {error.strerror or error}"
    return PieError("build-failed", f"{message}; make room there, mend its permissions, or name another folder with XDG_CACHE_HOME")
