"""Reads the public names of the Rust SDK from its sources.

Of the language it knows what declarations are made of: `pub` before `mod`, `use`, `fn`, `struct`, `enum`, `trait`,
`type` and `const`, fields and variants, the functions of `impl`, attributes, and comments `///` and `//!`. A macro that
declares public items is expanded where it has the form of `decoder!`. What is `#[doc(hidden)]` or for tests is left
out. What is re-exported from the bindings has its declaration and its text from the WIT.
`tests/repository/test_sdk_pages.py` compares what is found with every line that says `pub`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.sdk_reference import wit_reader
from tools.sdk_reference.items import Item, SourceError
from tools.sdk_reference.masking import Comment, Masked, blanked

CRATE = "rust/inferlet"
MACROS = "rust/inferlet-macros/src/lib.rs"
_TOKEN = re.compile(
    r"(?P<docs>(?:^[ \t]*//(?:/(?!/)|!)[^\n]*(?:\n|$))+)|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<raw>r(?P<marks>#*)".*?"(?P=marks))|(?P<text>b?"(?:\\.|[^"\\])*")|(?P<char>b?\'(?:\\u\{[^}]*\}|\\.|[^\'\\\n])\')',
    re.MULTILINE | re.DOTALL,
)
_ITEM = re.compile(
    r"(?P<vis>pub(?:\s*\([^)]*\))?\s+)?"
    r"(?:(?P<fn>(?:(?:const|async|unsafe)\s+)*fn)\s+(?P<fn_name>\w+)"
    r"|(?P<kind>mod|struct|enum|trait|type|const|static|union)\s+(?P<name>\w+)"
    r"|(?P<use>use|extern\s+crate)\b|(?P<impl>impl)\b"
    r"|(?P<rules>macro_rules!)\s*(?P<rules_name>\w+)\s*|(?P<macro>[\w:]+!)\s*)"
)
_UNTOLD = {"Debug", "Drop", "Clone", "Copy"}
"""Traits that say nothing to a reader."""
_OF_THE_ROOT = ("args", "errors", "entry")
"""Modules whose functions are called by the root's names."""


@dataclass(frozen=True)
class _Found:
    """An item where it stands."""

    match: re.Match[str]
    """Of `_ITEM`."""
    attributes: str
    doc: str
    source: Masked
    stop: int
    """Where it ends."""

    @property
    def is_public(self) -> bool:
        return (self.match["vis"] or "").strip() == "pub"

    @property
    def is_hidden(self) -> bool:
        return "doc(hidden)" in self.attributes


@dataclass
class _Declared:
    """An item of a module."""

    kind: str
    name: str
    signature: str
    doc: str
    body: tuple[int, int] | None
    source: Masked
    is_public: bool
    is_hidden: bool


@dataclass
class _Use:
    """A name that a module takes from elsewhere and lends."""

    path: tuple[str, ...]
    name: str
    """`*` is everything."""
    doc: str


@dataclass
class _Impl:
    trait: str
    of: str
    functions: list[_Declared]


@dataclass
class _Module:
    path: tuple[str, ...]
    file: str
    doc: str = ""
    is_public: bool = True
    items: dict[str, _Declared] = field(default_factory=dict)
    uses: list[_Use] = field(default_factory=list)
    modules: dict[str, _Module] = field(default_factory=dict)
    impls: list[_Impl] = field(default_factory=list)


def read(root: Path) -> list[Item]:
    """Every public name, under the shortest of its paths."""
    return _Reader(root).items()


def masked(text: str) -> Masked:
    """A source in Rust."""
    code, bare = list(text), list(text)
    comments: list[Comment] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        bare[start:end] = blanked(match[0])
        if match["docs"] is not None or match["comment"] is not None:
            code[start:end] = blanked(match[0])
        if match["docs"] is not None:
            is_inner = match[0].lstrip().startswith("//!")
            lines = [re.sub(r"^\s*//[/!] ?", "", line) for line in match[0].splitlines()]
            comments.append(Comment(start, end, "\n".join(lines), is_inner))
    return Masked("".join(code), "".join(bare), tuple(comments))


