"""Which file of a Rust crate takes names from which: reads `use` declarations and paths in expressions, as text.

An arrow leads to the file that defines a name, also where a module above it re-exports the name; to re-export a name is
not to use it. Code for tests does not count. A name that comes from another crate gives no arrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Imports = dict[str, set[str]]
"""Files by path below the folder of the crate's sources, with the files that each takes names from."""

_NAME = r"(?:r#)?[A-Za-z_]\w*"
_MODULE = re.compile(rf"\bmod\s+({_NAME})\s*([;{{])")
_USE = re.compile(r"(\bpub\s+)?\buse\s+([^;]+);")
_PATH = re.compile(rf"(?<![\w:])(?:\$?crate|super|self|{_NAME})(?:\s*::\s*{_NAME})+")
_FOR_TESTS = re.compile(r"#\[cfg\(test\)\]")


@dataclass
class _Module:
    """A module: where its code stands, and what it declares and re-exports."""

    file: str
    code: str
    above: _Module | None
    below: dict[str, _Module] = field(default_factory=dict)
    uses: list[tuple[list[str], str, bool]] = field(default_factory=list)
    """Path, the name it gets here (`*` for all), whether others see it."""


def imports(sources: Path) -> Imports:
    """The arrows of the crate whose sources lie in a folder with a `lib.rs`."""
    root = _module(sources, "lib.rs", sources, _bare((sources / "lib.rs").read_text()), None)
    found: Imports = {}
    for module in _all(root):
        arrows = found.setdefault(module.file, set())
        for path in _paths(module):
            target = _target(root, module, path)
            if target and target != module.file:
                arrows.add(target)
    return found


