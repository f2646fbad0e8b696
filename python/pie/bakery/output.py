"""Where a build writes: a folder that stays open, so that nothing put in its place meanwhile is written through."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pie.errors import PieError
from pie.folder import read_opened

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Output:
    """An open folder that takes files."""

    def __init__(self, path: Path, opened: int) -> None:
        self.path = path
        self._opened = opened

    def check(self, name: str) -> None:
        """Refuses what stands at a name and is no regular file, links among it; PieError `build-failed`."""
        try:
            status = os.lstat(name, dir_fd=self._opened)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unwritable(self.path / name, error) from error
        if not stat.S_ISREG(status.st_mode):
            kind = "a link" if stat.S_ISLNK(status.st_mode) else "no regular file"
            raise PieError("build-failed", f"{str(self.path / name)!r} is {kind}, and is not replaced; remove it, or name another output")

    def has(self, name: str) -> bool:
        """Whether anything stands at a name, if only a link to nothing."""
        try:
            os.lstat(name, dir_fd=self._opened)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unwritable(self.path / name, error) from error
        return True

    def held(self, name: str, max_bytes: int) -> bytes | None:
        """What the file at a name holds; None where there is none that can be read, or it is a link or longer."""
        try:
            return read_opened(self._opened, name, self.path / name, max_bytes)
        except (OSError, PieError):
            return None

    def write(self, name: str, content: bytes) -> None:
        """Writes at once, so that nobody reads half of a program; what is there already stays untouched."""
        if self.held(name, len(content)) == content:
            return
        beside = f".{name}.{secrets.token_hex(8)}"
        try:
            with os.fdopen(os.open(beside, _NEW_FILE, 0o666, dir_fd=self._opened), "wb") as file:
                file.write(content)
            os.replace(beside, name, src_dir_fd=self._opened, dst_dir_fd=self._opened)  # an open folder has no path
        except OSError as error:
            with suppress(OSError):
                os.unlink(beside, dir_fd=self._opened)
            raise _unwritable(self.path / name, error) from error


@contextmanager
def named_folder(path: Path) -> Iterator[Output]:
    """A folder that the user named, through links too; it is made where it is absent.

    Raises PieError `build-failed`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        opened = os.open(path, _FOLDER)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield Output(path, opened)
    finally:
        os.close(opened)


@contextmanager
def own_folder(project: Path, name: str) -> Iterator[Output]:
    """A folder in a project, which may be a stranger's: never a link.

    It is made where it is absent. Raises PieError `build-failed`.
    """
    path = project / name
    try:
        top = os.open(project, _FOLDER)
    except OSError as error:
        raise _unwritable(project, error) from error
    try:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=top)
        if stat.S_ISLNK(os.lstat(name, dir_fd=top).st_mode):
            message = f"{str(path)!r} is a link, and nothing is written through it; remove it, or name an output"
            raise PieError("build-failed", message)
        opened = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=top)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(top)
    try:
        yield Output(path, opened)
    finally:
        os.close(opened)


def _unwritable(path: Path, error: OSError) -> PieError:
    return PieError("build-failed", f"{str(path)!r} cannot be written: {error.strerror}")
