"""Looks at a program without running any of it: whether what a launch would surely import compiles."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from inferlet._runtime.bundle import Bundle


class FaultError(Exception):
    """What is wrong with a program, as `file:line:column: what`."""


def check(bundle: Bundle) -> None:
    """Compiles the entry and every module of the program that it imports, directly or through other modules.

    Only imports count that control is sure to reach.

    What stands under `if` and in `try` is left to the launch: packages keep files there that are for other versions of
    Python. Raises FaultError for what does not compile.
    """
    seen: set[str] = set()
    waiting = ["__main__"]
    with warnings.catch_warnings(action="ignore"):
        while waiting:
            name = waiting.pop()
            path = bundle.find(name)
            if path is None or path in seen or path not in bundle.files:
                continue
            seen.add(path)
            tree = _parsed(bundle.files[path], path)
            package = bundle.package_of(name)
            waiting.extend(module for node in _certain(tree) for module in _imported(node, package))


def _parsed(source: bytes, path: str) -> ast.Module:
    try:
        tree = ast.parse(source, path)
        compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = path if error.lineno is None else f"{path}:{error.lineno}:{error.offset or 1}"
        raise FaultError(f"{place}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise FaultError(f"{path}: {type(error).__name__}: {error}") from None
    return tree


def _certain(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module and of its functions and classes, without those under a condition."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.With | ast.AsyncWith | ast.For | ast.AsyncFor):
            waiting.extend(node.body)


def _imported(node: ast.stmt, package: str) -> list[str]:
    """The modules that a statement imports, packages on the way included."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join(filter(None, [*above, node.module]))
        names = [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
    else:
        return []
    return [".".join(parts[:depth]) for name in names if name for parts in [name.split(".")] for depth in range(1, len(parts) + 1)]