class _Parser:
    """Reads one file; the files of its modules are read with it."""

    def __init__(self, root: Path, macros: dict[str, str]) -> None:
        self._root = root
        self._macros = macros

    def file(self, path: Path, module: tuple[str, ...], doc: str = "") -> _Module:
        source = masked(path.read_text(encoding="utf-8"))
        made = _Module(module, path.relative_to(self._root).as_posix(), doc)
        self._fill(made, source, 0, len(source.bare), path)
        return made

    def _fill(self, module: _Module, source: Masked, start: int, end: int, path: Path) -> None:
        inner = [comment.text for comment in source.comments if comment.is_inner and start <= comment.start < end]
        module.doc = "\n\n".join(part for part in (module.doc, *inner[:1]) if part)
        for found in _each(source, start, end):
            match = found.match
            if "cfg(test)" in found.attributes or match["rules"]:
                continue
            if match["use"]:
                module.uses += _uses(source.line(match.end(), found.stop), found.doc) if found.is_public else []
            elif match["kind"] == "mod":
                self._module(module, found, path)
            elif match["impl"]:
                _add_impl(module, found)
            elif match["macro"]:
                self._expand(module, found, path)
            else:
                declared = _declared(found)
                if "proc_macro_attribute" in found.attributes:
                    declared.signature = f"#[inferlet::{declared.name}]"
                module.items[declared.name] = declared

    def _module(self, module: _Module, found: _Found, path: Path) -> None:
        name, source = found.match["name"], found.source
        inside = (*module.path, name)
        if source.bare[found.stop - 1] == ";":
            folder = path.parent if path.stem in {"lib", "mod"} else path.parent / path.stem
            files = (folder / f"{name}.rs", folder / name / "mod.rs")
            if (file := next((file for file in files if file.exists()), None)) is None:
                raise SourceError(f"{module.file} has the module {name}, and there is neither {' nor '.join(map(str, files))}")
            made = self.file(file, inside, found.doc)
        else:
            made = _Module(inside, module.file, found.doc)
            begin = source.bare.index("{", found.match.end())
            self._fill(made, source, begin + 1, found.stop - 1, path)
        made.is_public = found.is_public and not found.is_hidden
        module.modules[name] = made

    def _expand(self, module: _Module, found: _Found, path: Path) -> None:
        text = self._macros.get(found.match["macro"].rstrip("!"), "")
        if "pub " not in text:
            return
        source, begin = found.source, found.match.end()
        inside = [comment.text for comment in source.comments if begin <= comment.start < found.stop]
        docs = "\n".join(f"/// {line}" for doc in inside for line in doc.splitlines())
        pattern, _, body = text.partition("=>")
        names = re.findall(r"\$(\w+):(?:ty|path|ident|expr)", pattern)
        given = [part.strip() for part in source.line(begin + 1, found.stop - 1).strip().split(",")]
        expanded = body.strip()[1:].rpartition("}")[0].replace("$(#[$doc])*", f"\n{docs}\n").replace("$crate", "crate")
        for name, value in zip(names, given, strict=True):
            expanded = expanded.replace(f"${name}", value)
        inner = masked(expanded)
        self._fill(module, inner, 0, len(inner.bare), path)


def _each(source: Masked, start: int, end: int) -> Iterator[_Found]:
    """Every item between two places."""
    place = start
    while True:
        attributes, begin = "", place
        while place < end and (source.bare[place].isspace() or source.bare[place] in "#;"):
            if source.bare[place] == "#":
                bracket = source.bare.index("[", place)
                place = source.closing(bracket)
                attributes += source.bare[bracket:place]
            else:
                place += 1
        if place >= end:
            return
        match = _ITEM.match(source.bare, place, end)
        if match is None:
            raise SourceError(
                f"a source in Rust has {source.line(place, place + 60)!r}, which tools/sdk_reference/rust_reader.py does not know"
            )
        texts = [comment.text for comment in source.comments if begin <= comment.start < place and not comment.is_inner]
        stop = _stop(match, source, end)
        yield _Found(match, attributes, "\n".join(texts), source, stop)
        place = stop


def _add_impl(module: _Module, found: _Found) -> None:
    source = found.source
    begin = source.end_of(found.match.end(), "{")
    head = _without_generics(source.line(found.match.end(), begin)).partition(" where ")[0].strip()
    trait, _, of = head.rpartition(" for ")
    if of.startswith("raw::"):
        return
    inside = _each(source, begin + 1, found.stop - 1)
    functions = [_declared(each) for each in inside if each.match["fn"] or each.match["kind"] == "const"]
    module.impls.append(_Impl(trait.strip(), re.split(r"[<(]", of.strip())[0].rpartition("::")[2].strip(), functions))


