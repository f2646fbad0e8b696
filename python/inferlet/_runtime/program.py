"""Runs a program: loads its entry, finds `main`, awaits it, and answers with JSON.

The entry is imported under the name of its file, so that `if __name__ == "__main__":` guards what belongs to other ways
of running it. An entry that defines no `main` is a script: it runs as `__main__`, and the answer is null. One that did
nothing that anybody could see, though it defines functions, is told of. Where the
program was launched to answer requests by HTTP, an entry that defines `fetch` does so, whatever else it defines.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Awaitable
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import TypeVar

import inferlet
from inferlet import _json, http_server
from inferlet._runtime import leftovers, names, own_call, parameters, report, stdio, unused
from inferlet._runtime.bundle import Bundle
from inferlet._wait import EventLoop
from inferlet.errors import ErrorCode, InferletError, new_error

_T = TypeVar("_T")
_SENDS = ("send", "send_file", "message")
"""What a script may tell its client by, beside printing."""


def run_program(bundle: Bundle, input_json: str) -> str:
    """Runs the program once and returns the JSON text of its answer."""
    leftovers.forget()
    value = _parse(input_json)
    inferlet.input = value
    code = bundle.get_code("__main__")
    serves = _defines(code, "fetch") and http_server.is_serving()
    has_main = _defines(code, "main")
    if has_main and not serves:
        code = own_call.noted(code, bundle.files[bundle.entry], bundle.entry)
    module = _load_entry(bundle, code, is_script=not serves and not has_main)
    if serves:
        _serve(module, bundle)
        return "null"
    if own_call.has_run(vars(module)):
        _warn(unused.unasked(bundle.files[bundle.entry], value, bundle.entry))
        return _answer(own_call.take_result(vars(module)))
    main = getattr(module, "main", None)
    if main is None:
        leftovers.check()
        if not any(name in code.co_names for name in _SENDS) and stdio.is_silent():
            _warn(unused.uncalled(code, module, bundle.entry))
        return "null"
    if not callable(main):
        raise new_error(
            ErrorCode.INVALID_PROGRAM,
            f"main in {bundle.entry!r} is of type {type(main).__name__}; it must be a function, as in: async def main(input)",
        )
    arguments = parameters.bind(main, value, bundle.entry)
    if arguments.by_name:
        _warn(parameters.unfit(main, arguments.by_name, bundle.entry))
    else:
        _warn(parameters.doubt(main, value, bundle.entry, lambda: unused.keys_read(bundle.files[bundle.entry])))
    if len(sys.argv) > 1 and sys.argv[0] == bundle.entry:
        _warn(unused.unread(bundle.files[bundle.entry], value, bundle.entry, sys.argv[1:]))
    answer = main(*arguments.by_position, **arguments.by_name)
    if inspect.isawaitable(answer):
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            answer = runner.run(answer if inspect.iscoroutine(answer) else _awaited(answer))
    try:
        return _answer(answer)
    except InferletError as error:
        if type(answer) is not main or error.code != ErrorCode.INVALID_OUTPUT:
            raise
        message = f"main in {bundle.entry!r} is a class: to call it makes an object of it, which is not JSON; write `async def main(input)`"
        raise new_error(ErrorCode.INVALID_OUTPUT, message) from None


def _answer(value: object) -> str:
    text = _json.dumps(value, "what main returned", ErrorCode.INVALID_OUTPUT)
    leftovers.check()
    return text


def _parse(input_json: str) -> object:
    try:
        value: object = json.loads(input_json)
    except ValueError as error:
        raise new_error(ErrorCode.INVALID_INPUT, f"the launch input is not JSON: {error}") from None
    return value


def _serve(module: ModuleType, bundle: Bundle) -> None:
    """Answers requests until no more come. What goes wrong with one is told as a failure of `main` is."""
    fetch = getattr(module, "fetch", None)
    if not callable(fetch):
        raise new_error(
            ErrorCode.INVALID_PROGRAM,
            f"fetch in {bundle.entry!r} is of type {type(fetch).__name__}; it must be a function, as in: async def fetch(request)",
        )
    leftovers.tell_at_once()
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(http_server._serve(fetch, lambda error: _tell(error, bundle)))


def _load_entry(bundle: Bundle, code: CodeType, *, is_script: bool) -> ModuleType:
    name = "__main__" if is_script else bundle.entry_name
    spec = ModuleSpec(name, bundle, origin=bundle.entry)
    spec.has_location = True
    module = ModuleType(name)
    module.__spec__, module.__loader__, module.__file__ = spec, bundle, bundle.entry
    module.__package__ = bundle.entry_name.rpartition(".")[0]
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


def _defines(code: CodeType, name: str) -> bool:
    """Whether the body of a module binds a name."""
    return name in code.co_names and name in names.stored(code)


def _tell(error: BaseException, bundle: Bundle) -> None:
    bundle.remember_lines()
    stdio.report(report.told(error, bundle.files))


def _warn(message: str | None) -> None:
    """Tells of a likely mistake, where there is one."""
    if message is not None:
        stdio.report(f"warning: {message}\n")


async def _awaited(answer: Awaitable[_T]) -> _T:
    return await answer
