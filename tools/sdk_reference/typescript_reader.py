"""Reads the public names of the TypeScript SDK from its sources.

Of the language it knows what declarations are made of: `export` and `declare` before `class`, `interface`, `type`,
`function`, `const` and `namespace`, the members of classes and interfaces, the cases of unions, and comments `/** */`
before each of them. What is private or `@internal` is left out. `src/index.ts` says what is public; `globals.d.ts` is
public as a whole. `tests/repository/test_sdk_pages.py` compares what is found with what the compiler finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.sdk_reference.items import Item, SourceError
from tools.sdk_reference.masking import Comment, Masked, blanked

FOLDER = "js/inferlet"
INDEX = "index"
GLOBALS = f"{FOLDER}/globals.d.ts"
_USES = {
    "[Symbol.dispose]": "using",
    "[Symbol.asyncDispose]": "await using",
    "[Symbol.asyncIterator]": "for await",
    "[Symbol.iterator]": "for",
}
_DECLARATION = re.compile(
    r"^[ ]*(?P<lead>(?:(?:export|declare|default|abstract|async)\s+)*)"
    r"(?P<kind>class|interface|type|function\*?|const|let|module)\s+(?P<name>[\w$]+|'[^']*')",
    re.MULTILINE,
)
_REEXPORT = re.compile(
    r"^export\s+(?:type\s+)?(?:\*\s+as\s+(?P<module>\w+)|\{(?P<names>[^}]*)\})\s+from\s+'\./(?P<file>[\w-]+)\.js';", re.MULTILINE
)
_MEMBER = re.compile(
    r"(?P<lead>(?:(?:private|protected|public|readonly|static|declare|abstract|override|async|get|set)\s+)*)\*?(?P<name>#?[\w$]+|\[[\w.]+\]|'[^']*')(?P<optional>\?)?"
)
_REGEX_BEFORE = "(,=:[!&|?{};\n"
_TYPE_BEFORE = (":", "|", "&", "<", "(", ",", "=>", "=")


def read(root: Path) -> list[Item]:
    """Every public name: those of the package in the order of its index, then the globals."""
    return _Reader(root).items()


def masked(text: str) -> Masked:
    """A source in TypeScript."""
    code, bare = list(text), list(text)
    comments: list[Comment] = []
    place = 0
    while place < len(text):
        end, is_comment = _token(text, place)
        if end == place:
            place += 1
            continue
        part = text[place:end]
        bare[place:end] = blanked(part)
        if is_comment:
            code[place:end] = blanked(part)
            if part.startswith("/**") and len(part) > len("/***/"):
                comments.append(Comment(place, end, _text_of(part)))
        else:
            bare[place], bare[end - 1] = "'", "'"
        place = end
    return Masked("".join(code), "".join(bare), tuple(comments))


def _token(text: str, place: int) -> tuple[int, bool]:
    """The end of a comment, a string or a regular expression that begins here, and whether it is a comment."""
    character = text[place]
    if text.startswith("//", place):
        end = text.find("\n", place)
        return (len(text) if end < 0 else end), True
    if text.startswith("/*", place):
        return text.index("*/", place) + 2, True
    if character in "'\"":
        found = re.compile(rf"{character}(?:\\.|[^{character}\\\n])*{character}").match(text, place)
        return (found.end() if found else place), False
    if character == "`":
        return _end_of_template(text, place), False
    if character == "/" and text[:place].rstrip(" ")[-1:] in _REGEX_BEFORE:
        found = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/\w*").match(text, place)
        return (found.end() if found else place), False
    return place, False


def _end_of_template(text: str, start: int) -> int:
    place = start + 1
    while place < len(text):
        if text[place] == "\\":
            place += 2
        elif text[place] == "`":
            return place + 1
        elif text.startswith("${", place):
            place = _end_of_hole(text, place + 2)
        else:
            place += 1
    raise SourceError(f"the template at {start} is not closed")


def _end_of_hole(text: str, place: int) -> int:
    depth = 1
    while depth:
        end, _ = _token(text, place)
        if end > place:
            place = end
            continue
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        place += 1
    return place


def _text_of(comment: str) -> str:
    """The text of a comment `/** */`."""
    lines = [re.sub(r"^\s*\* ?", "", line) for line in comment[3:-2].strip().splitlines()]
    return "\n".join(line.rstrip() for line in lines).strip()


@dataclass
class _Declaration:
    """What stands at the top of a file, or in a module that it declares."""

    kind: str
    name: str
    source: Masked
    start: int
    """Where the declaration begins, behind `export` and `declare`."""
    behind: int
    """Behind its name."""
    doc: str
    file: str
    is_exported: bool

    @property
    def is_internal(self) -> bool:
        return "@internal" in self.doc


@dataclass
class _File:
    path: str
    source: Masked
    declared: dict[str, _Declaration] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What it says of itself: a comment at the very beginning, which an import follows and no declaration."""
        first = self.source.comments[:1]
        return first[0].text if first and not self.source.bare[: first[0].start].strip() else ""


