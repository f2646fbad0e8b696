"""Pages between the pool of a driver and a file in memory: the commands `ExportPages` and `ImportPages`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pie.backends.base import Capabilities, DriverError, ExportPages, ImportPages

Bytes: TypeAlias = npt.NDArray[np.uint8]


def export_pages(command: ExportPages, limits: Capabilities, read: Callable[[int], Bytes]) -> None:
    """Writes pages to the file; `read` gives the `page_bytes` of a page, C-contiguous.

    Raises DriverError where the file or a page is not there.
    """
    with _opened(command, limits, os.O_WRONLY) as file:
        for place, page in command.pages:
            _write(file, read(page), place * limits.page_bytes)


def import_pages(command: ImportPages, limits: Capabilities, room: Callable[[int], Bytes], filled: Callable[[int, Bytes], None]) -> None:
    """Reads pages from the file: each into `room`, `page_bytes` long, and `filled` is told once all of it is there.

    Raises DriverError where the file or a page is not there; what the pages hold by then is of no use.
    """
    with _opened(command, limits, os.O_RDONLY) as file:
        for place, page in command.pages:
            content = room(page)
            _read(file, content, place * limits.page_bytes)
            filled(page, content)


def made_by(backend: str, version: int, dtype: str, *sizes: int) -> str:
    """What the bits of pages depend on: a back end, the version of how it computes, its dtype, sizes of the model."""
    return " ".join(map(str, (f"{backend}-{version}", dtype, *sizes)))


@contextmanager
def _opened(command: ExportPages | ImportPages, limits: Capabilities, flags: int) -> Iterator[int]:
    strangers = [page for _, page in command.pages if not 0 <= page < limits.n_pages]
    if strangers:
        raise DriverError(f"page {strangers[0]} is not one of the {limits.n_pages} pages")
    try:
        file = os.open(command.path, flags | os.O_CLOEXEC)
        try:
            yield file
        finally:
            os.close(file)
    except OSError as error:
        raise DriverError(f"pages cannot be moved ({error.strerror})") from None


def _write(file: int, content: Bytes, offset: int) -> None:
    view = content.data
    while view:
        n_written = os.pwrite(file, view, offset)
        view, offset = view[n_written:], offset + n_written


def _read(file: int, content: Bytes, offset: int) -> None:
    view = content.data
    while view:
        n_read = os.preadv(file, [view], offset)
        if n_read == 0:
            raise DriverError(f"the file of pages ends at {offset} bytes, before the page that is to be read")
        view, offset = view[n_read:], offset + n_read
