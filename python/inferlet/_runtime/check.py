"""Looks at a program without running any of it.

What a launch would surely import has to be there and to compile.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from inferlet._runtime.bundle import Bundle

_MAIN, _FETCH = "main", "fetch"
# By these a file may provide modules that are not among the files of the program.
_PROVIDING = re.compile(rb"\bsys\s*\.\s*(?:modules|path)\b|\bfrom\s+sys\s+import\b|\bmeta_path\b|\b__path__\b|\bpath_hooks\b")
# By this a module may have names that do not stand in its file.
_STAR = re.compile(rb"\bimport\s*\*")
_MAX_SHOWN_CHARS = 100


class FaultError(Exception):
    """What is wrong with a program, as `file:line:column: what`."""


@dataclass(frozen=True)
class _Wanted:
    """A module that a statement imports."""

    name: str
    is_module: bool
    """Not so of a name behind `from ... import`, which may be anything in a module."""


def check(bundle: Bundle) -> None:
    """Compiles the entry and every module of the program that it imports, directly or through other modules.

    Only imports count that control is sure to reach.

    What stands under `if` and in `try` is left to the launch: packages keep files there that are for other versions of
    Python. What runs as soon as a module is imported, and the first lines of `main`, import only what is there. Raises
    FaultError for what does not compile, and for modules that are missing.
    """
    presence = _Presence(bundle)
    seen: set[str] = set()
    # What is imported at once comes first, so that no module is looked at as one that may never run.
    at_once = ["__main__"]
    later: list[str] = []
    with warnings.catch_warnings(action="ignore"):
        while at_once or later:
            is_at_once = bool(at_once)
            name = at_once.pop() if is_at_once else later.pop()
            path = bundle.find(name)
            if path is None or path in seen or path not in bundle.files:
                continue
            seen.add(path)
            tree = _parsed(bundle.files[path], path)
            package = bundle.package_of(name)
            if is_at_once:
                for node in _run_by_import(tree, is_entry=name == "__main__"):
                    for wanted in _imported(node, package):
                        presence.check(path, node, wanted)
                        (at_once if presence.is_run(path, wanted) else later).append(wanted.name)
            later.extend(wanted.name for node in _certain(tree) for wanted in _imported(node, package))


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


def _run_by_import(tree: ast.Module, *, is_entry: bool) -> Iterator[ast.stmt]:
    """The statements that run whenever the module does, whatever happens: `with` may swallow what fails.

    Of the entry the first lines of `main` are among them, where nothing else answers a launch.
    """
    waiting: list[ast.stmt] = [*reversed(_until_left(tree.body))]
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    main = functions.get(_MAIN) if is_entry and _FETCH not in functions else None
    if main is not None:
        waiting = [*reversed(_until_left(main.body)), *waiting]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.ClassDef):
            waiting.extend(reversed(_until_left(node.body)))


def _until_left(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements up to one that may end the function or module."""
    for number, node in enumerate(body):
        if isinstance(node, ast.Raise | ast.Return):
            return body[:number]
        # A function that is defined here returns for itself.
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _has_return(node):
            return body[:number]
    return body


def _has_return(node: ast.stmt) -> bool:
    """Whether a statement returns from the function that it stands in."""
    waiting: list[ast.AST] = [node]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.Return):
            return True
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            waiting.extend(ast.iter_child_nodes(inner))
    return False


