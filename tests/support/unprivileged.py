"""Runs the command line as somebody who may not read what its mode forbids, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import sys

from pie.cli import main

_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def give_up_privileges() -> None:
    """Drops every capability of this process: its files are then its owner's, and no more."""
    libc = ctypes.CDLL(None, use_errno=True)
    nothing = (_Data * 2)()
    if libc.capset(ctypes.byref(_Header(_VERSION_3, 0)), nothing) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    give_up_privileges()
    sys.argv[0] = "pie"
    main()
