"""Programs that call their `main` themselves, in the lines of the module, as `python FILE` needs it.

Such a call is the run: the engine does not call `main` a second time, also where the call fails and the module goes on.
Whatever the way to it, as through another function, the first line of `main` itself says that it has begun. What it
gives is the answer where a line of the module calls it and does nothing with that.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any

from inferlet._runtime import names

_RUNNERS = frozenset({"run", "run_until_complete"})
"""What runs a coroutine to its end, by the last part of its name."""
_SHOWS = "print"
"""The function whose argument a call of a plain `main` may be, and is the run of it all the same."""
_RESULT = "__main_result__"
"""The global that a module has once its own call of `main` has begun: what it gave; None where the module used it."""
_BEGUN = "__main_begun__"
"""The global that `main` sets as it begins. A plain `main` that computes something for its module takes it back."""
_BEFORE = "__main_begun_before__"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_OWN_SCOPES = (*_FUNCTIONS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def noted(code: CodeType, source: bytes, entry: str) -> CodeType:
    """The code of the entry, which leaves what its own calls of `main` give where `take_result` finds it.

    Code that has no such call stays as it is, in functions too, and so does code that is nested too deeply to be looked
    through.
    """
    if "main" not in names.loaded(code) and not any("main" in inner.co_names for inner in _within(code)):
        return code
    with warnings.catch_warnings(action="ignore"):  # whatever there is to say of the source has been said
        try:
            tree = ast.parse(source)
            is_plain = any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
            noting = _Noting(calls_main=is_plain)
            noting.generic_visit(tree)
            if not noting.has_found:
                return code
            noted_code: CodeType = compile(ast.fix_missing_locations(tree), entry, "exec", dont_inherit=True)
        except RecursionError:
            return code
    return noted_code


def line_of(source: bytes) -> int:
    """The line of the first call of `main`, of one outside of functions where there is one."""
    tree = ast.parse(source)
    nodes = (*_outside(tree), *ast.walk(tree))
    return next((node.lineno for node in nodes if isinstance(node, ast.Call) and _is_main(node)), 1)


def has_run(module: dict[str, Any]) -> bool:
    """Whether the lines of a module, whose names these are, have run its `main`."""
    return _RESULT in module or bool(module.get(_BEGUN))


def take_result(module: dict[str, Any]) -> object:
    """What `main` returned, where the lines of the module did nothing with it; None where they used it."""
    return module.pop(_RESULT, None)


class _Noting(ast.NodeTransformer):
    """Has a module keep what its calls of `main` give, and `main` note that it has begun.

    Else what has names of its own, or runs later, stays as it is.
    """

    def __init__(self, *, calls_main: bool) -> None:
        self._calls_main = calls_main
        self.has_found = False

    def visit(self, node: ast.AST) -> Any:
        """The node, or what takes its place."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "main":
            return self._noting_main(node)
        return node if isinstance(node, _OWN_SCOPES) or _is_guard(node) else super().visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """A statement that does nothing with what the call gives, or prints it."""
        call = node.value
        if not isinstance(call, ast.Call):
            return self.generic_visit(node)
        if _runs_main(call) or (self._calls_main and _is_main(call)):
            return ast.copy_location(ast.Assign([ast.Name(_RESULT, ast.Store())], self._marked(call)), node)
        if self._calls_main and _name_of(call) == _SHOWS:
            call.args = [self._marked(one) if isinstance(one, ast.Call) and _is_main(one) else one for one in call.args]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call whose value goes on: to a name, to `print`, to `sys.exit`."""
        if _runs_main(node):
            return self._marked(node)
        self.generic_visit(node)
        return _computing(node) if self._calls_main and _is_main(node) else node

    def _noting_main(self, main: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        """`main` with `global __main_begun__; __main_begun__ = True` as its first lines, below its docstring."""
        self.has_found = True
        lines: list[ast.stmt] = [ast.Global([_BEGUN]), ast.Assign([ast.Name(_BEGUN, ast.Store())], ast.Constant(True))]
        first = 0 if ast.get_docstring(main, clean=False) is None else 1
        main.body[first:first] = [ast.copy_location(line, main.body[0]) for line in lines]
        return main

    def _marked(self, call: ast.Call) -> ast.Subscript:
        """`(__main_result__ := None, CALL)[1]`: what the call gives, marked as begun before it."""
        self.has_found = True
        begun = ast.NamedExpr(ast.Name(_RESULT, ast.Store()), ast.Constant(None))
        pair = ast.Tuple([begun, call], ast.Load())
        return ast.copy_location(ast.Subscript(pair, ast.Constant(1), ast.Load()), call)


def _computing(call: ast.Call) -> ast.Subscript:
    """A call of a plain `main` that computes something for the module, and is not the run.

    It is `(before := globals().get(begun), CALL, globals().update(begun=before))[1]`.
    """

    def of_globals(method: str, *arguments: ast.expr, **keywords: ast.expr) -> ast.Call:
        names_of_module = ast.Call(ast.Name("globals", ast.Load()), [], [])
        named = [ast.keyword(name, value) for name, value in keywords.items()]
        return ast.Call(ast.Attribute(names_of_module, method, ast.Load()), list(arguments), named)

    before = ast.NamedExpr(ast.Name(_BEFORE, ast.Store()), of_globals("get", ast.Constant(_BEGUN)))
    after = of_globals("update", **{_BEGUN: ast.Name(_BEFORE, ast.Load())})
    parts = ast.Tuple([before, call, after], ast.Load())
    return ast.copy_location(ast.Subscript(parts, ast.Constant(1), ast.Load()), call)


def _within(code: CodeType) -> Iterator[CodeType]:
    """The code of what stands in a code: functions, classes, and what stands in those."""
    waiting = [code]
    while waiting:
        inner = [constant for constant in waiting.pop().co_consts if isinstance(constant, CodeType)]
        yield from inner
        waiting.extend(inner)


def _is_guard(node: ast.AST) -> bool:
    """Whether a statement is `if __name__ == "__main__":`, whose lines do not run here."""
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) == "__name__ == '__main__'"


def _name_of(call: ast.Call) -> str:
    """The last part of the name of what is called; empty where it has none."""
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _is_main(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "main"


def _runs_main(call: ast.Call) -> bool:
    """Whether a call is as `asyncio.run(main())`."""
    return _name_of(call) in _RUNNERS and bool(call.args) and isinstance(call.args[0], ast.Call) and _is_main(call.args[0])


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module that are of no function and no class."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _FUNCTIONS):
            yield from _outside(child)