def circles(arrows: Imports) -> list[list[str]]:
    """The groups of files that reach each other: each in order, of two files or more."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(arrows):
        _visit(arrows, start, seen, order)
    back: Imports = {file: set() for file in arrows}
    for file, targets in arrows.items():
        for target in targets:
            back.setdefault(target, set()).add(file)
    seen = set()
    groups = []
    for start in reversed(order):
        group: list[str] = []
        _visit(back, start, seen, group)
        if len(group) > 1:
            groups.append(sorted(group))
    return sorted(groups)


def upward(arrows: Imports, layers: list[set[str]]) -> list[str]:
    """The arrows that lead to a higher layer, and the files without a layer.

    `layers` are names of files and folders, the ground first.
    """
    wrong = []
    for file, targets in sorted(arrows.items()):
        floor = _floor(file, layers)
        if floor is None:
            wrong.append(f"{file} has no layer")
            continue
        for target in sorted(targets):
            other = _floor(target, layers)
            if other is not None and other > floor:
                wrong.append(f"{file} -> {target}")
    return wrong


def _floor(file: str, layers: list[set[str]]) -> int | None:
    """The layer of a file: that of itself, or of the nearest folder that has one."""
    path = Path(file)
    for name in [file, *(f"{folder}/" for folder in path.parents)]:
        for floor, layer in enumerate(layers):
            if name in layer:
                return floor
    return None


def _visit(arrows: Imports, start: str, seen: set[str], order: list[str]) -> None:
    """Walks from `start` in depth, and notes each file behind those that it reaches."""
    if start in seen:
        return
    seen.add(start)
    stack = [(start, iter(sorted(arrows.get(start, ()))))]
    while stack:
        file, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            order.append(file)
            stack.pop()
        elif target not in seen:
            seen.add(target)
            stack.append((target, iter(sorted(arrows.get(target, ())))))


def _all(module: _Module) -> Iterator[_Module]:
    yield module
    for below in module.below.values():
        yield from _all(below)


def _bare(text: str) -> str:
    """The code without comments, texts, and what is compiled for tests alone."""
    text = re.sub(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', lambda hit: '""' if hit[0][0] == '"' else "", _raw_gone(text), flags=re.S)
    text = re.sub(r"'(?:\\.[^']*|[^'\\])'", "' '", text)
    text = re.sub(r"\bpub\s*\([^)]*\)", "pub", text)
    while marked := _FOR_TESTS.search(text):
        text = text[: marked.start()] + text[_item_end(text, marked.end()) :]
    return text


def _raw_gone(text: str) -> str:
    return re.sub(r'\bb?r(#+)".*?"\1', '""', text, flags=re.S)


def _item_end(text: str, start: int) -> int:
    """Where the item ends that begins at `start`: at its semicolon, or where its braces close."""
    depth = 0
    for place in range(start, len(text)):
        match text[place]:
            case "(" | "[" | "{":
                depth += 1
            case ")" | "]" | "}":
                depth -= 1
                if depth == 0 and text[place] == "}":
                    return place + 1
            case ";" | "," if depth == 0:
                return place + 1
    return len(text)


def _module(sources: Path, file: str, folder: Path, code: str, above: _Module | None) -> _Module:
    """The module of a code, whose submodules lie in `folder`."""
    module = _Module(file, code, above)
    place = 0
    while declared := _MODULE.search(module.code, place):
        name = declared[1]
        if declared[2] == ";":
            place = declared.end()
            path = folder / f"{name}.rs"
            if not path.is_file():
                path = folder / name / "mod.rs"
            below = _module(sources, str(path.relative_to(sources)), folder / name, _bare(path.read_text()), module)
        else:
            end = _item_end(module.code, declared.start())
            inner = module.code[declared.end() : end - 1]
            below = _module(sources, file, folder / name, inner, module)
            module.code = module.code[: declared.start()] + module.code[end:]
            place = declared.start()
        module.below[name] = below
    for hit in _USE.finditer(module.code):
        module.uses += [(path, name, hit[1] is not None) for path, name in _spread(hit[2])]
    return module


def _spread(tree: str) -> Iterator[tuple[list[str], str]]:
    """The paths of one `use` declaration, with the name that each gets."""
    tree = tree.strip()
    if tree.endswith("}"):
        head, inner = tree.split("{", 1)
        for part in _parts(inner[:-1]):
            for path, name in _spread(part):
                full = _names(head) + path
                if full[-1] == "self":
                    full.pop()
                yield full, full[-1] if name == "self" else name
        return
    path, _, alias = tree.partition(" as ")
    names = _names(path)
    if names:
        yield names, alias.strip() or names[-1]


def _parts(tree: str) -> Iterator[str]:
    depth, start = 0, 0
    for place, letter in enumerate(tree):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            yield tree[start:place]
            start = place + 1
    if tree[start:].strip():
        yield tree[start:]


def _names(path: str) -> list[str]:
    return [name.strip().removeprefix("r#").removeprefix("$") for name in path.split("::") if name.strip()]


def _paths(module: _Module) -> Iterator[list[str]]:
    """Every path of a module: those of its `use` declarations, and those in its code."""
    imported = {name: path for path, name, _ in module.uses}
    code = _USE.sub("", module.code)
    for path, name, is_public in module.uses:
        if not is_public or re.search(rf"\b{re.escape(name)}\b", code):
            yield path
    for hit in _PATH.finditer(code):
        path = _names(hit[0])
        yield imported.get(path[0], path[:1]) + path[1:]


def _target(root: _Module, module: _Module, path: list[str], depth: int = 0) -> str | None:
    """The file that defines what a path names, seen from a module; none where it comes from elsewhere."""
    place, rest = _start(root, module, path)
    if place is None or depth > 10:
        return None
    while rest and rest[0] in place.below:
        place, rest = place.below[rest[0]], rest[1:]
    if not rest or rest[0] == "*":
        return place.file
    for exported, name, _ in place.uses:
        if name == rest[0] and exported != path:
            return _target(root, place, exported + rest[1:], depth + 1)
    if _defines(place, rest[0]):
        return place.file
    for exported, name, is_public in place.uses:
        if name == "*" and is_public and (found := _target(root, place, [*exported[:-1], rest[0]], depth + 1)):
            return found
    return place.file


def _start(root: _Module, module: _Module, path: list[str]) -> tuple[_Module | None, list[str]]:
    """The module from which a path leads on, and the rest of it; none where it leads to another crate."""
    if path[0] == "crate":
        return root, path[1:]
    if path[0] in {"self", "super"}:
        place: _Module | None = module
        rest = path
        while rest and rest[0] in {"self", "super"}:
            place = place.above if place and rest[0] == "super" else place
            rest = rest[1:]
        return place, rest
    return (module, path) if path[0] in module.below else (None, path)


def _defines(module: _Module, name: str) -> bool:
    return re.search(rf"\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+{re.escape(name)}\b", module.code) is not None
