"""Files that a program sends to `pie run`: saved in a folder that the user named, and in no other place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pie.errors import PieError

if TYPE_CHECKING:
    from pathlib import Path


class FileSink:
    """Saves files as `file-1.bin`, `file-2.bin` and so on, in the order in which they come.

    It never writes over an existing file.
    """

    def __init__(self, folder: Path | None) -> None:
        """`folder` is made where it is missing; None: nothing is saved.

        PieError `invalid-argument` where it cannot be made.
        """
        self._folder = folder
        self._n_files = 0
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                message = f"--files {str(folder)!r} cannot be made ({error.strerror}); name a folder in which you may write"
                raise PieError("invalid-argument", message) from error

    def take(self, data: bytes) -> str:
        """Saves one file; returns the line that tells the user. Raises OSError where it cannot be written."""
        size = "1 byte" if len(data) == 1 else f"{len(data)} bytes"
        if self._folder is None:
            return f"the program sent a file of {size}, which was not saved; --files DIR saves files"
        while True:
            self._n_files += 1
            path = self._folder / f"file-{self._n_files}.bin"
            try:
                with path.open("xb") as target:
                    target.write(data)
            except FileExistsError:
                continue
            return f"the program sent a file of {size}: {path}"