def _stop(match: re.Match[str], source: Masked, end: int) -> int:
    """Where an item ends."""
    if match["rules"] or match["macro"]:
        return source.closing(source.end_of(match.end(), "{(["))
    if match["use"] or match["kind"] in {"type", "const", "static"}:
        return min(source.end_of(match.end(), ";") + 1, end)
    place = source.end_of(match.end(), "{;")
    return source.closing(place) if place < end and source.bare[place] == "{" else place + 1


def _without_generics(head: str) -> str:
    """The head of an `impl` without the parameters that it begins with."""
    if not head.startswith("<"):
        return head
    depth = 0
    for place, character in enumerate(head):
        depth += {"<": 1, ">": -1}.get(character, 0) if head[place - 1 : place + 1] != "->" else 0
        if depth == 0:
            return head[place + 1 :].strip()
    return head


def _declared(found: _Found) -> _Declared:
    match, source = found.match, found.source
    kind, name = ("fn", match["fn_name"]) if match["fn"] else (match["kind"], match["name"])
    begin = match.end("vis") if match["vis"] else match.start()
    brace = source.end_of(begin, "{;=" if kind in {"const", "static"} else "{;")
    head = source.line(begin, brace)
    if kind == "struct" and head.endswith(")"):
        # What a private field holds is nobody's concern.
        head = head.replace("(pub ", "(").replace(", pub ", ", ") if "(pub " in head else head.partition("(")[0]
    body = (brace + 1, found.stop - 1) if brace < found.stop and source.bare[brace] == "{" else None
    return _Declared(kind, name, _plain(head), found.doc, body, source, found.is_public, found.is_hidden)


def _plain(signature: str) -> str:
    """A signature without what says nothing to a caller."""
    return re.sub(r" \+ use<[^>]*>", "", signature).replace("crate::", "").replace("(mut self", "(self").rstrip(" ,")


def _uses(text: str, doc: str) -> list[_Use]:
    """What a `use` lends: its paths, each with the name that it gives."""
    found: list[tuple[tuple[str, ...], str]] = []
    for path in _paths(text.rstrip(";").strip()):
        source, _, alias = path.partition(" as ")
        parts = tuple(part for part in source.strip().split("::") if part != "self")
        found.append((parts, alias.strip() or parts[-1]))
    # A comment above several names is about them together.
    return [_Use(parts, name, doc if len(found) == 1 else "") for parts, name in found]


def _paths(text: str) -> Iterator[str]:
    head, brace, rest = text.partition("{")
    if not brace:
        yield text
        return
    depth, part = 0, ""
    for character in rest[: rest.rindex("}")]:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield from _paths(head + part.strip())
            part = ""
        else:
            part += character
    if part.strip():
        yield from _paths(head + part.strip())