class _Reader:
    def __init__(self, root: Path) -> None:
        self._files = {
            path.stem: _parse(path, root) for path in sorted((root / FOLDER / "src").glob("*.ts")) if not path.name.endswith(".d.ts")
        }
        self._globals = _parse(root / GLOBALS, root)

    def items(self) -> list[Item]:
        return [*self._of_index(), *self._of_globals()]

    def _of_index(self) -> Iterator[Item]:
        found: dict[tuple[str, str], Item] = {}
        index = self._files[INDEX]
        exports = list(_REEXPORT.finditer(index.source.code))
        if len(exports) != len(re.findall(r"^export\b", index.source.bare, re.MULTILINE)):
            raise SourceError(f"{index.path} has an export of another form than `export {{ names }}` and `export * as name` from a file")
        for match in exports:
            for name, own in _pairs(match["names"] or ""):
                found[match["file"], name] = self._item(self._declaration(match["file"], name), own)
        for match in exports:
            if match["module"] is None:
                continue
            file = self._files[match["file"]]
            found[match["file"], ""] = Item("typescript", match["module"], "module", match["module"], file.text, file.path)
            for name, declaration in file.declared.items():
                path = f"{match['module']}.{name}"
                if not declaration.is_exported or declaration.is_internal:
                    continue
                known = found.get((match["file"], name))
                found[match["file"], name] = self._item(declaration, path) if known is None else replace(known, also=(path,))
        return iter(found.values())

    def _of_globals(self) -> Iterator[Item]:
        for name, declaration in self._globals.declared.items():
            if declaration.kind == "module":
                yield from self._of_module(declaration)
            else:
                yield self._item(declaration, name)

    def _of_module(self, declaration: _Declaration) -> Iterator[Item]:
        module = declaration.name.strip("'")
        yield Item("typescript", module, "module", module, declaration.doc, declaration.file)
        source = declaration.source
        begin = _body(declaration)
        seen: set[str] = set()
        for inner in _declarations(source, begin + 1, source.closing(begin) - 1, declaration.file, indent="  "):
            # An overloaded function is declared several times, and is one item.
            if inner.name not in seen:
                seen.add(inner.name)
                yield self._item(inner, f"{module}.{inner.name}")

    def _declaration(self, file: str, name: str) -> _Declaration:
        try:
            return self._files[file].declared[name]
        except KeyError:
            raise SourceError(f"{FOLDER}/src/{INDEX}.ts exports {name!r}, which {file}.ts does not declare") from None

    def _item(self, declaration: _Declaration, path: str) -> Item:
        match declaration.kind:
            case "class" | "interface":
                return self._class(declaration, path)
            case "type":
                return _alias(declaration, path)
            case "function" | "function*":
                signature = "; ".join(_functions(declaration))
                return Item("typescript", path, "function", signature, declaration.doc, declaration.file)
        return _value(declaration, path)

    def _class(self, declaration: _Declaration, path: str) -> Item:
        members: dict[str, Item] = {}
        uses: list[str] = []
        line = list(self._line(declaration))
        event = re.search(r"\bextends EventDecoder<(\w+)>", declaration.source.bare[declaration.start : _body(declaration)])
        for each in reversed(line):
            for member in _members(each, declaration.name, path):
                if event is not None and each is not declaration:
                    # The class above calls what a decoder gives `E`.
                    member = replace(member, signature=re.sub(r"\bE\b", event[1], member.signature))  # noqa: PLW2901
                name = member.path.removeprefix(f"{path}.")
                if name in _USES or name == "then":
                    use = _USES.get(name, "await")
                    uses += [use] if use not in uses else []
                else:
                    members[member.path] = member
        made = members.pop(f"{path}.constructor", None)
        ordered = ([made] if made is not None else []) + list(members.values())
        source, begin = declaration.source, _body(declaration)
        head = source.line(declaration.start, begin)
        head = re.sub(r"\bimplements Places\b", "", head)
        head = re.sub(r"\bextends EventDecoder<\w+>", "", re.sub(r"\bextends Handle\b", "", head)).strip()
        return Item("typescript", path, "type", re.sub(r"\s+", " ", head), declaration.doc, declaration.file, tuple(ordered), tuple(uses))

    def _line(self, declaration: _Declaration) -> Iterator[_Declaration]:
        """A class, and the classes of the SDK above it that are not public themselves."""
        yield declaration
        head = declaration.source.bare[declaration.behind : _body(declaration)]
        found = re.search(r"\bextends\s+(\w+)", head)
        if found is None:
            return
        for file in self._files.values():
            above = file.declared.get(found[1])
            if above is not None and above.kind == "class" and above.name in {"EventDecoder", "Handle"}:
                yield from self._line(above)


