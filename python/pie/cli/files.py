"""Files that a program sends to `pie run`: saved in a folder that the user named, and in no other place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pie.errors import PieError

if TYPE_CHECKING:
    from pathlib import Path


class FileSink:
    """Saves files as `file-1.bin`, `file-2.bin` and so on, in the order in which they come.

    It never writes over an existing file.
    """

    def __init__(self, folder: Path | None) -> None:
        """`folder` is made where it is missing, when the first file comes; None: nothing is saved.

        PieError `invalid-argument` where it can be neither used nor made, as far as that shows beforehand.
        """
        self._folder = folder
        self._n_files = 0
        if folder is not None:
            _check(folder)

    def take(self, data: bytes) -> str:
        """Saves one file; returns the line that tells the user.

        Raises OSError where it cannot be written, which was not to be seen before the program ran.
        """
        size = "1 byte" if len(data) == 1 else f"{len(data)} bytes"
        if self._folder is None:
            return f"the program sent a file of {size}, which was not saved; --files DIR saves files"
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            self._n_files += 1
            path = self._folder / f"file-{self._n_files}.bin"
            try:
                with path.open("xb") as target:
                    target.write(data)
            except FileExistsError:
                continue
            return f"the program sent a file of {size}: {path}"


def _check(folder: Path) -> None:
    """Refuses a folder in which nothing could be saved, before anything is launched."""
    try:
        there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
        is_folder, is_writable = there.is_dir(), os.access(there, os.W_OK | os.X_OK)
    except (OSError, ValueError) as error:  # too long, a NUL in it
        reason = getattr(error, "strerror", None) or str(error)
    else:
        if is_folder and is_writable:
            return
        reason = f"{str(there)!r} is not a folder" if not is_folder else f"nothing may be written in {str(there)!r}"
    raise PieError("invalid-argument", f"--files {str(folder)!r} cannot be used: {reason}; name a folder in which you may write")
