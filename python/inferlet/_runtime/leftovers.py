"""What a program has left behind when it ends: coroutines and tasks that nothing awaited, exceptions that nothing took.

All are errors of the program, as a rejected promise that nothing handled is in JavaScript.

CPython has no public way to find them: what this asks of it beside its documentation stands in
`tests/support/private_names.py`, by which tests tell where another version is different.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import gc
import inspect
import sys
import warnings
import weakref
from asyncio import runners
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from types import CoroutineType, FrameType
from typing import Any

from inferlet import _absent, _wait, context, generation, messaging, output, runtime, sampler
from inferlet._runtime.bundle import Bundle

# What coroutines of the SDK are called in programs, by their names here.
_CALLS = {
    "GenStep._finish": "step.execute()",
    "ensure_future.<locals>._wrap_awaitable": "a call of the SDK",
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
_OWN_MAIN = "delete this line, since the engine calls `main`, or write `asyncio.run(main())`"
_AT_TOP = "await it in `async def main`, or write `asyncio.run(...)` around the call"
_BEGINS = frozenset({"create_task", "ensure_future", "gather"})
"""What begins the work of a coroutine beside what calls it."""
_FORGETTING = frozenset({"discard", "remove"})
"""Methods of a set or list that a task is only taken out of by, when it is done: nothing waits for it so."""
_CLOSES = "async_generator_athrow"
"""The type of `aclose()` of an asynchronous generator: the loop begins it, of one that was left before its end."""
_LISTENING = frozenset({"Queue.get", "Event.wait", "Condition.wait"})
"""Waits of asyncio for what another task gives."""
_MESSAGES = frozenset({"FutureString", "FutureBlob", "FutureMessage"})
"""The futures of the engine that messages come by. Where a child or a server owes a text, the first has an owner."""
_MAX_TOLD = 8
_MAX_PLACES = 3

_never_awaited = _wait.never_awaited
_told_before_sleep: list[str] = []
"""What was told before the program slept, where only a message could wake it."""
_unfinished: list[str] = []
_waited_for: weakref.WeakSet[asyncio.Future[Any]] = weakref.WeakSet()
"""What `asyncio.wait`, `as_completed` and `shield` were given: they leave what is not done to whoever called them."""
_calls: dict[str, str] = {}
"""Where functions are called whose coroutines nothing awaited, by their names: files are read once for each."""
_told_at_once: list[bool] = []


def install() -> None:
    """Has the interpreter hand over coroutines that die and were never awaited. It would only warn of them.

    Has a loop that ends hand over the tasks that it cancels, which it would not tell of at all.
    """
    vars(warnings)["_warn_unawaited_coroutine"] = note
    _wait.kept_unawaited = kept_unawaited
    _wait.before_sleep = tell_before_sleep
    cancel: Callable[[asyncio.AbstractEventLoop], None] | None = vars(runners).get("_cancel_all_tasks")
    if cancel is not None:
        vars(runners)["_cancel_all_tasks"] = _noting_tasks(cancel)
    vars(asyncio)["wait"] = vars(asyncio.tasks)["wait"] = _noting_waits(asyncio.wait)
    vars(asyncio)["as_completed"] = vars(asyncio.tasks)["as_completed"] = _noting_completions(asyncio.as_completed)
    vars(asyncio)["shield"] = vars(asyncio.tasks)["shield"] = _noting_shields(asyncio.shield)


def note(coroutine: CoroutineType[Any, Any, Any]) -> None:
    """Notes a coroutine that was never awaited."""
    if not _told_at_once and len(_never_awaited) >= _MAX_TOLD:
        return
    qualified = coroutine.__qualname__
    place, is_of_module = _place()
    if qualified.endswith(")"):
        # A call of the SDK, which says where it was made and what it is called.
        made_at, _, name = qualified.rpartition(": ")
        place = f"{made_at}: " if made_at else place
    else:
        name = _CALLS.get(qualified, f"{qualified}()")
        place = place or _calls_of(coroutine)
    remedy = _OWN_MAIN if is_of_module and qualified == "main" else _AT_TOP if is_of_module else "write `await` before the call"
    message = f"{place}{name} was never awaited, so that nothing came of it; {remedy}"
    if _told_at_once:
        print(f"warning: {message}", file=sys.stderr)
    else:
        _never_awaited.append(message)


def kept_unawaited() -> list[str]:
    """Tells of the coroutines that the program holds and has not begun, of a program that nothing can wake."""
    found: list[str] = []
    for one in gc.get_objects():
        if len(found) >= _MAX_TOLD:
            break
        # The types themselves: what a program has may lie about its class.
        if type(one) is _wait.Deferred:
            if told := one._forgotten():
                found.append(told)
        elif type(one) is CoroutineType and inspect.getcoroutinestate(one) == inspect.CORO_CREATED:
            name = _CALLS.get(one.__qualname__, f"{one.__qualname__}()")
            found.append(f"{_calls_of(one)}{name} was called without `await`")
    return found


def tell_before_sleep(n_waits: int) -> None:
    """Tells of coroutines that were never awaited, before a program sleeps that only messages can wake.

    What was to send them may be such a coroutine, and then the program is ended from outside, before it could tell.
    """
    untold = [message for message in _never_awaited if message not in _told_before_sleep]
    if not untold:
        return
    innermost = [_innermost(task.get_coro()) for task in asyncio.all_tasks()]
    if sum(map(_waits_for_message, innermost)) < n_waits:
        return
    _told_before_sleep.extend(untold)
    for message in untold:
        print(f"warning: {message}", file=sys.stderr, flush=True)


def note_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Notes the tasks of a loop that is about to end which nothing awaits and nobody has cancelled.

    Those that wait for a message are left alone: nothing is lost where none comes.
    """
    if _told_at_once:
        return
    for task in sorted(asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name())):
        if len(_unfinished) >= _MAX_TOLD:
            return
        if task.cancelling() or task in _waited_for or _is_awaited(task):
            continue
        coroutine = task.get_coro()
        if type(coroutine).__name__ == _CLOSES or _listens(coroutine):
            continue
        qualified = getattr(coroutine, "__qualname__", "") or "a call of the SDK"
        name = _CALLS.get(qualified, qualified if " " in qualified else f"{qualified}()")
        place = _calls_of(coroutine, is_begun=True) or _stands_at(coroutine)
        message = f"{place}the program ended before {name} was done, and nothing awaited its task"
        if message not in _unfinished:
            _unfinished.append(message)