def _pairs(names: str) -> Iterator[tuple[str, str]]:
    for part in names.split(","):
        words = part.split()
        if words:
            kept = words[1:] if words[0] == "type" else words
            yield kept[0], kept[-1]


def _parse(path: Path, root: Path) -> _File:
    name = path.relative_to(root).as_posix()
    source = masked(path.read_text(encoding="utf-8"))
    file = _File(name, source)
    for declaration in _declarations(source, 0, len(source.bare), name):
        known = file.declared.get(declaration.name)
        if known is None or (known.kind == "interface" and declaration.kind == "class"):
            # An interface of the same name says what the class is besides.
            file.declared[declaration.name] = declaration
    return file


def _declarations(source: Masked, start: int, end: int, file: str, indent: str = "") -> Iterator[_Declaration]:
    place = start
    while (match := _DECLARATION.search(source.code, place, end)) is not None:
        first = match.start("lead") if match["lead"] else match.start("kind")
        begins_line = source.code[source.code.rfind("\n", 0, first) + 1 : first] == indent
        if not begins_line or source.bare[first] == " ":
            place = match.end()
            continue
        comment = source.comment_before(first)
        is_exported = "export" in match["lead"] or file == GLOBALS
        start_of_it = match.start("kind") if "abstract" not in match["lead"] else source.code.index("abstract", first)
        if "async" in match["lead"]:
            start_of_it = source.code.index("async", first)
        yield _Declaration(
            match["kind"], match["name"], source, start_of_it, match.end(), comment.text if comment else "", file, is_exported
        )
        place = _end(match["kind"], source, match.end())


def _end(kind: str, source: Masked, behind: int) -> int:
    if kind in {"class", "interface", "module"}:
        return source.closing(source.end_of(behind, "{"))
    if kind in {"function", "function*"}:
        end, has_body = _end_of_signature(source, behind)
        return source.closing(end) if has_body else end
    return source.end_of(behind, ";") + 1


def _body(declaration: _Declaration) -> int:
    """The place of the brace behind which the members stand: none of those in `<>`, which may bound a parameter."""
    depth = 0
    for place in range(declaration.behind, len(declaration.source.bare)):
        character = declaration.source.bare[place]
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "{" and depth == 0:
            return place
    raise SourceError(f"{declaration.file}: {declaration.name} has no members")


def _end_of_signature(source: Masked, behind: int) -> tuple[int, bool]:
    """Where the parameters and the type behind them end, and whether a body follows. It begins behind the name."""
    place = source.closing(source.bare.index("(", behind))
    while source.bare[place] != ";":
        if source.bare[place] == "{":
            if not source.bare[:place].rstrip().endswith(_TYPE_BEFORE):
                return place, True
            place = source.closing(place)
        elif source.bare[place] in "([":
            place = source.closing(place)
        else:
            place += 1
    return place, False


def _functions(declaration: _Declaration) -> Iterator[str]:
    """The signatures of a function: several where it is overloaded."""
    source = declaration.source
    pattern = re.compile(rf"^[ ]*(?:export |declare )*(?P<it>(?:async )?function\*? {re.escape(declaration.name)}\b)", re.MULTILINE)
    found = [(match.start("it"), *_end_of_signature(source, match.end())) for match in pattern.finditer(source.bare)]
    for begin, end, has_body in found:
        # The implementation behind overloads is none of them.
        if not has_body or len(found) == 1:
            yield source.line(begin, end)


def _value(declaration: _Declaration, path: str) -> Item:
    source = declaration.source
    end = source.end_of(declaration.behind, ";")
    begin = declaration.behind
    if source.bare[begin] == ":" and source.bare[begin:end].lstrip(": \n").startswith("{"):
        members = tuple(_members(declaration, declaration.name, path))
        return Item("typescript", path, "value", f"const {declaration.name}", declaration.doc, declaration.file, members)
    equals = _equals(source, begin, end)
    typed = source.line(begin, equals)
    given = source.line(equals + 1, end) if equals < end else ""
    # A name for another one is shown as it is, a long value is not.
    signature = f"const {declaration.name}{typed}" if typed or not re.fullmatch(r"[\w.]+", given) else f"const {declaration.name} = {given}"
    return Item("typescript", path, "value", signature, declaration.doc, declaration.file)


