"""What is told of a program that failed: type, message, code, and a traceback of its own files and lines."""

from __future__ import annotations

import traceback
from collections.abc import Container
from dataclasses import dataclass

from inferlet.errors import ErrorCode, InferletError

# Frames shown of one exception: deep recursion through several functions is not folded by the formatter.
_MAX_FRAMES = 32


@dataclass(frozen=True)
class Report:
    """Why a program failed; the fields of the failure that crosses to the engine."""

    kind: str
    message: str
    code: str | None
    traceback: str


def describe(error: BaseException, own_files: Container[str]) -> Report:
    """The report of an exception. `own_files` are the paths whose frames the program's author can do something about."""
    if isinstance(error, MemoryError):
        # The frames hold what filled the memory; formatting needs some of it.
        traceback.clear_frames(error.__traceback__)
    return Report(type(error).__name__, _message(error), _code(error, own_files), _traceback(error, own_files))


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the program ended with exit code {error.code}" if isinstance(error.code, int) else str(error.code)
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    try:
        return str(error) or _DEFAULT_MESSAGES.get(type(error), "")
    except Exception as another:
        return f"its message could not be formatted: {type(another).__name__}"


_DEFAULT_MESSAGES: dict[type[BaseException], str] = {
    MemoryError: "the program asked for more memory than it may have",
    KeyboardInterrupt: "the program was interrupted",
}


def _code(error: BaseException, own_files: Container[str]) -> str | None:
    if isinstance(error, InferletError):
        return error.code
    if isinstance(error, SyntaxError):
        return ErrorCode.INVALID_PROGRAM.value if error.filename in own_files else None
    if isinstance(error, MemoryError):
        return ErrorCode.LIMIT_MEMORY.value
    if isinstance(error, RecursionError):
        return ErrorCode.LIMIT_STACK.value
    return None


def _traceback(error: BaseException, own_files: Container[str]) -> str:
    formatted = traceback.TracebackException.from_exception(error, compact=True)
    _trim(formatted, own_files, set())
    return "".join(formatted.format())


def _trim(formatted: traceback.TracebackException, own_files: Container[str], seen: set[int]) -> None:
    if id(formatted) in seen:
        return
    seen.add(id(formatted))
    own = [frame for frame in formatted.stack if frame.filename in own_files]
    formatted.stack[:] = own[-_MAX_FRAMES:]
    for other in (formatted.__cause__, formatted.__context__, *(formatted.exceptions or ())):
        if other is not None:
            _trim(other, own_files, seen)
