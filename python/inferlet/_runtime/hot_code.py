"""Gathers the code that launches run.

The interpreter notes in it which way its branches went, and so writes to all of it.
"""

from __future__ import annotations

import gc
import opcode
from collections.abc import Container
from types import CodeType, FunctionType

_RESUME = opcode.opmap["RESUME"]
_RESUME_CHECK: int = opcode._specialized_opmap["RESUME_CHECK"]  # type: ignore[attr-defined]


def renew(kept: Container[int] = ()) -> set[int]:
    """Gives every function whose code has run a copy of that code that has not run; returns the ids of the copies.

    Code whose ids are in `kept` stays as it is.

    Where the heap has no holes, the copies lie together.
    """
    # Code objects are equal by what they do, whatever file they are from: only their ids tell them apart.
    copies: dict[int, CodeType] = {}
    # Kept until the end, or another code could get the id.
    replaced = []
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        code = function.__code__
        if id(code) not in kept and _has_run(code):
            replaced.append(code)
            if id(code) not in copies:
                copies[id(code)] = _copy(code)
            function.__code__ = copies[id(code)]
    return {id(code) for code in copies.values()}


def _has_run(code: CodeType) -> bool:
    """Whether code has run: the interpreter then replaced the instruction that each code begins with."""
    # `co_code` would tell what it was, but stays in memory with every code that is asked for it.
    instructions: bytes = code._co_code_adaptive[::2]  # type: ignore[attr-defined]
    adapted = instructions.find(_RESUME_CHECK)
    return adapted >= 0 and _RESUME not in instructions[:adapted]


def _copy(code: CodeType) -> CodeType:
    """A copy of the code and of the code inside of it, of functions that are made as it runs."""
    constants = (_copy(one) if isinstance(one, CodeType) and _has_run(one) else one for one in code.co_consts)
    return code.replace(co_consts=tuple(constants))