class _Reader:
    def __init__(self, root: Path) -> None:
        self._wit = wit_reader.read(root)
        folder = root / CRATE / "src"
        macros: dict[str, str] = {}
        for path in sorted(folder.rglob("*.rs")):
            text = path.read_text(encoding="utf-8")
            source = masked(text)
            for match in re.finditer(r"macro_rules!\s*(\w+)\s*\{", source.bare):
                macros[match[1]] = text[match.end() : source.closing(match.end() - 1) - 1]
        parser = _Parser(root, macros)
        self._crate = parser.file(folder / "lib.rs", ())
        self._macro_crate = parser.file(root / MACROS, ("inferlet_macros",))

    def items(self) -> list[Item]:
        self._paths: dict[tuple[str, ...], list[str]] = {}
        self._lent: list[Item] = []
        self._again: dict[str, list[str]] = {}
        self._walk(self._crate)
        found = []
        for place, paths in self._paths.items():
            best = self._best(place, paths)
            found.append(replace(self._item(place, best), also=tuple(path for path in paths if path != best)))
        return [*found, *(replace(item, also=tuple(self._again.get(item.path, ()))) for item in self._lent)]

    @staticmethod
    def _best(place: tuple[str, ...], paths: list[str]) -> str:
        """A function is called by its module, anything else by its shortest path."""
        own = "::".join(place)
        is_function = place[-1][:1].islower()
        if is_function and own in paths and place[0] not in _OF_THE_ROOT:
            return own
        return min(paths, key=lambda path: (path.count("::"), path.startswith("prelude::"), paths.index(path)))

    def _walk(self, module: _Module) -> None:
        prefix = "".join(f"{part}::" for part in module.path)
        if module.path:
            lent = ", ".join(f"`{use.name}`" for use in module.uses) if module.path == ("prelude",) else ""
            doc = f"{module.doc}\n\nIt has {lent}." if lent else module.doc
            self._lent.append(Item("rust", "::".join(module.path), "module", f"inferlet::{'::'.join(module.path)}", doc, module.file))
        for name, item in module.items.items():
            if item.is_public and not item.is_hidden:
                self._paths.setdefault((*module.path, name), []).append(f"{prefix}{name}")
        for use in module.uses:
            if not any(part.startswith("__") for part in module.path):
                self._use(module, use, f"{prefix}{use.name}")
        for inner in module.modules.values():
            if inner.is_public:
                self._walk(inner)

    def _use(self, module: _Module, use: _Use, path: str) -> None:
        parts = self._absolute(module, use.path)
        if len(parts) == 1:
            # The root lends it on.
            lent = [each.path for each in self._crate.uses if each.name == parts[0] and each.path != parts]
            parts = self._absolute(self._crate, lent[0]) if lent else parts
        if use.name == "*" and parts[0] != "bindings":
            raise SourceError(f"{module.file} lends `{'::'.join(parts)}`; name what it lends, so that the reference can")
        if parts[0] == "bindings":
            self._of_bindings(module, use, parts, path)
        elif parts[0] == "inferlet_macros":
            self._of_macros(parts[-1], path, module)
        elif (place := self._find(parts)) is not None:
            if path.rpartition("::")[2] != place[-1]:
                named = "::".join(place)
                self._lent.append(
                    Item("rust", path, "function", f"use {named} as {use.name}", use.doc or f"Another name of `{named}`.", module.file)
                )
            else:
                self._paths.setdefault(place, []).append(path)
        elif parts[0] in self._crate.modules:
            self._again.setdefault("::".join(parts), []).append(path)
        else:
            doc = use.doc or f"Of the crate `{parts[0].replace('_', '-')}`."
            self._lent.append(
                Item("rust", path, "type" if use.name[:1].isupper() else "module", f"use {'::'.join(parts)}", doc, module.file)
            )

    def _of_macros(self, name: str, path: str, module: _Module) -> None:
        known = next((item.path for item in self._lent if item.signature == f"#[inferlet::{name}]"), None)
        if known is None:
            item = self._macro_crate.items[name]
            self._lent.append(Item("rust", path, "function", item.signature, item.doc, module.file))
        else:
            self._again.setdefault(known, []).append(path)

    def _of_bindings(self, module: _Module, use: _Use, parts: tuple[str, ...], path: str) -> None:
        interface = self._wit.get("::".join(parts[2:4])) if len(parts) > 4 and parts[1] == "pie" else None
        if interface is not None:
            self._lent.append(wit_reader.rust_item(interface, parts[4], path, use.doc, module.file))

    def _absolute(self, module: _Module, path: tuple[str, ...]) -> tuple[str, ...]:
        if path[0] == "crate":
            return path[1:]
        if path[0] in module.modules or path[0] in module.items:
            return (*module.path, *path)
        for use in module.uses:
            if use.name == path[0] and use.path != path:
                return (*self._absolute(module, use.path), *path[1:])
        return path

    def _module_at(self, parts: tuple[str, ...]) -> _Module | None:
        module: _Module | None = self._crate
        for part in parts:
            module = module.modules.get(part) if module is not None else None
        return module

    def _find(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """Where an item is declared, through what modules lend each other."""
        module = self._module_at(parts[:-1])
        if module is None:
            return None
        if parts[-1] in module.items:
            return parts
        for use in module.uses:
            if use.name == parts[-1] and (lent := self._absolute(module, use.path)) != parts:
                return self._find(lent)
        return None

    def _item(self, place: tuple[str, ...], path: str) -> Item:
        module = self._module_at(place[:-1])
        assert module is not None
        found = module.items[place[-1]]
        if found.kind == "fn":
            return Item("rust", path, "function", found.signature, found.doc, module.file)
        if found.kind in {"const", "static", "type"}:
            return Item("rust", path, "type" if found.kind == "type" else "value", found.signature, found.doc, module.file)
        members = list(_members(found, path, module.file))
        uses: list[str] = []
        for implementing in self._impls(place[-1], module):
            if not implementing.trait:
                members += [_function(each, path, module.file) for each in implementing.functions if each.is_public and not each.is_hidden]
            else:
                trait = implementing.trait.rpartition("::")[2]
                told = _plain(trait if "<" not in implementing.trait else re.sub(r"^.*::(?=\w+<)", "", implementing.trait))
                if trait not in _UNTOLD and told not in uses and "raw::" not in told:
                    uses.append(told)
        members.sort(key=lambda member: member.kind != "constructor")
        return Item("rust", path, "type", found.signature, found.doc, module.file, tuple(members), tuple(uses))

    def _impls(self, name: str, module: _Module) -> Iterator[_Impl]:
        """Of a type by its name: an `impl` may stand in another file."""
        for each in self._every(self._crate):
            is_here = each is module
            for implementing in each.impls:
                if implementing.of == name and (is_here or name not in each.items):
                    yield implementing

    def _every(self, module: _Module) -> Iterator[_Module]:
        yield module
        for inner in module.modules.values():
            yield from self._every(inner)


def _function(found: _Declared, path: str, source: str) -> Item:
    kind = "constructor" if found.name == "new" else "method" if found.kind == "fn" else "field"
    return Item("rust", f"{path}::{found.name}", kind, found.signature, found.doc, source)


def _members(found: _Declared, path: str, source: str) -> Iterator[Item]:
    """Fields, variants, and the functions of a trait."""
    if found.body is None:
        return
    start, end = found.body
    if found.kind == "trait":
        for each in _each(found.source, start, end):
            if each.match["fn"] and not each.is_hidden:
                yield _function(_declared(each), path, source)
        return
    for begin, stop in _parts(found.source, start, end):
        doc, at = _of_part(found.source, begin, stop)
        text = found.source.line(at, stop)
        if found.kind == "struct":
            if text.startswith("pub "):
                named = text.removeprefix("pub ")
                yield Item("rust", f"{path}::{named.partition(':')[0]}", "field", _plain(named), doc, source)
            continue
        name = re.split(r"[({ ]", text)[0]
        fields = "".join(f"\n\n{each}" for each in _texts_of_fields(found.source, at, stop))
        yield Item("rust", f"{path}::{name}", "variant", re.sub(r"\{\s*(.*?),?\s*\}", r"{ \1 }", _plain(text)), doc + fields, source)


def _parts(source: Masked, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts between commas: those in the brackets of types are none."""
    begin = place = start
    depth = 0
    while place < end:
        character = source.bare[place]
        depth += {"<": 1, ">": -1}.get(character, 0) if source.bare[place - 1 : place + 1] not in {"->", "=>"} else 0
        if character == "," and depth == 0:
            yield begin, place
            begin = place + 1
        place = source.closing(place) if character in "([{" else place + 1
    if source.bare[begin:end].strip():
        yield begin, end


def _of_part(source: Masked, begin: int, stop: int) -> tuple[str, int]:
    """The text of a field or a variant, and where it begins behind its attributes."""
    at = begin
    while at < stop and (source.bare[at].isspace() or source.bare[at] == "#"):
        at = source.closing(source.bare.index("[", at)) if source.bare[at] == "#" else at + 1
    texts = [comment.text for comment in source.comments if begin <= comment.start < at]
    return "\n".join(texts), at


def _texts_of_fields(source: Masked, start: int, end: int) -> Iterator[str]:
    """What is said of the fields of a variant."""
    brace = source.bare.find("{", start, end)
    if brace < 0:
        return
    for begin, stop in _parts(source, brace + 1, source.closing(brace) - 1):
        doc, at = _of_part(source, begin, stop)
        if doc:
            yield f"`{source.line(at, stop).partition(':')[0]}`: {doc}"
