"""Beside the files of a program, which it reads and writes as Python does: why the engine refused something.

`open`, `os` and `pathlib` work in `/scratch`, the program's own folder, and in the folders that it is given to read.
"""

from __future__ import annotations

from wit_world.imports import files as _files

from inferlet.errors import InferletError, host

__all__ = ["refusal"]


def refusal() -> InferletError | None:
    """Why the engine last refused a call on files; None where it has refused nothing.

    An `OSError` has no more than a number, as `errno.EDQUOT`. The error has a code: `limit-files` where `/scratch` is
    full or a path is too long, `files-off` where there is no folder, `limit-resources` where too many files are open,
    `files-stalled` where the disk does not answer. Its message names the limit.
    """
    try:
        host(_files.check)
    except InferletError as refused:
        return refused
    return None
