"""Reads the files of a program's folder, and nothing outside of it.

A folder may come from anybody, so nothing in it is trusted. Paths are walked from an open folder, one name at a time,
and no `open` follows a link: one that is put in the place of a file between a look and the `open` is refused. Links are
followed by hand, as far as they stay inside. What is a mount, or neither a file nor a folder, is refused. Sizes are
known before anything is read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import TracebackType

from pie.errors import PieError

MAX_PROJECT_FILE_BYTES = 4 << 20
"""The longest file that describes a project, as `package.json`."""

_MAX_LINKS = 40
_CHUNK_BYTES = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A pipe is not waited for, and a terminal does not become that of this process.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


class Folder:
    """An open folder. What is given as its path may be a link: whoever names it means what it leads to."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where the path is not a folder that can be opened."""
        self._path = path
        self._root = os.open(path, _FOLDER)
        self._mount = _mount(self._root)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        os.close(self._root)

    def is_file(self, path: PurePosixPath) -> bool:
        """Whether a file lies at a path below the folder.

        Raises PieError `invalid-program` for what is not a file or a folder, and for links and mounts that lead out.
        """
        with self._opened(path) as found:
            return found is not None and stat.S_ISREG(os.fstat(found).st_mode)

    def is_dir(self, path: PurePosixPath) -> bool:
        """Whether a folder lies at a path; raises as `is_file`."""
        with self._opened(path) as found:
            return found is not None and stat.S_ISDIR(os.fstat(found).st_mode)

    def size(self, path: PurePosixPath) -> int:
        """The bytes of a file, which is not read; 0 where there is none. Raises as `is_file`."""
        with self._opened(path) as found:
            return 0 if found is None else os.fstat(found).st_size

    def read(self, path: PurePosixPath, max_bytes: int = MAX_PROJECT_FILE_BYTES) -> bytes | None:
        """The bytes of a file; None where there is none.

        Raises as `is_file`, and where it has more than `max_bytes`.
        """
        with self._opened(path) as found:
            if found is None or not stat.S_ISREG(os.fstat(found).st_mode):
                return None
            return _content(found, self._path / path, max_bytes)

    def names(self, path: PurePosixPath) -> frozenset[str]:
        """The names of what lies in the folder at a path; none where there is none. Raises as `is_file`."""
        with self._opened(path) as found:
            if found is None or not stat.S_ISDIR(os.fstat(found).st_mode):
                return frozenset()
            try:
                return frozenset(os.listdir(found))  # noqa: PTH208  # an open folder has no path
            except OSError as error:
                raise self._unreadable(path, error) from error

    def walk(self, base: PurePosixPath, *, skips: frozenset[str], with_hidden: bool = False) -> Iterator[tuple[PurePosixPath, int]]:
        """The paths of the files at any depth below `base`, relative to it, and their sizes; none of them is read.

        Hidden names, and whatever is no file and has a name in `skips`, are passed over. A link to a folder inside is
        not walked into: its files are found in their own place. Raises as `is_file`, and for a link to nothing.
        """
        waiting = [PurePosixPath()]
        while waiting:
            folder = waiting.pop()
            files, folders = self._listed(base / folder, skips, with_hidden=with_hidden)
            for name, size in files:
                yield folder / name, size
            waiting.extend(folder / name for name in reversed(folders))

    def _listed(self, path: PurePosixPath, skips: frozenset[str], *, with_hidden: bool) -> tuple[list[tuple[str, int]], list[str]]:
        """The files of a folder with their sizes, and the folders in it to walk into."""
        files, folders = [], []
        with self._opened(path) as opened:
            if opened is None:
                raise self._refused(path, "it was removed while it was read")
            try:
                # An open folder has no path.
                names = sorted(name for name in os.listdir(opened) if with_hidden or not name.startswith("."))  # noqa: PTH208
            except OSError as error:
                raise self._unreadable(path, error) from error
            for name in names:
                if not _is_text(name):
                    raise self._refused(path / name, "its name is not UTF-8, and files of a program have names in UTF-8; rename it")
                try:
                    status = os.lstat(name, dir_fd=opened)
                except FileNotFoundError:
                    continue  # removed meanwhile
                if name in skips and not stat.S_ISREG(status.st_mode):
                    continue
                if stat.S_ISLNK(status.st_mode):
                    status = self._target(path / name)
                    if stat.S_ISDIR(status.st_mode):
                        continue
                if stat.S_ISREG(status.st_mode):
                    files.append((name, status.st_size))
                elif stat.S_ISDIR(status.st_mode):
                    folders.append(name)
                else:
                    raise self._special(path / name, status.st_mode)
        return files, folders

    def _target(self, path: PurePosixPath) -> os.stat_result:
        """What a link leads to."""
        with self._opened(path) as opened:
            if opened is None:
                raise self._refused(path, "it is a link to nothing; remove it")
            return os.fstat(opened)

    @contextmanager
    def _opened(self, path: PurePosixPath) -> Iterator[int | None]:
        """The open file or folder at a path; None where there is none."""
        try:
            found = self._open(path)
        except ValueError:  # a NUL in it
            found = None
        except OSError as error:
            if error.errno not in _ABSENT:
                raise self._unreadable(path, error) from error
            found = None
        try:
            yield found
        finally:
            if found is not None:
                os.close(found)

    def _open(self, path: PurePosixPath) -> int:
        """Opens what lies at a path. Raises OSError as `open` does."""
        names = list(path.parts)
        done: list[str] = []
        target, n_links = "..", 0
        here = os.dup(self._root)
        try:
            while names:
                name = names.pop(0)
                status = None if name == ".." else os.lstat(name, dir_fd=here)
                if status is None or stat.S_ISLNK(status.st_mode):
                    if status is None and not done:
                        raise self._outside(path, target)
                    if status is None:
                        names = done[:-1] + names
                    else:
                        target, n_links = os.readlink(name, dir_fd=here), n_links + 1
                        names = self._led(path, done, target) + names
                    if n_links > _MAX_LINKS:
                        raise self._refused(path, f"it leads through more than {_MAX_LINKS} links; remove them")
                    # From the top again, and never through `..` of an open folder, which may have been moved out.
                    here, done = _replaced(here, os.dup(self._root)), []
                    continue
                if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                    raise self._special(path, status.st_mode)
                flags = (_FOLDER if names or stat.S_ISDIR(status.st_mode) else _FILE) | os.O_NOFOLLOW
                here = _replaced(here, os.open(name, flags, dir_fd=here))
                self._check(here, path)
                done.append(name)
        except BaseException:
            os.close(here)
            raise
        return here

    def _led(self, path: PurePosixPath, done: list[str], target: str) -> list[str]:
        """The names from the top by which a link leads on that stands in the folder `done`."""
        to = PurePosixPath(target)
        if not to.is_absolute():
            return [*done, *to.parts]
        for top in (self._path.resolve(), self._path.absolute()):
            if to.is_relative_to(top):
                return list(to.relative_to(top).parts)
        raise self._outside(path, target)

    def _outside(self, path: PurePosixPath, target: str) -> PieError:
        reason = (
            f"it is a link to {target!r}, outside of the program's folder {str(self._path)!r}, and nothing outside is read; "
            "put a copy in its place, or remove the link"
        )
        return self._refused(path, reason)

    def _check(self, opened: int, path: PurePosixPath) -> None:
        """Refuses a file that took the place of another since it was looked at.

        It also refuses what is mounted inside of the folder.
        """
        mode = os.fstat(opened).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise self._special(path, mode)
        if _mount(opened) != self._mount:
            reason = (
                "it is a mount inside of the program's folder, and nothing outside of that is read; unmount it, or put a copy in its place"
            )
            raise self._refused(path, reason)

    def _special(self, path: PurePosixPath, mode: int) -> PieError:
        return self._refused(path, f"it is {_kind_of(mode)} and not a regular file; remove it, or move it out of the folder")

    def _unreadable(self, path: PurePosixPath, error: OSError) -> PieError:
        if error.errno == errno.ELOOP:
            return self._refused(path, "it became a link while it was read")
        return PieError("unknown-program", f"{str(self._path / path)!r} cannot be read: {error.strerror}")

    def _refused(self, path: PurePosixPath, reason: str) -> PieError:
        return PieError("invalid-program", f"{str(self._path / path)!r} cannot be read: {reason}")


