"""Reads the public names of the Python SDK, by the grammar of Python itself.

Public is what `__all__` of the package and of its modules without an underscore names, and the documented values of the
package. A class has the members of its private bases too. A string behind an assignment is its text.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from tools.sdk_reference.items import Item, SourceError

PACKAGE = "inferlet"
FOLDER = f"python/{PACKAGE}"
ROOT_MODULE = "__init__"
_USES = {
    "__await__": "await",
    "__iter__": "for",
    "__aiter__": "async for",
    "__enter__": "with",
    "__aenter__": "async with",
    "__getitem__": "[name]",
}
_PRIVATE = re.compile(r"\b_(?:[a-z]\w*\.)?(?=[A-Z])")
"""What stands before a name that comes of the bindings, or that is private."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class _Module:
    """A file, and what its top level defines and imports."""

    name: str
    tree: ast.Module
    names: tuple[str, ...] = ()
    """Those of `__all__`."""
    defined: dict[str, ast.stmt] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Of values, the strings behind them."""
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """From which module of the package, under which name there; an empty name is the module itself."""


def read(root: Path) -> list[Item]:
    """Every public name, in the order of the package and then of its modules."""
    return _Reader(root).items()


def _parse(path: Path) -> _Module:
    module = _Module(path.stem, ast.parse(path.read_text(encoding="utf-8")))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
            _, _, source = (node.module or "").partition(".")
            for alias in node.names:
                module.imported[alias.asname or alias.name] = (source, alias.name) if source else (alias.name, "")
    for statement, text in _with_texts(module.tree.body):
        for name in _names_of(statement):
            module.defined[name] = statement
            module.texts[name] = text
        if isinstance(statement, ast.Assign) and _names_of(statement) == ["__all__"]:
            module.names = tuple(ast.literal_eval(statement.value))
        if isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == "__all__":
            module.names += tuple(ast.literal_eval(statement.value))
    return module


def _names_of(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    return []


def _with_texts(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Each statement with the string behind it, which is the text of an assignment. Conditions are looked into."""
    for statement, following in zip_longest(body, body[1:]):
        if isinstance(statement, ast.Try | ast.If):
            yield from _with_texts(statement.body)
            yield from _with_texts(statement.orelse)
        else:
            yield statement, _string(following)


