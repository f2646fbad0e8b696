"""What a program has left behind when it ends: coroutines that nothing awaited, and exceptions that nothing took.

Both are errors of the program, as a rejected promise that nothing handled is in JavaScript.
"""

from __future__ import annotations

import gc
import sys
import warnings
from types import CoroutineType, FrameType
from typing import Any

from inferlet import _wait

# What coroutines of the SDK are called in programs, by their names here.
_CALLS = {
    "GenStep._finish": "step.execute()",
    "failed": "a call of the SDK",
    "resolve": "a call of the SDK",
}
_MAX_TOLD = 8

_never_awaited: list[str] = []
_told_at_once: list[bool] = []


def install() -> None:
    """Has the interpreter hand over coroutines that die and were never awaited. It would only warn of them."""
    vars(warnings)["_warn_unawaited_coroutine"] = note


def note(coroutine: CoroutineType[Any, Any, Any]) -> None:
    """Notes a coroutine that was never awaited."""
    name = _CALLS.get(coroutine.__qualname__, f"{coroutine.__qualname__}()")
    message = f"{_place()}{name} was never awaited, so that nothing came of it; write `await` before the call"
    if _told_at_once:
        print(f"warning: {message}", file=sys.stderr)
    elif len(_never_awaited) < _MAX_TOLD:
        _never_awaited.append(message)


def tell_at_once() -> None:
    """Tells of both on standard error, as they are found: for programs that answer requests until they are ended."""
    _told_at_once.append(True)
    _wait.lost_errors = None


def forget() -> None:
    """Begins anew."""
    if _told_at_once:
        _told_at_once.clear()
        _wait.lost_errors = []
    if _wait.lost_errors:
        _wait.lost_errors.clear()
    if _never_awaited:
        _never_awaited.clear()


def check() -> None:
    """Raises what the program has left behind, once it has its answer: an exception, else the coroutines."""
    # Objects that name each other die here, the young ones among them: a failed task that its own object holds is one.
    gc.collect(0)
    if _wait.lost_errors:
        raise _wait.lost_errors.pop()
    if _never_awaited:
        raise RuntimeError("; ".join(_never_awaited))


def _place() -> str:
    """Where the program stands as the coroutine dies, mostly in the line that made it."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        # The paths of a program are relative, those of the libraries are not.
        if not frame.f_code.co_filename.startswith(("/", "<")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}: "
        frame = frame.f_back
    return ""
