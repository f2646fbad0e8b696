"""The pages of the reference: a table for each type and module, with a column for each language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tools import generated
from tools.sdk_reference import texts
from tools.sdk_reference.areas import AREAS, Area, area_of, key_of, member_key, stem
from tools.sdk_reference.items import LANGUAGES, SEPARATORS, TITLES, Item
from tools.sdk_reference.wit_reader import Interface, snake

NOTICE = "<!-- Generated from the sources of the SDKs by tools/gen_sdk_reference.py; do not edit. -->"
INDEX = "index"
NONE = "—"
SMALL = "Functions and small types"
CODES = "ErrorCode"
"""The type whose members have a page of their own."""
_VALUES: Mapping[str, str] = {"ctx": "Context", "out": "Output", "g": "Generator", "model": "Model", "tk": "Tokenizer"}
"""What texts call a value of a type."""
_SPOKEN = re.compile(r"^(?:inferlet(?:\.|::))?([\w.:]*\w)(?:\(.*\))?$")


@dataclass
class Entry:
    """A row: what a name is in each language."""

    key: str
    items: dict[str, list[Item]] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        """Takes a name of a language; several of one language stand in one cell."""
        self.items.setdefault(item.language, []).append(item)

    @property
    def every(self) -> Iterator[Item]:
        """Its names, in the order of the languages."""
        return (item for language in LANGUAGES for item in self.items.get(language, []))


@dataclass
class Section:
    """A type or a module, with its rows."""

    key: str
    head: Entry
    rows: dict[str, Entry] = field(default_factory=dict)

    def add(self, key: str, item: Item) -> None:
        """Takes a name into its row."""
        self.rows.setdefault(key, Entry(key)).add(item)


class Reference:
    """Every name in its place."""

    def __init__(self, items: Iterable[Item], interfaces: Mapping[str, Interface]) -> None:
        self._interfaces = interfaces
        self._sections: dict[str, dict[str, Section]] = {area.name: {} for area in AREAS}
        self._places: dict[tuple[str, str], str] = {}
        """By language and path, the page and the anchor of a name."""
        every = list(items)
        keyed = [(key_of(item), item) for item in every]
        pages = self._pages_of(keyed)
        with_members = {key for key, item in keyed if item.members}
        # A module that has no names of its own in the reference is a row.
        parents = {key.rpartition(".")[0] for key, _ in keyed}
        modules = {key for key, item in keyed if item.kind == "module" and key in parents}
        for key, item in keyed:
            self._place(key, item, pages[key], has_members=key in with_members, modules=modules)

    @staticmethod
    def _pages_of(keyed: Sequence[tuple[str, Item]]) -> dict[str, str]:
        """The page of each name: that of the first language that has it, in the order of the languages."""
        pages: dict[str, str] = {}
        for language in LANGUAGES:
            for key, item in keyed:
                if item.language == language:
                    pages.setdefault(key, area_of(key, item).name)
        return pages

    def _place(self, key: str, item: Item, page: str, *, has_members: bool, modules: set[str]) -> None:
        sections = self._sections[page]
        module = key.rpartition(".")[0]
        if has_members or key in modules:
            section = sections.setdefault(key, Section(key, Entry(key)))
            section.head.add(item)
        else:
            title = module if module in modules else ""
            section = sections.setdefault(title, Section(title, Entry(title)))
            section.add(key, item)
        for path in (item.path, *item.also):
            self._places[item.language, path] = f"{page}.md#{key}"
        if key == CODES:
            return
        for member in item.members:
            below = member_key(key, member)
            section.add(below, member)
            self._places[member.language, member.path] = f"{page}.md#{below}"

    def files(self) -> dict[str, str]:
        """The pages with their texts, by the names of their files."""
        pages = {area.name: self._page(area) for area in AREAS}
        return {f"{name}.md": text for name, text in {INDEX: self._index(), **pages}.items()}

    def entries(self, area: Area) -> Iterator[Entry]:
        """The rows of a page, in its order."""
        for section in self._ordered(area):
            if section.head.items:
                yield section.head
            yield from section.rows.values()

    def _ordered(self, area: Area) -> list[Section]:
        """By the files of the page, a type behind its module, what more languages have first.

        What stands alone comes last.
        """

        def rank(section: Section) -> tuple[bool, int, bool, int, int]:
            files = {stem(item.source) for item in section.head.every}
            place = next((index for index, file in enumerate(area.sources) if file in files), len(area.sources))
            n_languages = len(section.head.items)
            return not section.key, place, "." in section.key, -n_languages, -len(section.rows) if n_languages > 1 else 0

        return sorted(self._sections[area.name].values(), key=rank)

    def _page(self, area: Area) -> str:
        guides = ", ".join(f"[{name}](../../guide/{name}.md)" for name in area.guides)
        intro = f"{area.intro} In the guide: {guides}. [Every name](index.md)."
        parts = [NOTICE, f"# {area.title}", generated.wrapped(intro)]
        if area.name == "raw":
            parts += [self._interface(interface) for interface in self._interfaces.values()]
        parts += [self._section(area, section) for section in self._ordered(area)]
        return "\n\n".join(parts) + "\n"

    def _section(self, area: Area, section: Section) -> str:
        rows = [section.head, *section.rows.values()] if section.head.items else list(section.rows.values())
        languages = [language for language in LANGUAGES if any(language in row.items for row in rows)]
        title = section.key.removeprefix("globals.") or SMALL
        lines = [f"| {' | '.join(TITLES[language] for language in languages)} |", "|" + "---|" * len(languages)]
        lines += [self._row(area, row, languages) for row in rows]
        examples = [self._example(item, *example) for row in rows for item in row.every for example in _text(item).examples]
        note = ["The codes, with what to do: [error codes](../errors.md)."] if section.key == CODES else []
        return "\n\n".join([f"## {title}", *note, "\n".join(lines), *examples])

    def _row(self, area: Area, row: Entry, languages: Sequence[str]) -> str:
        cells = []
        anchor = f'<a id="{row.key}"></a>'
        for language in languages:
            items = row.items.get(language, [])
            cells.append("<br><br>".join(self._cell(area, item) for item in items) or NONE)
        return f"| {anchor}{' | '.join(cells)} |"

    def _cell(self, area: Area, item: Item) -> str:
        parts = [texts.code(signature) for signature in _signatures(item)]
        if item.uses:
            word = "Implements" if item.language == "rust" else "Works with"
            parts.append(f"{word} {', '.join(map(texts.code, item.uses))}.")
        if shown := [path for path in item.also if not path.startswith("prelude::")]:
            parts.append(f"Also {', '.join(map(texts.code, shown))}.")
        link = partial(self._link, area, item)
        said = [texts.markdown(paragraph, link) for paragraph in _text(item).paragraphs]
        return texts.cell("<br>".join([*parts, "<br><br>".join(said)]).removesuffix("<br>"))

    @staticmethod
    def _example(item: Item, language: str, code: str) -> str:
        return f"{TITLES[item.language]}, {texts.code(item.path)}:\n\n```{language}\n{code}\n```"

    def _link(self, area: Area, item: Item, spoken: str) -> str:
        """The link from the text of an item to a name in it; empty where that is none, or the item itself."""
        match = _SPOKEN.match(spoken)
        if match is None:
            return ""
        separator = SEPARATORS[item.language]
        name = match[1]
        first, dot, rest = name.partition(".")
        if first in _VALUES and dot:
            name = f"{_VALUES[first]}.{rest}"
        name = name.removeprefix("crate::").replace("::" if separator == "." else ".", separator)
        owner = item.path.rpartition(separator)[0]
        name = name.replace("Self::", f"{owner}::")
        if separator not in name and not name[:1].isupper() and f"[`{spoken}`]" not in item.doc:
            return ""
        # A name is looked for in the item, beside it, beside what holds it, and at last from the root.
        parts = item.path.split(separator)
        tried = [separator.join([*parts[:n], name]) for n in range(len(parts), -1, -1)]
        target = next((self._places[item.language, path] for path in tried if (item.language, path) in self._places), "")
        own = self._places.get((item.language, item.path), "")
        if target in {own, self._places.get((item.language, owner))}:
            return ""
        return target.removeprefix(f"{area.name}.md")

    def _interface(self, interface: Interface) -> str:
        path = f"{interface.package}::{snake(interface.name)}"
        lines = [f"## pie::{path}", generated.wrapped(f"{' '.join(interface.doc.split())} [Its file](../../../{interface.source})."), ""]
        table = ["| in the interface | what it is |", "|---|---|"]
        for found in interface.types:
            anchor = f'<a id="pie.{interface.package}.{interface.name}.{found.name}"></a>'
            cases = "".join(
                f"<br>`{name}{_typed(found.kind, kind)}`{': ' if text else ''}{_inline(text)}" for name, kind, text in found.cases
            )
            table.append(f"| {anchor}`{found.kind} {found.name}` | {texts.cell(_inline(found.doc) + cases)} |")
        for function in interface.functions:
            key = ".".join(part for part in (interface.package, interface.name, function.resource, function.name) if part)
            anchor = f'<a id="pie.{key}"></a>'
            owner = f"`{function.resource}` " if function.resource else ""
            table.append(f"| {anchor}{owner}`{texts.cell(function.text)}` | {texts.cell(_inline(function.doc))} |")
        return "\n".join([*lines[:1], "", lines[1], "", *table])

    def _index(self) -> str:
        pages = ["| page | names |", "|---|---|"]
        for area in AREAS:
            named = [section.key.removeprefix("globals.") for section in self._ordered(area) if section.key]
            pages.append(f"| [{area.title}]({area.name}.md) | {', '.join(map(texts.code, named))} |")
        rows = sorted(
            ((area, entry) for area in AREAS for entry in self.entries(area)), key=lambda pair: (pair[1].key.lower(), pair[1].key)
        )
        table = [f"| {' | '.join(TITLES[language] for language in LANGUAGES)} |", "|---|---|---|"]
        table += [self._index_row(area, entry) for area, entry in rows]
        return "\n\n".join([NOTICE, *_INDEX_HEAD, "\n".join(pages), "## Every name", "\n".join(table)]) + "\n"

    @staticmethod
    def _index_row(area: Area, entry: Entry) -> str:
        cells = []
        for language in LANGUAGES:
            items = entry.items.get(language, [])
            paths = dict.fromkeys([*map(_shown, items), *(path for item in items for path in item.also)])
            cells.append(", ".join(f"[`{path}`]({area.name}.md#{entry.key})" for path in paths) or NONE)
        return f"| {' | '.join(cells)} |"


_INDEX_HEAD = (
    "# Reference of the SDKs",
    generated.wrapped(
        "Every public name of the SDKs in Python, TypeScript (and JavaScript) and Rust, side by side, with its declaration and "
        "its text. It is generated from the sources: the docstrings, the comments `/** */` and `///`. The "
        "[guide](../../guide/programs.md) says how the parts go together, [error codes](../errors.md) what each error means."
    ),
    """\
- A name that a language lacks is —.
- Names of Python stand without `self`. `Awaitable[T]` is what is awaited for a `T`.
- In Rust a call that returns no `Result` keeps its first error: the next call that can fail on the same value, or on
  what derives from it, returns it.
- Shapes: `[V]` is a row as wide as the vocabulary. Token ids are whole numbers of 32 bits. Names end in their units.""",
)


def _shown(item: Item) -> str:
    """A path as the index shows it: a constructor by the name of its type."""
    if item.kind == "constructor" and item.language != "rust":
        return item.path.rpartition(".")[0]
    return item.path


def _text(item: Item) -> texts.Text:
    return texts.parsed(item.doc, item.language)


def _signatures(item: Item) -> list[str]:
    """Declarations, those of an overloaded function apart."""
    return re.split(rf"; (?=(?:[A-Z]\w*\.|(?:async )?function )?{re.escape(item.name)}\b)", item.signature)


def _inline(doc: str) -> str:
    return texts.markdown(" ".join(doc.split()), lambda _: "")


def _typed(kind: str, text: str) -> str:
    """The type behind a field or a case of the WIT."""
    if not text:
        return ""
    return f": {text}" if kind == "record" else f"({text})"
