"""Runs a program: loads its entry, finds `main`, awaits it, and answers with JSON.

The entry is imported under the name of its file, so that `if __name__ == "__main__":` guards what belongs to other ways
of running it. An entry that defines no `main` is a script: it runs as `__main__`, and the answer is null.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import opcode
import sys
from collections.abc import Awaitable, Callable
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import inferlet
from inferlet import _json
from inferlet._runtime.bundle import Bundle
from inferlet._wait import EventLoop
from inferlet.errors import ErrorCode, new_error

_T = TypeVar("_T")
_EXTENDED_ARG = opcode.opmap["EXTENDED_ARG"]
_STORE_NAME = opcode.opmap["STORE_NAME"]


def run_program(bundle: Bundle, input_json: str) -> str:
    """Runs the program once and returns the JSON text of its answer."""
    value = _parse(input_json)
    inferlet.input = value
    module = _load_entry(bundle)
    main = getattr(module, "main", None)
    if main is None:
        return "null"
    if not callable(main):
        raise new_error(
            ErrorCode.INVALID_PROGRAM,
            f"main in {bundle.entry!r} is of type {type(main).__name__}; it must be a function, as in: async def main(input)",
        )
    answer = main(value) if _takes_input(main) else main()
    if inspect.isawaitable(answer):
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            answer = runner.run(answer if inspect.iscoroutine(answer) else _awaited(answer))
    return _json.dumps(answer, "what main returned", ErrorCode.INVALID_OUTPUT)


def _parse(input_json: str) -> object:
    try:
        value: object = json.loads(input_json)
    except ValueError as error:
        raise new_error(ErrorCode.INVALID_INPUT, f"the launch input is not JSON: {error}") from None
    return value


def _load_entry(bundle: Bundle) -> ModuleType:
    code = bundle.get_code("__main__")
    name = bundle.entry_name if _defines_main(code) else "__main__"
    spec = ModuleSpec(name, bundle, origin=bundle.entry)
    spec.has_location = True
    module = ModuleType(name)
    module.__spec__, module.__loader__, module.__file__ = spec, bundle, bundle.entry
    module.__package__ = bundle.entry_name.rpartition(".")[0]
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


def _defines_main(code: CodeType) -> bool:
    """Whether the body of a module binds the name `main`: by a definition, an import or an assignment."""
    if "main" not in code.co_names:
        return False
    # `dis` would tell the same in a quarter of a launch.
    wanted, extended = code.co_names.index("main"), 0
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if operation == _EXTENDED_ARG:
            extended = (extended | argument) << 8
            continue
        if operation == _STORE_NAME and extended | argument == wanted:
            return True
        extended = 0
    return False


def _takes_input(main: Callable[..., Any]) -> bool:
    """Whether `main` has a positional parameter."""
    if isinstance(main, FunctionType) and not hasattr(main, "__wrapped__"):
        variadic = bool(main.__code__.co_flags & inspect.CO_VARARGS)
        return variadic or main.__code__.co_argcount > 0
    try:
        parameters = inspect.signature(main).parameters.values()
    except ValueError:
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return any(parameter.kind in positional for parameter in parameters)


async def _awaited(answer: Awaitable[_T]) -> _T:
    return await answer
