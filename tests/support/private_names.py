"""What `inferlet._runtime.leftovers` asks of CPython that no documentation promises, and that no public way tells.

It is a program as well: its `main` answers what is different in the interpreter that runs it.
"""

import asyncio
import gc
import inspect
import sys
import warnings
from asyncio import runners


async def _nothing():
    pass


async def _await(awaitable):
    return await awaitable


def _new_future():
    return asyncio.get_running_loop().create_future()


async def _hands_over_what_was_never_awaited():
    seen = []
    names = vars(warnings)
    before = names["_warn_unawaited_coroutine"]
    names["_warn_unawaited_coroutine"] = lambda coroutine: seen.append(coroutine.__qualname__)
    try:
        _nothing()
        gc.collect()
    finally:
        names["_warn_unawaited_coroutine"] = before
    return seen == ["_nothing"]


def _cancels_what_is_left():
    seen = []
    names = vars(runners)
    before = names["_cancel_all_tasks"]
    # The one of the runtime would tell of the task that is left behind here.
    cancel = getattr(before, "__wrapped__", before)

    def note(loop):
        seen.extend(task.cancelling() for task in asyncio.all_tasks(loop))
        cancel(loop)

    async def leave_behind():
        return asyncio.create_task(_await(_new_future()))

    names["_cancel_all_tasks"] = note
    try:
        left = asyncio.run(leave_behind())
    finally:
        names["_cancel_all_tasks"] = before
    return seen == [0] and left.cancelled()


async def _knows_who_awaits():
    future = _new_future()
    before = list(future._callbacks or ())
    task = asyncio.create_task(_await(future))
    await asyncio.sleep(0)
    during = [callback for callback, *_ in future._callbacks]
    future.set_result(None)
    await task
    return before == [] and len(during) == 1


async def _knows_what_gather_gives():
    future = _new_future()
    gathered = asyncio.gather(future)
    callback, *_ = future._callbacks[0]
    held = dict(zip(callback.__code__.co_freevars, callback.__closure__, strict=True))
    future.set_result(None)
    await gathered
    return callback.__qualname__ == "gather.<locals>._done_callback" and held["outer"].cell_contents is gathered


async def _leads_from_what_is_awaited_to_its_coroutine():
    coroutine = _nothing()
    awaited = coroutine.__await__()
    found = next(iter(gc.get_referents(awaited)), None)
    is_known = type(awaited).__name__ == "coroutine_wrapper" and found is coroutine
    await coroutine
    return is_known


async def _names_the_end_of_a_generator():
    async def numbers():
        yield 1

    generator = numbers()
    await anext(generator)
    closing = generator.aclose()
    name = type(closing).__name__
    await closing
    return name == "async_generator_athrow"


async def _names_the_waits_for_another_task():
    waits = [asyncio.Queue().get(), asyncio.Event().wait(), asyncio.Condition().wait()]
    names = [wait.__qualname__ for wait in waits]
    for wait in waits:
        wait.close()
    return names == ["Queue.get", "Event.wait", "Condition.wait"]


async def _names_the_task_of_what_is_not_a_coroutine():
    class Awaitable:
        def __await__(self):
            yield from ()

    task = asyncio.ensure_future(Awaitable())
    name = task.get_coro().__qualname__
    await task
    # Programs run on a newer one than 3.11, under which the SDK is tested by itself.
    return name == ("ensure_future.<locals>._wrap_awaitable" if sys.version_info >= (3, 12) else "_wrap_awaitable")


CHECKS = {
    "warnings._warn_unawaited_coroutine gets a coroutine that was never awaited": _hands_over_what_was_never_awaited,
    "asyncio.runners._cancel_all_tasks gets the loop before its tasks are cancelled": _cancels_what_is_left,
    "Future._callbacks lists what awaits a future": _knows_who_awaits,
    "the callback of asyncio.gather is gather.<locals>._done_callback, and has what gather gave as `outer`": _knows_what_gather_gives,
    "coroutine.__await__ gives a coroutine_wrapper, which refers to its coroutine": _leads_from_what_is_awaited_to_its_coroutine,
    "aclose() of an asynchronous generator gives an async_generator_athrow": _names_the_end_of_a_generator,
    "the waits of asyncio are Queue.get, Event.wait and Condition.wait": _names_the_waits_for_another_task,
    "ensure_future wraps what is not a coroutine in _wrap_awaitable": _names_the_task_of_what_is_not_a_coroutine,
}
"""Whether CPython does what `leftovers` takes it to do, by what that is."""


def _holds(check):
    try:
        return asyncio.run(check()) if inspect.iscoroutinefunction(check) else check()
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError):
        return False


def main():
    """What is not so."""
    return [what for what, check in CHECKS.items() if not _holds(check)]
