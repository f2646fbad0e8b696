"""Which objects of the snapshot never die: the build marks them, so that no launch counts references to them.

A count that goes up, even where it comes down again, would make a page of the snapshot private to the launch.
"""

from __future__ import annotations

import gc
import sys
from array import array
from types import CodeType

# What the build finds the table by in the memory of the snapshot: consecutive words, then how many addresses follow. A
# range, so that the code that writes them does not hold them.
MARK = range(0xB1E0_0DD5, 0xB1E0_0DD5 + 16)

_table: list[array[int]] = []


def list_objects() -> None:
    """Leaves the addresses of all objects that modules hold where the build finds them.

    None of them may die from here on.
    """
    words = array("I", bytes(4 * (len(MARK) + 1)))
    seen: set[int] = set()
    todo: list[object] = [sys.modules]
    own = {id(words), id(seen), id(todo)}
    while todo:
        one = todo.pop()
        address = id(one)
        if address in seen or address in own:
            continue
        seen.add(address)
        words.append(address)
        todo.append(type(one))
        todo += gc.get_referents(one)
        todo += _hidden(one)
    words[len(MARK)] = len(words) - len(MARK) - 1
    words[: len(MARK)] = array("I", MARK)
    _table.append(words)


def _hidden(one: object) -> list[object]:
    """What an object holds that the collector does not report.

    These are objects that live as long as it does; none of them is made here.
    """
    if isinstance(one, CodeType):
        constants = [one.co_consts, one.co_names, one.co_filename, one.co_name, one.co_qualname, one.co_linetable, one.co_exceptiontable]
        return [*constants, *one.co_varnames, *one.co_freevars, *one.co_cellvars]
    if isinstance(one, type):
        return [*gc.get_referents(one.__dict__), one.__mro__]
    return []