def _equals(source: Masked, begin: int, end: int) -> int:
    """The place of the sign behind which a value stands; the end where there is none."""
    place = begin
    while place < end:
        place = min(source.end_of(place, "="), end)
        if source.bare[place : place + 2] != "=>":
            return place
        place += 2
    return end


def _alias(declaration: _Declaration, path: str) -> Item:
    """A type by another name; the documented cases of a union are its members."""
    source = declaration.source
    end = source.end_of(declaration.behind, ";")
    members = tuple(_cases(declaration, end, path))
    signature = f"type {declaration.name}" if members else re.sub(r"= \| ", "= ", source.line(declaration.start, end))
    return Item("typescript", path, "type", signature, declaration.doc, declaration.file, members)


def _cases(declaration: _Declaration, end: int, path: str) -> Iterator[Item]:
    source, place = declaration.source, declaration.behind
    while (place := source.end_of(place, "|")) < end:
        comment = source.comment_before(place)
        following = min(source.end_of(place + 1, "|"), end)
        named = re.search(r"type: '([\w-]+)'|^\|\s*'([\w-]+)'\s*$", source.code[place:following].strip())
        if comment is not None and comment.start > declaration.behind and named is not None:
            name = named[1] or named[2]
            signature = source.line(place + 1, following).strip()
            yield Item(
                "typescript",
                f"{path}.{name}",
                "variant",
                re.sub(r"^\((.*)\)$", r"\1", signature).replace("readonly ", ""),
                comment.text,
                declaration.file,
            )
        place += 1


def _members(declaration: _Declaration, owner: str, path: str) -> Iterator[Item]:
    source = declaration.source
    begin = _body(declaration)
    place, end = begin + 1, source.closing(begin) - 1
    seen: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    kinds: dict[str, str] = {}
    with_body: set[str] = set()
    while True:
        place = _skip(source, place, end)
        if place >= end:
            break
        if source.bare.startswith("static {", place):
            place = source.closing(place + len("static "))
            continue
        match = _MEMBER.match(source.bare, place)
        if match is None:
            raise SourceError(f"{declaration.file}: what is {source.line(place, place + 40)!r} in {declaration.name}?")
        comment = source.comment_before(place)
        text = comment.text if comment is not None and comment.start > begin else ""
        is_hidden = match["name"].startswith("#") or "private" in match["lead"] or "protected" in match["lead"] or "@internal" in text
        behind, signature, kind, has_body = _member(source, match, owner)
        name = source.code[match.start("name") : match.end("name")].strip("'")
        # The implementation behind overloads is none of them.
        if not is_hidden and "set " not in match["lead"] and not (has_body and name in seen and name not in with_body):
            seen.setdefault(name, []).append(signature)
            texts[name] = texts.get(name) or text
            kinds[name] = kind
            if has_body:
                with_body.add(name)
        elif is_hidden and name == "constructor" and not has_body:
            seen.setdefault(name, [])
        place = behind
    for name, signatures in seen.items():
        if signatures:
            yield Item("typescript", f"{path}.{name}", kinds[name], "; ".join(signatures), texts[name], declaration.file)


def _skip(source: Masked, place: int, end: int) -> int:
    while place < end and source.bare[place] in " \n;,":
        place += 1
    return place


def _member(source: Masked, match: re.Match[str], owner: str) -> tuple[int, str, str, bool]:
    """Where a member ends, its signature, its kind, and whether it has a body."""
    behind, name = match.end(), source.code[match.start("name") : match.end("name")]
    # As it is called: of the class.
    lead = f"{owner}." if re.search(r"\bstatic\b", match["lead"]) else ""
    if source.bare[behind] in "(<":
        end, has_body = _end_of_signature(source, behind)
        following = source.closing(end) if has_body else end + 1
        if "get " in match["lead"]:
            return following, f"{lead}{name}{source.line(source.closing(behind), end)}", "field", has_body
        if name == "constructor":
            return following, f"new {owner}{source.line(behind, end)}", "constructor", has_body
        returned = re.sub(r": this$", f": {owner}", source.line(behind, end))
        return following, f"{lead}{name}{match['optional'] or ''}{returned}", "method", has_body
    end = source.end_of(behind, ";")
    equals = _equals(source, behind, end)
    typed = source.line(behind, equals)
    return end + 1, f"{lead}{name}{match['optional'] or ''}{typed}", "field", False
