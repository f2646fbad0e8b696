"""What a program has left behind when it ends: coroutines that nothing awaited, and exceptions that nothing took.

Both are errors of the program, as a rejected promise that nothing handled is in JavaScript.
"""

from __future__ import annotations

import ast
import gc
import sys
import warnings
from collections.abc import Container, Iterator, Mapping
from types import CoroutineType, FrameType
from typing import Any

from inferlet import _wait
from inferlet._runtime.bundle import Bundle

# What coroutines of the SDK are called in programs, by their names here.
_CALLS = {
    "GenStep._finish": "step.execute()",
    "failed": "a call of the SDK",
    "resolve": "a call of the SDK",
}
_SDK_CALLS = frozenset(
    """
    ask body collect_json collect_text collect_tokens commit_working_pages execute flush json next pull receive receive_file
    receive_signal text wait
    """.split()  # noqa: SIM905
)
"""Methods of the SDK that are awaited."""
_KEPT_BY = (ast.Assign, ast.AnnAssign, ast.NamedExpr)
"""What keeps a coroutine in a variable. Any other one dies in the line that made it, and its frame tells of that."""
_MAX_TOLD = 8
_MAX_PLACES = 3

_never_awaited: list[str] = []
_calls: dict[str, str] = {}
"""Where functions are called whose coroutines nothing awaited, by their names: files are read once for each."""
_told_at_once: list[bool] = []


def install() -> None:
    """Has the interpreter hand over coroutines that die and were never awaited. It would only warn of them."""
    vars(warnings)["_warn_unawaited_coroutine"] = note


def note(coroutine: CoroutineType[Any, Any, Any]) -> None:
    """Notes a coroutine that was never awaited."""
    if not _told_at_once and len(_never_awaited) >= _MAX_TOLD:
        return
    qualified = coroutine.__qualname__
    name = _CALLS.get(qualified, f"{qualified}()")
    place = _place() or _calls_of(coroutine)
    message = f"{place}{name} was never awaited, so that nothing came of it; write `await` before the call"
    if _told_at_once:
        print(f"warning: {message}", file=sys.stderr)
    else:
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
    if _calls:
        _calls.clear()


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


def _files() -> Mapping[str, bytes]:
    """The files of the program. Nothing here keeps them: most launches leave nothing behind, and write nothing here."""
    return next((finder.files for finder in sys.meta_path if isinstance(finder, Bundle)), {})


def _calls_of(coroutine: CoroutineType[Any, Any, Any]) -> str:
    """Where the program calls the function that made a coroutine, and keeps what it gives without `await`.

    A coroutine that a variable held dies when its function has ended, and then no frame tells of the line.
    """
    is_of_sdk = coroutine.__qualname__ in _CALLS
    known_as = "" if is_of_sdk else coroutine.__name__
    if known_as not in _calls:
        if len(_calls) >= _MAX_TOLD:
            return ""
        names = _SDK_CALLS if is_of_sdk else frozenset({known_as})
        files = {path: content for path, content in _files().items() if path.endswith(".py")}
        places = [f"{path}:{line}" for path, content in files.items() for line in sorted(_kept(content, names, methods_only=is_of_sdk))]
        shown = " or ".join(places[:_MAX_PLACES]) + (" or another line" if len(places) > _MAX_PLACES else "")
        _calls[known_as] = f"{shown}: " if places else ""
    return _calls[known_as]


def _kept(content: bytes, names: Container[str], *, methods_only: bool) -> Iterator[int]:
    """The lines of a file in which a variable keeps what a call of a function of these names gives."""
    try:
        with warnings.catch_warnings(action="ignore"):  # files that are not the program's own, among others
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a file that is not imported may be anything
    for node in ast.walk(tree):
        if isinstance(node, _KEPT_BY) and isinstance(call := node.value, ast.Call):
            by_name = call.func.id if isinstance(call.func, ast.Name) and not methods_only else ""
            if (call.func.attr if isinstance(call.func, ast.Attribute) else by_name) in names:
                yield call.lineno
