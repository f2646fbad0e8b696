"""What a program leaves unused though somebody meant it: functions of a script, and arguments of a launch.

Each is told on standard error as a warning, since the program may be right.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType

from inferlet._runtime import names as names_of_code
from inferlet._runtime import own_call

_OTHER_WAYS = (b"argv", b"argparse", b"runtime.args", b"inferlet.input")
"""How a program may read its arguments beside the parameter of `main`."""
_READING_METHODS = frozenset({"get", "pop", "setdefault"})
_MAX_SHOWN = 8


def uncalled(code: CodeType, module: ModuleType, entry: str) -> str | None:
    """What to say of a script that printed nothing, defines functions and calls none of them; None of others."""
    names = [name for name, value in vars(module).items() if isinstance(value, FunctionType) and value.__code__.co_filename == entry]
    if not names:
        return _held_by_class(code, module, entry)
    if any(name in names for name in _loaded(code)):
        return None
    near = difflib.get_close_matches("main", names, 1)
    if "fetch" in names:
        remedy = "`fetch` answers requests by HTTP: serve it with --port, as in `pie run FILE --port 8000`"
    elif near:
        remedy = f"did you mean `main` by `{near[0]}`? Under that name the engine calls it with the input"
    else:
        remedy = "call one of them at the end of the file, or call it `main`, and the engine calls it with the input"
    shown = ", ".join(f"`{name}`" for name in names[:_MAX_SHOWN])
    return f"{entry} defines no `main`, so it ran as a script from top to bottom. It printed nothing, and called none of {shown}; {remedy}"


def _held_by_class(code: CodeType, module: ModuleType, entry: str) -> str | None:
    """What to say of a `main` that is a method of a class which nothing reads; None where there is none."""
    read = frozenset(_loaded(code))
    for name, value in vars(module).items():
        if isinstance(value, type) and value.__module__ == module.__name__ and "main" in vars(value) and name not in read:
            return (
                f"{entry} defines no `main`, so it ran as a script from top to bottom, and printed nothing; `main` of the class "
                f"`{name}` is a method, which the engine does not call: write `async def main(input)` outside of it"
            )
    return None


def _loaded(code: CodeType) -> Iterator[str]:
    """The names that the body of a module reads, with those of its classes and of what runs at once."""
    yield from names_of_code.loaded(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and (constant.co_name.startswith("<") or not constant.co_flags & inspect.CO_OPTIMIZED):
            yield from constant.co_names


def unasked(source: bytes, value: object, entry: str) -> str | None:
    """What to say of an input of a program that calls its `main` itself; None where it may read it in another way."""
    if not value or any(way in source for way in _OTHER_WAYS):
        return None
    return (
        f"{entry}:{own_call.line_of(source)} calls `main` itself, so the engine did not call it, and nothing read the input; leave that "
        'line out, or put it behind `if __name__ == "__main__":`, and the engine calls `main` with the input'
    )


def unread(source: bytes, value: object, entry: str, arguments: Sequence[str]) -> str | None:
    """What to say of `arguments` of the command line that no line of the entry reads; None where it may read them all.

    Of a field of the input that none of them gave, as one that a manifest has a default for, there is nothing to say.
    Nor is there of words without a name, which the command line warns of itself.
    """
    if not isinstance(value, dict) or not value or any(way in source for way in _OTHER_WAYS):
        return None
    read = keys_read(source)
    if read is None:
        return None
    given = {argument.partition("=")[0].lstrip("-").replace("-", "_") for argument in arguments if argument.startswith("-")}
    for key in value:
        if key in read or key not in given:
            continue
        near = difflib.get_close_matches(key, read, 1)
        meant = f"; did you mean --{near[0]}?" if near else ""
        return f"nothing in {entry} reads the argument --{key}{meant}"
    return None


def keys_read(source: bytes) -> Sequence[str] | None:
    """The keys that `main` reads of its one parameter; None where it uses it otherwise, as where it hands it on."""
    tree = ast.parse(source)
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "main")
    main = next(functions, None)
    if main is None:
        return None
    given = main.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    if given.vararg or given.kwarg or given.kwonlyargs or len(names) > 1:
        return None
    if not names:
        return ()
    around = {child: node for node in ast.walk(main) for child in ast.iter_child_nodes(node)}
    keys = [_key_read(node, around) for node in ast.walk(main) if isinstance(node, ast.Name) and node.id == names[0]]
    found = [key for key in keys if key is not None]
    return found if len(found) == len(keys) else None


def _key_read(name: ast.Name, around: Mapping[ast.AST, ast.AST]) -> str | None:
    """The key that an expression reads of the input; None where it does something else."""
    node = around[name]
    key: ast.AST | None = None
    if isinstance(node, ast.Subscript) and node.value is name:
        key = node.slice
    elif isinstance(node, ast.Attribute) and node.attr in _READING_METHODS:
        call = around[node]
        key = call.args[0] if isinstance(call, ast.Call) and call.func is node and call.args else None
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        key = node.left
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
