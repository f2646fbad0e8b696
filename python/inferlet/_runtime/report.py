"""What is told of a program that failed: type, message, code, and a traceback of its own files and lines."""

from __future__ import annotations

import errno
import sys
import traceback
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType

from inferlet import files
from inferlet._runtime import hints
from inferlet.errors import ErrorCode, InferletError

# Frames shown of one exception: deep recursion through several functions is not folded by the formatter.
_MAX_FRAMES = 32
# Groups within one another of which the first exception is told.
_MAX_GROUPS = 32


@dataclass(frozen=True)
class Report:
    """Why a program failed; the fields of the failure that crosses to the engine."""

    kind: str
    message: str
    code: str | None
    traceback: str


def describe(error: BaseException, own_files: Collection[str]) -> Report:
    """The report of an exception.

    `own_files` are the paths whose frames the program's author can do something about.
    """
    if isinstance(error, MemoryError):
        # The frames hold what filled the memory; formatting needs some of it.
        traceback.clear_frames(error.__traceback__)
    kind = _ask(lambda: type(error).__name__, "Exception")
    message = _ask(lambda: _with_hint(_message(error), error, own_files), "its message could not be formatted")
    code = _ask(lambda: _code(error, own_files), "")
    return Report(kind, message, code or None, _ask(lambda: _traceback(error, own_files), f"{kind}: {message}\n"))


def told(error: BaseException, own_files: Collection[str]) -> str:
    """The report of an exception for people: its traceback, and what to do about it where that does not say so."""
    described = describe(error, own_files)
    if described.message in described.traceback:
        return described.traceback
    # The last line of the traceback has the message without the hint: it is told once.
    plain = _ask(lambda: _message(error), "")
    before, found, behind = described.traceback.rpartition(f": {plain}") if plain else ("", "", "")
    if found and described.message.startswith(plain):
        return f"{before}: {described.message}{behind}"
    return f"{described.traceback.rstrip()}\n{described.kind}: {described.message}\n"


def _ask(question: Callable[[], str | None], otherwise: str) -> str:
    """The answer as text that can cross to the engine, else `otherwise`.

    A program's exception may fail at any question or hold lone surrogates, and memory may have run out.
    """
    try:
        answer = question()
        return otherwise if answer is None else str.encode(answer, errors="replace").decode()
    except Exception:
        return otherwise


def _message(error: BaseException) -> str:
    try:
        if isinstance(error, SystemExit):
            return f"the program ended with exit code {error.code}" if isinstance(error.code, int) else str(error.code)
        if isinstance(error, SyntaxError) and error.filename is not None:
            line = "" if error.lineno is None else f", line {error.lineno}"
            return f"{error.msg} ({error.filename}{line})"
        if isinstance(error, RecursionError):
            limit = sys.getrecursionlimit()
            return f"{error}: Python allows {limit} calls within one another; recurse less deeply, or raise it with sys.setrecursionlimit"
        if isinstance(error, OSError) and (refusal := _refusal(error)) is not None:
            return f"{error}: {refusal.message}"
        return str(error) or _DEFAULT_MESSAGES.get(type(error), "")
    except Exception as another:
        return f"its message could not be formatted: {type(another).__name__}"


def _with_hint(message: str, error: BaseException, own_files: Collection[str]) -> str:
    try:
        advice = _first_cause(error, own_files) if isinstance(error, BaseExceptionGroup) else hints.hint(error, own_files)
    except Exception:
        # The exception is the program's, and may fail at any question: its message stands alone then.
        return message
    return message if advice is None else f"{message}: {advice}"


def _first_cause(group: BaseExceptionGroup[BaseException], own_files: Collection[str]) -> str:
    """Which exception of a group is the first, with what to do about it: the text of the group only counts them."""
    first: BaseException = group
    for _ in range(_MAX_GROUPS):
        if not isinstance(first, BaseExceptionGroup):
            break
        first = first.exceptions[0]
    kind, message = type(first).__name__, _message(first)
    if not isinstance(first, BaseExceptionGroup):
        message = _with_hint(message, first, own_files)
    return f"the first is {kind}: {message}" if message else f"the first is {kind}"


_DEFAULT_MESSAGES: dict[type[BaseException], str] = {
    MemoryError: "the program asked for more memory than it may have",
    KeyboardInterrupt: "the program was interrupted",
}


def _refusal(error: OSError) -> InferletError | None:
    """Why the engine refused what an error has a number of, where it was the engine."""
    is_missing = error.errno == errno.ENOENT and hints.is_of_scratch(error)
    if not is_missing and error.errno not in _REFUSED:
        return None
    refusal = files.refusal()
    return refusal if refusal is not None and (refusal.code == ErrorCode.FILES_OFF) == is_missing else None


# The C library knows of a write that failed only that it did.
_REFUSED = frozenset({errno.EDQUOT, errno.ENOMEM, errno.EIO, errno.ENAMETOOLONG})


def _code(error: BaseException, own_files: Collection[str]) -> str | None:
    if isinstance(error, InferletError):
        return error.code
    if isinstance(error, OSError):
        refusal = _refusal(error)
        return None if refusal is None else refusal.code
    if isinstance(error, SyntaxError):
        return ErrorCode.INVALID_PROGRAM.value if error.filename in own_files else None
    if isinstance(error, MemoryError):
        return ErrorCode.LIMIT_MEMORY.value
    if isinstance(error, RecursionError):
        return ErrorCode.LIMIT_STACK.value
    return None


def _traceback(error: BaseException, own_files: Collection[str]) -> str:
    _trim(error, own_files, set())
    return "".join(traceback.TracebackException.from_exception(error, compact=True).format())


def _trim(error: BaseException, own_files: Collection[str], seen: set[int]) -> None:
    """Leaves the last of the program's own frames on an exception and on those behind it.

    Done before anything is formatted: a recursion may be a million frames deep.
    """
    if id(error) in seen:
        return
    seen.add(id(error))
    frames: deque[TracebackType] = deque(maxlen=_MAX_FRAMES)
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in own_files:
            frames.append(step)
        # Unlinked one by one: freeing a long chain at its head would recurse along it.
        following, step.tb_next = step.tb_next, None
        step = following
    trimmed: TracebackType | None = None
    for frame in reversed(frames):
        trimmed = TracebackType(trimmed, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    # Assignment would fail on an exception that is a frozen dataclass, as those of the bindings are.
    error.with_traceback(trimmed)
    others = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for other in (error.__cause__, error.__context__, *others):
        if other is not None:
            _trim(other, own_files, seen)