def read_project_file(folder: Path, name: str, max_bytes: int = MAX_PROJECT_FILE_BYTES) -> bytes | None:
    """The bytes of a file that describes the project in a folder; None where there is none. Raises as `Folder.read`."""
    try:
        with Folder(folder) as opened:
            return opened.read(PurePosixPath(name), max_bytes)
    except OSError as error:
        raise PieError("unknown-program", f"{str(folder)!r} cannot be read: {error.strerror}") from error


def check_inside(folder: Path, name: str) -> None:
    """Refuses what lies at a name in a folder where that leads out of it, so that nothing is written there.

    Raises as `Folder.is_file`.
    """
    try:
        with Folder(folder) as opened:
            opened.is_dir(PurePosixPath(name))
    except OSError as error:
        raise PieError("unknown-program", f"{str(folder)!r} cannot be read: {error.strerror}") from error


def read_file(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file that the user named, through links too.

    Raises OSError as `open` does, PieError `invalid-program` for what is not a regular file or has more than
    `max_bytes`.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise PieError("invalid-program", f"{str(path)!r} is {_kind_of(status.st_mode)} and not a regular file; name a file")
    opened = os.open(path, _FILE)
    try:
        return _content(opened, path, max_bytes)
    finally:
        os.close(opened)


def read_opened(folder: int, name: str, path: Path, max_bytes: int) -> bytes:
    """The bytes of the file at a name in an open folder, which `path` names in errors. No link is followed.

    Raises OSError as `open` does, PieError `invalid-program` as `read_file`.
    """
    opened = os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=folder)
    try:
        return _content(opened, path, max_bytes)
    finally:
        os.close(opened)