def _is_awaited(future: asyncio.Future[Any]) -> bool:
    """Whether anything waits for a future: a task, a handler, or `asyncio.gather` where something waits for that.

    A `gather` that is done before its tasks are has failed, and whoever awaited it has heard of that.
    """
    for callback, *_ in getattr(future, "_callbacks", None) or ():
        if getattr(callback, "__name__", "") in _FORGETTING:
            continue
        if getattr(callback, "__qualname__", "") != "gather.<locals>._done_callback":
            return True
        gathered = dict(zip(callback.__code__.co_freevars, callback.__closure__ or (), strict=False)).get("outer")
        if gathered is None or gathered.cell_contents.done() or _is_awaited(gathered.cell_contents):
            return True
    return False


def _listens(coroutine: object) -> bool:
    """Whether a coroutine waits for a message: of the client, of a topic, or of another task."""
    innermost = _innermost(coroutine)
    is_queue = isinstance(innermost, CoroutineType) and innermost.cr_frame is not None and innermost.__qualname__ in _LISTENING
    return is_queue or _waits_for_message(innermost)


def _innermost(coroutine: object) -> object:
    """What a coroutine waits in: the last of its chain of awaits."""
    innermost = awaited = coroutine._begun() if isinstance(coroutine, _wait.Deferred) else coroutine
    while awaited is not None:
        if type(awaited).__name__ == "coroutine_wrapper":
            # What `__await__` of a coroutine gives has no attribute that leads back to it.
            awaited = next(iter(gc.get_referents(awaited)), None)
            continue
        innermost, awaited = (awaited, awaited.cr_await) if isinstance(awaited, CoroutineType) else (innermost, None)
    return innermost


def _waits_for_message(innermost: object) -> bool:
    """Whether a coroutine waits for a message of the client or of a topic."""
    if not isinstance(innermost, CoroutineType) or innermost.cr_frame is None:
        return False
    if innermost.cr_code is not _wait.resolve.__code__:
        return False
    names = innermost.cr_frame.f_locals
    return type(names["future"]).__name__ in _MESSAGES and isinstance(names["owner"], messaging.Subscription | None)


def _noting_tasks(cancel: Callable[[asyncio.AbstractEventLoop], None]) -> Callable[[asyncio.AbstractEventLoop], None]:
    @functools.wraps(cancel)
    def noting(loop: asyncio.AbstractEventLoop) -> None:
        # Where the loop ends by an error, that comes first, and nobody could await what it left behind.
        if sys.exception() is None:
            note_tasks(loop)
        cancel(loop)

    return noting


