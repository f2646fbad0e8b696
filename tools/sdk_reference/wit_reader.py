"""Reads what Rust programs take from the bindings, as the WIT declares and documents it.

It knows interfaces with records, variants, enums, resources and functions, each with comments `///` before it. The
bindings are made by `wit-bindgen`; their types in Rust follow from those of the WIT by its rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.sdk_reference.items import Item, SourceError
from tools.sdk_reference.masking import Comment, Masked, blanked

PACKAGES = ("core", "instruct", "mcp")
_NUMBERS = {"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "bool", "char"}
_TYPE = re.compile(r"(?P<kind>record|variant|enum|resource)\s+(?P<name>[\w-]+)\s*\{|(?P<function>[\w-]+):\s*(?P<static>static\s+)?func\(")


@dataclass(frozen=True)
class Function:
    """A function of an interface, or of a resource of it."""

    resource: str
    """Empty where it is of the interface itself."""
    name: str
    is_static: bool
    params: tuple[tuple[str, str], ...]
    """Names with the texts of their types."""
    result: str
    """The text of its type; empty where there is none."""
    text: str
    """The declaration, on one line."""
    doc: str


@dataclass(frozen=True)
class Type:
    """A record, a variant, an enum or a resource."""

    kind: str
    name: str
    doc: str
    cases: tuple[tuple[str, str, str], ...]
    """Fields or cases: their names, the texts of their types, and what is said of them."""


@dataclass(frozen=True)
class Interface:
    """An interface: its types and functions, in the order of the file."""

    package: str
    name: str
    doc: str
    source: str
    types: tuple[Type, ...]
    functions: tuple[Function, ...]


def read(root: Path) -> dict[str, Interface]:
    """The interfaces of ours, by `package::name` as Rust writes them."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / "wit" / "deps" / f"pie-{package}").glob("*.wit")):
            interface = _interface(path, package, root)
            found[f"{package}::{snake(interface.name)}"] = interface
    return found


def snake(name: str) -> str:
    """A name of the WIT as that of a function or module in Rust."""
    return name.replace("-", "_")


def camel(name: str) -> str:
    """A name of the WIT as that of a type in Rust."""
    return "".join(part.capitalize() for part in name.split("-"))


def masked(text: str) -> Masked:
    """A source whose comments are those of lines, the lines of one comment as one."""
    code = list(text)
    comments: list[Comment] = []
    pattern = re.compile(r"(?:^[ ]*///[^\n]*\n?)+|//[^\n]*", re.MULTILINE)
    for match in pattern.finditer(text):
        code[match.start() : match.end()] = blanked(match[0])
        if "///" in match[0]:
            lines = [re.sub(r"^\s*/// ?", "", line) for line in match[0].splitlines()]
            comments.append(Comment(match.start(), match.end(), "\n".join(lines)))
    return Masked("".join(code), "".join(code), tuple(comments))


def _interface(path: Path, package: str, root: Path) -> Interface:
    name = path.relative_to(root).as_posix()
    source = masked(path.read_text(encoding="utf-8"))
    head = re.search(r"^interface ([\w-]+) \{", source.bare, re.MULTILINE)
    if head is None:
        raise SourceError(f"{name} declares no interface")
    types: list[Type] = []
    functions: list[Function] = []
    for found in _declared(source, head.end(), source.closing(head.end() - 1) - 1):
        if isinstance(found, Function):
            functions.append(found)
        else:
            kind, inner = found
            types.append(kind)
            functions += inner
    return Interface(package, head[1], _doc(source, head.start()), name, tuple(types), tuple(functions))


def _doc(source: Masked, place: int) -> str:
    comment = source.comment_before(place)
    return comment.text if comment is not None else ""


def _declared(source: Masked, start: int, end: int, resource: str = "") -> Iterator[Function | tuple[Type, list[Function]]]:
    place = start
    while (match := _TYPE.search(source.bare, place, end)) is not None:
        doc = _doc(source, match.start())
        if match["function"] is not None:
            place = source.end_of(match.end() - 1, ";") + 1
            yield _function(source, match, place - 1, resource, doc)
            continue
        place = source.closing(match.end() - 1)
        if match["kind"] == "resource":
            inner = [each for each in _declared(source, match.end(), place - 1, match["name"]) if isinstance(each, Function)]
            yield Type("resource", match["name"], doc, ()), inner
        else:
            yield Type(match["kind"], match["name"], doc, tuple(_cases(source, match.end(), place - 1))), []


