"""The names that the body of a module binds and reads, by its code.

`dis` would tell the same in a quarter of a launch.
"""

from __future__ import annotations

import opcode
from collections.abc import Iterator
from types import CodeType

_EXTENDED_ARG = opcode.opmap["EXTENDED_ARG"]
_LOAD_NAME = opcode.opmap["LOAD_NAME"]
_STORE_NAME = opcode.opmap["STORE_NAME"]


def stored(code: CodeType) -> Iterator[str]:
    """The names that the body binds: by a definition, an import or an assignment."""
    return _named(code, _STORE_NAME)


def loaded(code: CodeType) -> Iterator[str]:
    """The names that the body reads, outside of what it defines."""
    return _named(code, _LOAD_NAME)


def _named(code: CodeType, wanted: int) -> Iterator[str]:
    extended = 0
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if operation == _EXTENDED_ARG:
            extended = (extended | argument) << 8
            continue
        if operation == wanted:
            yield code.co_names[extended | argument]
        extended = 0