def _noting_waits(wait: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(wait)
    async def noting(fs: Iterable[Any], **options: Any) -> Any:
        # `wait` refuses these itself.
        if not asyncio.isfuture(fs) and not asyncio.iscoroutine(fs):
            fs = set(fs)
            _waited_for.update(one for one in fs if asyncio.isfuture(one))
        return await wait(fs, **options)

    return noting


def _noting_completions(as_completed: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(as_completed)
    def noting(fs: Iterable[Any], **options: Any) -> Any:
        # `as_completed` refuses these itself.
        if not inspect.isawaitable(fs):
            fs = {asyncio.ensure_future(one) for one in set(fs)}
            _waited_for.update(fs)
        return as_completed(fs, **options)

    return noting


def _noting_shields(shield: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(shield)
    def noting(arg: Any) -> Any:
        inner = asyncio.ensure_future(arg)
        _waited_for.add(inner)
        return shield(inner)

    return noting


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
    if _absent.found_nothing:
        _absent.forget()
    notes = (_never_awaited, _told_before_sleep, _wait.told_blocks, context.told, output.told_kinds)
    for noted in (*notes, generation.told_collected, sampler.told, runtime.awaited, _unfinished, _calls):
        if noted:
            noted.clear()


def check() -> None:
    """Raises what the program has left behind, once it has its answer: an exception, else the tasks and coroutines."""
    # Objects that name each other die here, the young ones among them: a failed task that its own object holds is one.
    gc.collect(0)
    # What nobody gathered fails as its tasks are cancelled, which tells less than the tasks do.
    if _wait.lost_errors and not (_unfinished and isinstance(_wait.lost_errors[-1], asyncio.CancelledError)):
        raise _wait.lost_errors.pop()
    if _unfinished:
        remedy = "write `await`, as in `await asyncio.gather(...)` for several, or cancel what is to end with `main`"
        raise RuntimeError(f"{'; '.join([*_unfinished, *_never_awaited])}; {remedy}")
    if _never_awaited:
        raise RuntimeError("; ".join(_never_awaited))


def _place() -> tuple[str, bool]:
    """Where the program stands as the coroutine dies, mostly in the line that made it, and whether in no function."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        # The paths of a program are relative, those of the libraries are not.
        if not frame.f_code.co_filename.startswith(("/", "<")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}: ", frame.f_code.co_name == "<module>"
        frame = frame.f_back
    return "", False


def _stands_at(coroutine: object) -> str:
    """Where a coroutine waits, in the lines of the program; empty where it is not known."""
    position = _wait._position(coroutine)
    return f"{position.partition(' in ')[0]}: " if position else ""


def _files() -> Mapping[str, bytes]:
    """The files of the program. Nothing here keeps them: most launches leave nothing behind, and write nothing here."""
    return next((finder.files for finder in sys.meta_path if isinstance(finder, Bundle)), {})


def _calls_of(coroutine: object, *, is_begun: bool = False) -> str:
    """Where the program calls the function that made a coroutine, and keeps what it gives without `await`.

    Of one that `is_begun`, as by `asyncio.create_task`, where that is done. A coroutine that a variable held dies when
    its function has ended, and then no frame tells of the line.
    """
    name = getattr(coroutine, "__name__", "")
    is_of_sdk = not name or getattr(coroutine, "__qualname__", "") in _CALLS
    known_as = ("begun " if is_begun else "") + ("" if is_of_sdk else name)
    if known_as not in _calls:
        if len(_calls) >= _MAX_TOLD:
            return ""
        names = _SDK_CALLS if is_of_sdk else frozenset({name})
        find = _begun if is_begun else _kept
        files = {path: content for path, content in _files().items() if path.endswith(".py")}
        places = [f"{path}:{line}" for path, content in files.items() for line in sorted(find(content, names, methods_only=is_of_sdk))]
        shown = " or ".join(places[:_MAX_PLACES]) + (" or another line" if len(places) > _MAX_PLACES else "")
        _calls[known_as] = f"{shown}: " if places else ""
    return _calls[known_as]


def _kept(content: bytes, names: Container[str], *, methods_only: bool) -> Iterator[int]:
    """The lines of a file in which a variable keeps what a call of a function of these names gives."""
    for node in _nodes(content):
        if isinstance(node, _KEPT_BY) and isinstance(call := node.value, ast.Call) and _name_of(call, methods_only=methods_only) in names:
            yield call.lineno


def _begun(content: bytes, names: Container[str], *, methods_only: bool) -> Iterator[int]:
    """The lines of a file that begin the work of what a call of a function of these names gives."""
    for node in _nodes(content):
        if isinstance(node, ast.Call) and _name_of(node, methods_only=False) in _BEGINS:
            within = (inner for argument in node.args for inner in ast.walk(argument) if isinstance(inner, ast.Call))
            if any(_name_of(inner, methods_only=methods_only) in names for inner in within):
                yield node.lineno


def _nodes(content: bytes) -> Iterator[ast.AST]:
    try:
        with warnings.catch_warnings(action="ignore"):  # files that are not the program's own, among others
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a file that is not imported may be anything
    yield from ast.walk(tree)


def _name_of(call: ast.Call, *, methods_only: bool) -> str:
    """The last part of the name of what is called; empty where it has none, or is not a method and only those count."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) and not methods_only else ""
