"""Programs that call their `main` themselves, in the lines of the module, as `python FILE` needs it.

Such a call is the run: the engine does not call `main` a second time.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any

_CALL = re.compile(rb"(?<!def )\bmain *\(")
_RUNNERS = frozenset({"run", "run_until_complete"})
"""What runs a coroutine to its end, by the last part of its name."""
_RESULT = "__main_result__"
"""The global in which the module leaves whether it used what its own call of `main` gave, and what that was."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_OWN_SCOPES = (*_FUNCTIONS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def noted(code: CodeType, source: bytes, entry: str) -> CodeType:
    """The code of the entry, which leaves what its own calls of `main` give where `take_result` finds it.

    Code that has no such call stays as it is.
    """
    if _CALL.search(source) is None:
        return code
    with warnings.catch_warnings(action="ignore"):  # whatever there is to say of the source has been said
        tree = ast.parse(source)
    is_plain = any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
    noting = _Noting(calls_main=is_plain)
    tree.body = [noting.visit(node) for node in tree.body]
    if not noting.has_found:
        return code
    with warnings.catch_warnings(action="ignore"):
        noted_code: CodeType = compile(ast.fix_missing_locations(tree), entry, "exec", dont_inherit=True)
    return noted_code


def line_of(source: bytes) -> int:
    """The line of the first call of `main` outside of functions, of a source that has one."""
    tree = ast.parse(source)
    return next((node.lineno for node in _outside(tree) if isinstance(node, ast.Call) and _is_main(node)), 1)


def has_run(names: dict[str, Any]) -> bool:
    """Whether the lines of a module, whose names these are, have run its `main` to the end."""
    return _RESULT in names


def take_result(names: dict[str, Any]) -> object:
    """What `main` returned, where the lines of the module did nothing with it; None where they used it."""
    is_used, value = names.pop(_RESULT)
    return None if is_used else value


class _Noting(ast.NodeTransformer):
    """Has a module keep what its calls of `main` give.

    What has names of its own, or runs later, stays as it is.
    """

    def __init__(self, *, calls_main: bool) -> None:
        self._calls_main = calls_main
        self.has_found = False

    def visit(self, node: ast.AST) -> Any:
        """The node, or what takes its place."""
        return node if isinstance(node, _OWN_SCOPES) else super().visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """A statement that does nothing with what the call gives."""
        call = node.value
        if isinstance(call, ast.Call) and (_runs_main(call) or (self._calls_main and _is_main(call))):
            self.has_found = True
            return ast.copy_location(ast.Assign([ast.Name(_RESULT, ast.Store())], _as_pair(call, is_used=False)), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call whose value goes on: to a name, to `print`, to `sys.exit`."""
        if not _runs_main(node):
            return self.generic_visit(node)
        self.has_found = True
        kept = ast.NamedExpr(ast.Name(_RESULT, ast.Store()), _as_pair(node, is_used=True))
        return ast.copy_location(ast.Subscript(kept, ast.Constant(1), ast.Load()), node)


def _as_pair(call: ast.Call, *, is_used: bool) -> ast.Tuple:
    return ast.Tuple([ast.Constant(is_used), call], ast.Load())


def _is_main(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "main"


def _runs_main(call: ast.Call) -> bool:
    """Whether a call is as `asyncio.run(main())`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    return name in _RUNNERS and bool(call.args) and isinstance(call.args[0], ast.Call) and _is_main(call.args[0])


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module that are of no function and no class."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _FUNCTIONS):
            yield from _outside(child)