def _imported(node: ast.stmt, package: str) -> list[_Wanted]:
    """The modules that a statement imports, packages on the way included."""
    if isinstance(node, ast.Import):
        names = [(alias.name, True) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join(filter(None, [*above, node.module]))
        names = [(base, True), *((f"{base}.{alias.name}".lstrip("."), False) for alias in node.names)]
    else:
        return []
    found = []
    for name, is_module in names:
        parts = name.split(".")
        found += [_Wanted(".".join(parts[:depth]), is_module or depth < len(parts)) for depth in range(1, len(parts) + 1)]
    return [wanted for wanted in found if wanted.name]


class _Presence:
    """Which modules are there. What a file says is looked through once."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._there: set[str] = set()
        self._provides: dict[str, bool] = {}
        self._words: dict[str, frozenset[bytes] | None] = {}
        """The words of a file; None where it may have other names."""

    def is_run(self, path: str, wanted: _Wanted) -> bool:
        """Whether an import in a file surely runs the module.

        A name in a package may be a value that stands in its `__init__.py`.
        """
        if wanted.is_module:
            return True
        base, _, name = wanted.name.rpartition(".")
        there = self._bundle.find(base) if base else None
        if there is None or there == path:
            return True
        if there not in self._words:
            content = self._bundle.files.get(there, b"")
            self._words[there] = None if _STAR.search(content) else frozenset(re.findall(rb"\w+", content))
        words = self._words[there]
        # The pattern finds only words of ASCII.
        return words is not None and name.isascii() and name.encode() not in words

    def check(self, path: str, node: ast.stmt, wanted: _Wanted) -> None:
        """Refuses a module that is neither among the files of the program nor in the standard library."""
        if wanted.is_module and wanted.name not in self._there:
            if (reason := self._reason(path, wanted.name)) is not None:
                raise FaultError(f"{path}:{node.lineno}:{node.col_offset + 1}: {reason}")
            self._there.add(wanted.name)

    def _reason(self, path: str, module: str) -> str | None:
        """Why a file cannot import a module; None where it can, or may."""
        base, _, name = module.rpartition(".")
        bundle = self._bundle
        if bundle.find(module) is not None or self._is_providing(path):
            return None
        if bundle.find(module.partition(".")[0]) is not None:
            # A module of the program hides one of the standard library, and all that is in it.
            provider = bundle.find(base) if base else None
            if provider is None or self._is_providing(provider):
                return None
            return f"there is no module {_shown(name)} in {base!r}{_nearest(name, _modules(bundle, base))}"
        absence = _absence(module)
        if absence is None or self._may_be_provided(module):
            return None
        if absence:
            return absence
        near = _nearest(module, [*_modules(bundle, ""), *sys.stdlib_module_names, "inferlet"])
        return (
            f"there is no module {_shown(module)} in the standard library of programs or among the files of this one{near or '.'} "
            "Name packages in [dependencies] of Pie.toml, requirements.txt or pyproject.toml"
        )

    def _may_be_provided(self, module: str) -> bool:
        """Whether a file may provide a module to the others, as by `sys.modules["ssl"] = ...`: it has the name, too."""
        top = module.partition(".")[0].encode()
        return any(top in content and self._is_providing(path) for path, content in self._bundle.files.items() if path.endswith(".py"))

    def _is_providing(self, path: str) -> bool:
        if path not in self._provides:
            self._provides[path] = _PROVIDING.search(self._bundle.files.get(path, b"")) is not None
        return self._provides[path]


def _absence(name: str) -> str | None:
    """Why a module outside of the program cannot be imported; empty where nobody knows it, None where it can be.

    Only what came with the runtime is imported here, and nothing of the program.
    """
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        known = str(error).startswith(f"No module named {error.name!r} in a program")
        if known or (error.name is not None and error.name != name and not name.startswith(f"{error.name}.")):
            return f"{name!r} cannot be imported: {error}"
        return ""
    except ImportError as error:
        return f"{name!r} cannot be imported: {error}"
    except (Exception, SystemExit):
        return None  # it is there; what it lacks shows when it runs
    return None


def _modules(bundle: Bundle, package: str) -> list[str]:
    """The modules of the program in a package, or at the top."""
    # Where absolute imports start: as `find` finds them.
    found = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in bundle.files if path.endswith(".py")}
    prefix = f"{package}." if package else ""
    names = {name.removeprefix(prefix).partition(".")[0] for name in found if name.startswith(prefix)}
    return sorted(name for name in names if bundle.find(f"{prefix}{name}") is not None)


def _nearest(name: str, names: list[str]) -> str:
    """A question after the name that was meant, where one is near."""
    near = difflib.get_close_matches(name[:_MAX_SHOWN_CHARS], names, 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def _shown(name: str) -> str:
    return repr(name if len(name) <= _MAX_SHOWN_CHARS else f"{name[:_MAX_SHOWN_CHARS]}...")