def _cases(source: Masked, start: int, end: int) -> Iterator[tuple[str, str, str]]:
    """The fields of a record and the cases of a variant or an enum, which commas end."""
    begin, depth = start, 0
    for place in range(start, end + 1):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(source.bare[place], 0)
        is_end = place == end or (source.bare[place] == "," and depth == 0)
        if not is_end or not source.bare[begin:place].strip():
            continue
        match = re.match(r"\s*([\w-]+)\s*(?::\s*(.+)|\((.+)\))?\s*$", source.bare[begin:place], re.DOTALL)
        if match is None:
            raise SourceError(f"the WIT has {source.line(begin, place)!r}, which tools/sdk_reference/wit_reader.py does not know")
        yield match[1], " ".join((match[2] or match[3] or "").split()), _doc(source, begin + match.start(1))
        begin = place + 1


def _function(source: Masked, match: re.Match[str], end: int, resource: str, doc: str) -> Function:
    begin = match.end() - 1
    close = source.closing(begin)
    params = tuple(_param(part) for part in _split(source.line(begin + 1, close - 1)))
    result = source.line(close, end).removeprefix("->").strip()
    return Function(resource, match["function"], match["static"] is not None, params, result, source.line(match.start(), end), doc)


def _param(text: str) -> tuple[str, str]:
    name, _, kind = text.partition(":")
    return name.strip(), kind.strip()


def _split(text: str) -> list[str]:
    """The parts of a text between commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def rust_type(text: str, *, is_taken: bool = False) -> str:
    """A type in Rust; with `is_taken` that of a parameter, which is lent where it is a text or a list."""
    text = text.strip()
    kind, _, inner = text.removesuffix(">").partition("<")
    if not inner:
        if text == "string":
            return "&str" if is_taken else "String"
        return text.replace("s", "i", 1) if text in _NUMBERS and text.startswith("s") else text if text in _NUMBERS else camel(text)
    parts = _split(inner)
    match kind:
        case "list":
            return f"&[{rust_type(inner)}]" if is_taken else f"Vec<{rust_type(inner)}>"
        case "option":
            return f"Option<{rust_type(inner, is_taken=is_taken)}>"
        case "result":
            ok = "()" if parts[0] == "_" else rust_type(parts[0])
            return f"Result<{ok}, {rust_type(parts[1])}>"
        case "tuple":
            return f"({', '.join(map(rust_type, parts))})"
        case "borrow":
            return f"&{camel(inner)}"
    raise SourceError(f"the WIT has the type {text}, for which tools/sdk_reference/wit_reader.py has no form in Rust")


def rust_signature(function: Function, name: str | None = None) -> str:
    """A function as Rust declares it, under another name where one is given."""
    receiver = ["&self"] if function.resource and not function.is_static else []
    params = [f"{snake(name)}: {rust_type(kind, is_taken=True)}" for name, kind in function.params]
    returned = f" -> {rust_type(function.result)}" if function.result else ""
    return f"fn {name or snake(function.name)}({', '.join(receiver + params)}){returned}"


def rust_item(interface: Interface, name: str, path: str, doc: str, source: str) -> Item:
    """What the bindings have under a name of Rust, under the path of a re-export with its text where it has one."""
    for function in interface.functions:
        if not function.resource and snake(function.name) == name:
            return Item("rust", path, "function", rust_signature(function, path.rpartition("::")[2]), doc or function.doc, source)
    for found in interface.types:
        if camel(found.name) == name:
            return _rust_type_item(interface, found, path, doc or found.doc, source)
    raise SourceError(f"{source} takes {name} from {interface.source}, which has no such name")


def _rust_type_item(interface: Interface, found: Type, path: str, doc: str, source: str) -> Item:
    keyword = "struct" if found.kind in {"record", "resource"} else "enum"
    members = []
    for name, kind, text in found.cases:
        if keyword == "struct":
            members.append(Item("rust", f"{path}::{snake(name)}", "field", f"{snake(name)}: {rust_type(kind)}", text, source))
        else:
            held = f"({rust_type(kind)})" if kind else ""
            members.append(Item("rust", f"{path}::{camel(name)}", "variant", f"{camel(name)}{held}", text, source))
    members += [
        Item("rust", f"{path}::{snake(function.name)}", "method", rust_signature(function), function.doc, source)
        for function in interface.functions
        if found.kind == "resource" and function.resource == found.name
    ]
    own = path.rpartition("::")[2]
    return Item("rust", path, "type", f"{keyword} {own}", doc, source, tuple(members))