def _string(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
        return inspect.cleandoc(statement.value.value)
    return ""


class _Reader:
    def __init__(self, root: Path) -> None:
        self._modules = {path.stem: _parse(path) for path in sorted((root / FOLDER).glob("*.py"))}

    def items(self) -> list[Item]:
        package = self._modules[ROOT_MODULE]
        public = [module for name, module in self._modules.items() if not name.startswith("_")]
        paths: dict[tuple[str, str], list[str]] = {}
        values = [name for name, text in package.texts.items() if text and not name.startswith("_")]
        for module in (package, *public):
            for name in (*module.names, *(values if module is package else ())):
                owner = self._owner(module, name)
                own = name if module is package else f"{module.name}.{name}"
                # Other modules than those that the package names lend each other what they need.
                if owner[0] == module.name or module is package or module.name in package.names:
                    paths.setdefault(owner, []).append(own)
        return [
            replace(self._item(*owner, path), also=tuple(other for other in others if other.partition(".")[0] in package.names))
            for owner, (path, *others) in paths.items()
        ]

    def _owner(self, module: _Module, name: str) -> tuple[str, str]:
        """The module that defines a name, and the name there; an empty one is the module itself."""
        if name in module.defined:
            return module.name, name
        source, there = module.imported.get(name, ("", ""))
        if source in self._modules:
            return (source, "") if not there else self._owner(self._modules[source], there)
        raise SourceError(f"{FOLDER}/{module.name}.py lists {name!r} in __all__, which it neither defines nor imports from {PACKAGE}")

    def _item(self, module: str, name: str, path: str) -> Item:
        source = f"{FOLDER}/{module}.py"
        if not name:
            doc = ast.get_docstring(self._modules[module].tree) or ""
            return Item("python", path, "module", f"{PACKAGE}.{path}", doc, source)
        node, text = self._modules[module].defined[name], self._modules[module].texts[name]
        if isinstance(node, ast.ClassDef):
            return self._class(node, module, path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return Item("python", path, "function", _signature(node, name), ast.get_docstring(node) or "", source)
        assert isinstance(node, ast.Assign | ast.AnnAssign)
        annotation = f": {_type(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
        if annotation == ": TypeAlias":
            annotation = ""
        is_type = not annotation and name[:1].isupper()
        signature = f"{name} = {_type(node.value)}" if node.value is not None and not annotation else f"{name}{annotation}"
        return Item("python", path, "type" if is_type else "value", signature, text, source)

    def _class(self, node: ast.ClassDef, module: str, path: str) -> Item:
        bases = [_type(base) for base in node.bases if not _is_hidden(ast.unparse(base))]
        listed = f"({', '.join(bases)})" if bases else ""
        members: dict[str, Item] = {}
        uses: list[str] = []
        for owner, each in reversed(list(self._line(node, module))):
            for member in _members(each, node.name, path, f"{FOLDER}/{owner}.py"):
                members[member.path] = member
            names = {statement.name for statement in each.body if isinstance(statement, _FUNCTIONS)}
            uses += [use for dunder, use in _USES.items() if dunder in names and use not in uses]
        made = members.pop(f"{path}.__init__", None)
        ordered = [made, *members.values()] if made is not None else list(members.values())
        doc = ast.get_docstring(node) or ""
        return Item("python", path, "type", f"class {node.name}{listed}", doc, f"{FOLDER}/{module}.py", tuple(ordered), tuple(uses))

    def _line(self, node: ast.ClassDef, module: str) -> Iterator[tuple[str, ast.ClassDef]]:
        """A class with its module, and the private classes of the package that it derives from."""
        yield module, node
        for base in node.bases:
            named = base.value if isinstance(base, ast.Subscript) else base
            if not isinstance(named, ast.Name):
                continue
            here = self._modules[module]
            if named.id in here.defined:
                owner, name = module, named.id
            elif named.id in here.imported and here.imported[named.id][0] in self._modules:
                owner, name = here.imported[named.id]
            else:
                continue
            found = self._modules[owner].defined.get(name)
            if isinstance(found, ast.ClassDef) and (name.startswith("_") or owner.startswith("_")):
                yield from self._line(found, owner)


def _is_hidden(base: str) -> bool:
    """Whether a base says nothing to a reader: a private class, or a means of typing."""
    return base.startswith(("_", "Generic", "EventDecoder"))


def _members(node: ast.ClassDef, owner: str, path: str, source: str) -> Iterator[Item]:
    """What a class has, its constructor under the name `__init__`."""
    is_dataclass = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    for statement, text in _with_texts(node.body):
        if isinstance(statement, _FUNCTIONS):
            yield from _method(statement, owner, path, source)
        elif isinstance(statement, ast.ClassDef):
            yield _variant(statement, owner, path, source)
        else:
            yield from _fields(statement, text, path, source)
    if is_dataclass and not any(isinstance(each, _FUNCTIONS) and each.name == "__init__" for each in node.body):
        parameters = _dataclass_parameters(node)
        if parameters is not None:
            yield Item("python", f"{path}.__init__", "constructor", f"{owner}({parameters})", "", source)


def _method(node: _Function, owner: str, path: str, source: str) -> Iterator[Item]:
    if node.name == "__init__":
        yield from _attributes(node, path, source)
        if not _takes_what_is_private(node):
            yield Item("python", f"{path}.__init__", "constructor", _signature(node, owner, returns=False), "", source)
        return
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    is_documented_call = node.name == "__call__" and ast.get_docstring(node)
    if (node.name.startswith("_") and not is_documented_call) or "overload" in decorators:
        return
    doc = ast.get_docstring(node) or ""
    if "property" in decorators:
        returned = f": {_type(node.returns)}" if node.returns is not None else ""
        yield Item("python", f"{path}.{node.name}", "field", f"{node.name}{returned}", doc, source)
        return
    signature = _signature(node, node.name)
    if decorators & {"staticmethod", "classmethod"}:
        # As it is called: of the class.
        signature = signature.replace(f"def {node.name}(", f"{owner}.{node.name}(", 1)
    yield Item("python", f"{path}.{node.name}", "method", signature, doc, source)


def _takes_what_is_private(node: _Function) -> bool:
    """Whether a constructor is for the SDK alone: it takes what a program cannot have."""
    parameters = [*node.args.posonlyargs, *node.args.args[1:], *node.args.kwonlyargs]
    named = [part for each in parameters if each.annotation for part in ast.walk(each.annotation) if isinstance(part, ast.Name)]
    return any(part.id.startswith("_") or part.id in {"Exchange", "Steering"} for part in named) or any(
        each.arg == "generator" and node.args.args[-1].arg == "index" for each in parameters
    )


def _attributes(node: _Function, path: str, source: str) -> Iterator[Item]:
    """What a constructor sets, where it is public."""
    for statement, text in _with_texts(node.body):
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                if target.attr.startswith("_"):
                    continue
                annotation = f": {_type(statement.annotation)}" if isinstance(statement, ast.AnnAssign) else ""
                yield Item("python", f"{path}.{target.attr}", "field", f"{target.attr}{annotation}", text, source)


def _fields(statement: ast.stmt, text: str, path: str, source: str) -> Iterator[Item]:
    for name in _names_of(statement):
        if name.startswith("_"):
            continue
        if isinstance(statement, ast.AnnAssign):
            # What the constructor takes and no text explains stands in its signature.
            if text:
                yield Item("python", f"{path}.{name}", "field", f"{name}: {_type(statement.annotation)}", text, source)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            other = statement.value.id
            yield Item("python", f"{path}.{name}", "method", f"{name} = {other}", text or f"Another name of `{other}`.", source)
        elif isinstance(statement, ast.Assign):
            yield Item("python", f"{path}.{name}", "variant", f"{name} = {ast.unparse(statement.value)}", text, source)


def _variant(node: ast.ClassDef, owner: str, path: str, source: str) -> Item:
    """A class inside another one, which is one of its cases."""
    doc = ast.get_docstring(node) or ""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
            doc += f"\n\n`{statement.name}`: {ast.get_docstring(statement) or ''}"
    parameters = _dataclass_parameters(node) or ""
    return Item("python", f"{path}.{node.name}", "variant", f"{owner}.{node.name}({parameters})", doc, source)


def _dataclass_parameters(node: ast.ClassDef) -> str | None:
    """What the constructor of a dataclass takes; None where it takes what a program cannot have."""
    plain: list[str] = []
    by_name: list[str] = []
    is_made_by_others = False
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        given = statement.value
        options = {each.arg: ast.unparse(each.value) for each in given.keywords} if isinstance(given, ast.Call) else {}
        if options.get("init") == "False":
            is_made_by_others = True
            continue
        has_default = given is not None and (not isinstance(given, ast.Call) or bool({"default", "default_factory"} & options.keys()))
        if statement.target.id.startswith("_"):
            if has_default:
                continue
            return None
        default = options.get("default") or ("..." if isinstance(given, ast.Call) else ast.unparse(given) if given is not None else "...")
        text = f"{statement.target.id}: {_type(statement.annotation)}" + (f" = {default}" if has_default else "")
        (by_name if options.get("kw_only") == "True" else plain).append(text)
    if is_made_by_others:
        return None
    return ", ".join([*plain, *(["*", *by_name] if by_name else [])])


class _Awaitables(ast.NodeTransformer):
    """Writes `Coroutine[Any, Any, T]` as `Awaitable[T]`, which is all that a caller needs to know."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "Coroutine" and isinstance(node.slice, ast.Tuple):
            return ast.Subscript(ast.Name("Awaitable", ast.Load()), node.slice.elts[2], ast.Load())
        return node


def _type(node: ast.expr | None) -> str:
    """An expression as the reference shows it."""
    if node is None:
        return "None"
    copied = ast.parse(ast.unparse(node), mode="eval").body
    return _PRIVATE.sub("", ast.unparse(_Awaitables().visit(copied)))


def _parameters(given: ast.arguments) -> str:
    """Parameters as a formatter writes them."""
    positional = [*given.posonlyargs, *given.args]
    without: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults))
    defaults = [*without, *given.defaults]
    parts = [_parameter(*pair) for pair in zip(positional, defaults, strict=True)]
    if given.vararg is not None:
        parts.append(f"*{_parameter(given.vararg, None)}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [_parameter(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg is not None:
        parts.append(f"**{_parameter(given.kwarg, None)}")
    return ", ".join(parts)


def _parameter(given: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {_type(given.annotation)}" if given.annotation is not None else ""
    if default is None:
        return f"{given.arg}{annotation}"
    return f"{given.arg}{annotation}{' = ' if annotation else '='}{ast.unparse(default)}"


def _signature(node: _Function, name: str, *, returns: bool = True) -> str:
    """A declaration without a body; without `self`, and without `def` where it is that of a constructor."""
    bare = type(node)(name=node.name, args=node.args, body=[ast.Pass()], decorator_list=[], returns=node.returns)
    (given,) = ast.parse(ast.unparse(ast.fix_missing_locations(bare))).body
    assert isinstance(given, ast.FunctionDef | ast.AsyncFunctionDef)
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if given.args.args and given.args.args[0].arg in {"self", "cls"} and "staticmethod" not in decorators:
        del given.args.args[0]
    parameters = _parameters(_Awaitables().visit(given.args))
    if not returns:
        return f"{name}({parameters})"
    begin = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returned = f" -> {_type(given.returns)}" if given.returns is not None else ""
    return f"{begin} {name}({parameters}){returned}"