def _content(opened: int, path: Path, max_bytes: int) -> bytes:
    """What an open file holds.

    What says less than it holds, as files of `/proc` do, is read no further than the limit.
    """
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode):
        raise PieError("invalid-program", f"{str(path)!r} is {_kind_of(status.st_mode)} and not a regular file; remove it")
    if status.st_size > max_bytes:
        raise _too_large(path, f"{status.st_size} bytes, ", max_bytes)
    chunks: list[bytes] = []
    n_bytes = 0
    while chunk := os.read(opened, _CHUNK_BYTES):
        chunks.append(chunk)
        n_bytes += len(chunk)
        if n_bytes > max_bytes:
            raise _too_large(path, "", max_bytes)
    return b"".join(chunks)


def _too_large(path: Path, has: str, max_bytes: int) -> PieError:
    message = f"{str(path)!r} has {has}more than the {max_bytes} that are read of such a file; make it smaller, or name another one"
    return PieError("invalid-program", message)


def _is_text(name: str) -> bool:
    """Whether a name of the system is UTF-8; bytes that are not stand for themselves in it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _replaced(old: int, new: int) -> int:
    os.close(old)
    return new


def _kind_of(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "something unknown")


def _mount(opened: int) -> tuple[str, int]:
    """The mount in which an open file lies: by the number that the kernel gives it, else by the device.

    A bind mount has the device of what is mounted, and so may be known by the number alone.
    """
    try:
        for line in Path(f"/proc/self/fdinfo/{opened}").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "mnt_id":
                return "mount", int(value)
    except (OSError, ValueError):
        pass  # there is no /proc here
    return "device", os.fstat(opened).st_dev
