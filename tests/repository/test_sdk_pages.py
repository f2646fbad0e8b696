"""The reference of the SDKs has every public name of the three languages, with a text, and its pages render."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tools.gen_sdk_reference import items, outputs
from tools.sdk_reference import python_reader, rust_reader, texts, typescript_reader
from tools.sdk_reference.areas import area_of, key_of, snake
from tools.sdk_reference.items import LANGUAGES, SEPARATORS, Item, SourceError
from tools.surface import read_rows

ROOT = Path(__file__).resolve().parents[2]
ITEMS = items(ROOT)
PAGES = {path.name: text for path, text in outputs(ROOT).items()}
STANDARD = "js/inferlet/globals.d.ts"
"""Its types are those of browsers and Node, whose members are not told."""

LEFT_OUT = ("constructor", "variant")
"""Kinds of members that have no names of their own in TypeScript."""

HIDDEN_IN_RUST = {
    "Place": "its module lends it to nobody",
    "run": "what `#[inferlet::main]` expands to",
    "tool_schema": "what `#[inferlet::tool]` expands to",
}
"""What says `pub` in the Rust SDK and is no API."""


def of_language(language: str) -> list[Item]:
    return [item for item in ITEMS if item.language == language]


def paths(found: Iterable[Item]) -> set[str]:
    """Every path of items and of their members."""
    return {other + each.path.removeprefix(item.path) for item in found for other in (item.path, *item.also) for each in item.everything}


def python_names() -> Iterator[str]:
    """What the lists `__all__` name, and the functions of classes, by the lines of their files."""
    for path in sorted((ROOT / python_reader.FOLDER).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        listed = re.search(r"^__all__ = (\[.*?\])", text, re.MULTILINE | re.DOTALL)
        public = set(ast.literal_eval(listed[1])) if listed else set()
        if path.stem == "__init__":
            yield from public
        owner = ""
        for line in text.splitlines():
            if (begun := re.match(r"class (\w+)", line)) is not None:
                owner = begun[1] if begun[1] in public else ""
            elif line[:1].strip():
                owner = ""
            method = re.match(r"    (?:async )?def ([a-z]\w*)\(", line)
            if owner and method is not None:
                yield f"{owner}.{method[1]}"
            if path.stem[0] != "_" and owner and begun:
                yield owner


def test_every_name_of_python_is_found() -> None:
    known = paths(of_language("python"))
    ends = {".".join(path.split(".")[-2:]) for path in known} | {path.rpartition(".")[2] for path in known}
    names = set(python_names())
    assert {"Context", "brle", "Context.fork", "Decoder.feed_output", "Tool.call"} <= names
    assert names <= ends, names - ends


def test_every_name_of_typescript_is_found() -> None:
    script = Path(__file__).with_name("exported_names.mjs")
    done = subprocess.run(["node", str(script)], check=True, capture_output=True, text=True)
    compiled = {name for name in json.loads(done.stdout) if not name.endswith(".then")}
    found = of_language("typescript")
    # What a class has of one that is not public stands with the class, and so do the cases of a union.
    own = [
        replace(item, members=tuple(each for each in item.members if each.source == item.source and each.kind not in LEFT_OUT))
        for item in found
    ]
    assert {"Context", "chat.Decoder", "Context.seqLen", "node:fs/promises.readFile", "console.log"} <= compiled
    assert compiled == paths(own)


def test_every_name_of_rust_is_found() -> None:
    found: dict[str, set[str]] = {}
    for item in of_language("rust"):
        for each in item.everything:
            found.setdefault(each.source, set()).add(each.name)
    anywhere = set().union(*found.values())
    declares = re.compile(r"^ *pub (?:(?:const|async|unsafe) )*(?:fn|struct|enum|trait|type|const|static) (\w+)", re.MULTILINE)
    missing = []
    for path in sorted((ROOT / rust_reader.CRATE / "src").rglob("*.rs")):
        name = path.relative_to(ROOT).as_posix()
        product = re.split(r"^#\[cfg\(test\)\]\nmod ", path.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[0]
        # The names in a macro are those of the files that use it.
        known = anywhere if "macro_rules! decoder" in product else found.get(name, set())
        missing += [f"{name}: {declared}" for declared in declares.findall(product) if declared not in known | HIDDEN_IN_RUST.keys()]
    assert {"fork", "Context"} <= found["rust/inferlet/src/context.rs"]
    assert missing == []


@pytest.mark.parametrize(("language", "of_rows"), [("python", "python"), ("typescript", "javascript"), ("rust", "rust")])
def test_every_name_of_the_surface_is_found(language: str, of_rows: str) -> None:
    rows = read_rows((ROOT / "tests/surface/rows.tsv").read_text(encoding="utf-8"))
    known = paths(of_language(language))
    if language == "python":
        # The layout of the package is a row: modules whose names stand at its root are not listed a second time.
        known = known | {path.stem for path in (ROOT / "python/inferlet").glob("*.py")}
    uses = re.compile(r"\.(__\w+__|_\w+)$")
    names = {name for row in rows if row.language == of_rows and row.is_present for name in row.names}
    missing = sorted(name for name in names if name not in known and not uses.search(name))
    assert len(names) > 50
    assert missing == []


def test_every_function_of_the_interfaces_is_found() -> None:
    page = PAGES["raw.md"]
    for path in sorted((ROOT / "wit/deps").glob("pie-*/*.wit")):
        text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        name = f"{path.parent.name.removeprefix('pie-')}::{path.stem.replace('-', '_')}"
        section = page.partition(f"## pie::{name}\n")[2].partition("\n## ")[0]
        functions = re.findall(r"([\w-]+): (?:static )?func\(", text)
        types = re.findall(r"\b(?:record|variant|enum|resource) ([\w-]+) \{", text)
        assert functions or types, path
        assert section.count("func(") == len(functions), path
        assert all(f" {name}`" in section for name in types), path


def test_the_index_and_a_page_have_every_name() -> None:
    index = PAGES["index.md"]
    links = dict(re.findall(r"\[`([^`]+)`\]\(([\w.-]+\.md#[^)\s]+)\)", index))
    for item in ITEMS:
        for each in item.everything:
            if item.name == "ErrorCode" and each is not item:
                continue
            is_made = each.kind == "constructor" and each.language != "rust"
            shown = each.path.rpartition(SEPARATORS[each.language])[0] if is_made else each.path
            assert shown in links, shown
            page, anchor = links[shown].split("#", 1)
            assert f'<a id="{anchor}"></a>' in PAGES[page], shown
            for signature in each.signature.split("; "):
                assert signature.replace("|", "\\|") in PAGES[page], signature


def test_every_name_has_a_text() -> None:
    told = [each for item in ITEMS for each in item.everything if each.kind != "constructor" and (item.source != STANDARD or each is item)]
    bare = [f"{each.source}: {each.path}" for each in told if not texts.parsed(each.doc, each.language).paragraphs]
    assert bare == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_renders(page: str) -> None:
    text = PAGES[page]
    html = MarkdownIt("commonmark").enable("table").render(text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert html.count("<tr>") == len(rows)
    widths = [
        {len(re.findall(r"<t[hd]>", row)) for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)}
        for table in re.findall(r"<table>.*?</table>", html, re.DOTALL)
    ]
    assert all(len(width) == 1 for width in widths)
    assert "`" not in re.sub(r"<code[ >].*?</code>", "", html, flags=re.DOTALL)
    anchors = re.findall(r'<a id="([^"]*)">', text)
    assert len(anchors) == len(set(anchors))


def test_links_lead_somewhere() -> None:
    folder = ROOT / "docs/reference/sdk"
    assert {path.name for path in folder.iterdir()} == PAGES.keys()
    broken = []
    for page, text in PAGES.items():
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            file, _, anchor = target.partition("#")
            is_here = f'<a id="{anchor}"></a>' in PAGES.get(file or page, "")
            if anchor and not is_here:
                broken.append(f"{page}: {target}")
            if file and file not in PAGES and not (folder / file).exists():
                broken.append(f"{page}: {target}")
    assert broken == []


def test_names_of_one_thing_stand_in_one_row() -> None:
    rows: dict[str, set[str]] = {}
    for item in ITEMS:
        rows.setdefault(key_of(item), set()).add(item.language)
    shared = ("Context", "Generator", "Sampler", "chat.Decoder", "McpSession", "Subscription", "JsonSchema", "session.receive")
    for key in (*shared, "brle.from_bools"):
        assert rows[key] == set(LANGUAGES), key


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("collectText", "collect_text"),
        ("topKTopP", "top_k_top_p"),
        ("TopKTopP", "top_k_top_p"),
        ("toJSONSchema", "to_json_schema"),
        ("seq_len", "seq_len"),
    ],
)
def test_words_of_names(name: str, words: str) -> None:
    assert snake(name) == words


def test_a_file_without_a_page_is_told() -> None:
    item = Item("python", "weather.today", "function", "def today() -> str", "The weather.", "python/inferlet/weather.py")
    with pytest.raises(SourceError, match=r"weather\.today of python/inferlet/weather\.py has no page .*add 'weather'"):
        area_of("weather.today", item)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def read_one(found: Iterable[Item], path: str) -> Item:
    return next(item for item in found if item.path == path)


PYTHON = '''"""The package."""
try:
    from inferlet.shapes import Shape
except ImportError:
    raise
from inferlet import shapes

__all__ = ["Shape", "shapes"]
'''
SHAPES = '''"""Shapes."""
from dataclasses import dataclass, field
__all__ = ["Round", "Shape", "area"]

class _Base:
    def __init__(self, raw: _Raw) -> None:
        self.n = 1
        """How many sides."""

    def turn(self, by: float = 0.5, *more: int, axis: str | None = None) -> Coroutine[Any, Any, "Shape"]:
        """Turns it."""

class Shape(_Base):
    """A shape."""
    spin = turn
    @property
    def size(self) -> int:
        """Its size."""
    @classmethod
    def made(cls, n: int) -> "Shape":
        """Makes one."""
    def _hidden(self) -> None: ...
    def __await__(self): ...

@dataclass(frozen=True)
class Round:
    """A round one."""
    radius: float
    name: str = field(default="", kw_only=True)
    """What it is called."""

async def area(shape: Shape) -> float:
    """Its area.

        area(shape)

    In metres.
    """
'''


def test_python_is_read(tmp_path: Path) -> None:
    root = write(tmp_path, {"python/inferlet/__init__.py": PYTHON, "python/inferlet/shapes.py": SHAPES})
    found = python_reader.read(root)
    shape = read_one(found, "Shape")
    assert (shape.also, shape.uses, shape.signature) == (("shapes.Shape",), ("await",), "class Shape")
    assert [(member.path, member.signature, member.doc) for member in shape.members] == [
        ("Shape.n", "n", "How many sides."),
        ("Shape.turn", "def turn(by: float = 0.5, *more: int, axis: str | None = None) -> Awaitable['Shape']", "Turns it."),
        ("Shape.spin", "spin = turn", "Another name of `turn`."),
        ("Shape.size", "size: int", "Its size."),
        ("Shape.made", "Shape.made(n: int) -> 'Shape'", "Makes one."),
    ]
    members = [(member.kind, member.signature) for member in read_one(found, "shapes.Round").members]
    assert members == [("constructor", "Round(radius: float, *, name: str = '')"), ("field", "name: str")]
    area = read_one(found, "shapes.area")
    assert area.signature == "async def area(shape: Shape) -> float"
    assert texts.parsed(area.doc, "python") == texts.Text(("Its area.", "In metres."), (("python", "area(shape)"),))


def test_a_name_of_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    root = write(tmp_path, {"python/inferlet/__init__.py": '__all__ = ["Gone"]\n'})
    with pytest.raises(SourceError, match=r"__init__\.py lists 'Gone' in __all__"):
        python_reader.read(root)


INDEX = """export { Shape, type Kind } from './shape.js';
export * as shapes from './shape.js';
"""
SHAPE = r"""/** Shapes. */

import { other } from './other.js';

const PATTERN = /["'{/]\/{/;
const TEXT = `a ${PATTERN.test('}') ? `{` : "'"} // no comment`;

/** Its kind. */
export type Kind =
  /** A round one. */
  | 'round'
  /** One with corners. */
  | { readonly type: 'corners'; readonly n: number };

/** @internal */
export function secret(): void {}

/** A shape. */
export class Shape<T extends { a: string } = { a: string }> implements Disposable {
  readonly #n: number;
  /** Its name. */
  readonly name: string = 'x';
  /** Makes one. */
  constructor(n: number);
  /** @internal */
  constructor(n: number, raw: object);
  constructor(n: number, raw?: object) {
    this.#n = n;
  }
  static {
    this.prototype.toString = () => '}';
  }
  /** Its sides. */
  get sides(): number {
    return this.#n;
  }
  /**
   * Turns it.
   * @throws InferletError `invalid-argument`
   */
  async turn(by = 0.5, how: { axis?: string } = {}): Promise<this> {
    return this;
  }
  /** Compares. */
  static same(a: Shape, b: Shape): { readonly same: boolean } {
    return { same: a === b };
  }
  [Symbol.dispose](): void {}
}
"""


def test_typescript_is_read(tmp_path: Path) -> None:
    folder = f"{typescript_reader.FOLDER}/src"
    files = {f"{folder}/index.ts": INDEX, f"{folder}/shape.ts": SHAPE, STANDARD: "declare function later(n?: number): void;\n"}
    found = typescript_reader.read(write(tmp_path, files))
    assert [item.path for item in found] == ["Shape", "Kind", "shapes", "later"]
    shape = found[0]
    assert (shape.also, shape.uses) == (("shapes.Shape",), ("using",))
    assert [(member.kind, member.signature) for member in shape.members] == [
        ("constructor", "new Shape(n: number)"),
        ("field", "name: string"),
        ("field", "sides: number"),
        ("method", "turn(by = 0.5, how: { axis?: string } = {}): Promise<this>"),
        ("method", "Shape.same(a: Shape, b: Shape): { readonly same: boolean }"),
    ]
    assert [(case.path, case.signature, case.doc) for case in found[1].members] == [
        ("Kind.round", "'round'", "A round one."),
        ("Kind.corners", "{ type: 'corners'; n: number }", "One with corners."),
    ]
    turned = texts.parsed(shape.members[3].doc, "typescript").paragraphs
    assert turned == ("Turns it.", "Throws `InferletError`: `invalid-argument`.")


def test_the_implementation_behind_overloads_is_left_out(tmp_path: Path) -> None:
    folder = f"{typescript_reader.FOLDER}/src"
    source = "/** Grows. */\nexport function grow(n: number): void;\nexport function grow(n: number, ...more: number[]): void {}\n"
    files = {f"{folder}/index.ts": "export { grow } from './shape.js';\n", f"{folder}/shape.ts": source, STANDARD: ""}
    (grow,) = typescript_reader.read(write(tmp_path, files))
    assert (grow.signature, grow.doc) == ("function grow(n: number): void", "Grows.")


def test_an_export_of_another_form_is_told(tmp_path: Path) -> None:
    folder = f"{typescript_reader.FOLDER}/src"
    files = {f"{folder}/index.ts": "export * from './shape.js';\n", f"{folder}/shape.ts": SHAPE, STANDARD: ""}
    with pytest.raises(SourceError, match=r"index\.ts has an export of another form"):
        typescript_reader.read(write(tmp_path, files))


def test_a_glob_of_rust_is_told(tmp_path: Path) -> None:
    folder = f"{rust_reader.CRATE}/src"
    files = {f"{folder}/lib.rs": "mod kinds;\npub use kinds::*;\n", f"{folder}/kinds.rs": KINDS, rust_reader.MACROS: ""}
    with pytest.raises(SourceError, match=r"lib\.rs lends `kinds::\*`"):
        rust_reader.read(write(tmp_path, files))


LIB = r"""//! The crate.
macro_rules! shape {
    ($(#[$doc:meta])* $raw:ty, $make:path) => {
        $(#[$doc])*
        pub struct Made {
            raw: $raw,
        }

        impl Made {
            /// A new one.
            pub fn new(by: &$crate::Kind) -> Self {
                $make(by, "}", '}')
            }
        }
    };
}

mod kinds;
pub mod made {
    //! What is made.
    shape! {
        /// A made one.
        raw::Thing, std::convert::identity
    }
}
#[doc(hidden)]
pub mod secret {
    pub fn none() {}
}

pub use kinds::{Kind, turn as spin};

/// Turns it.
///
/// # Errors
/// `invalid-argument` for a text.
///
/// ```no_run
/// # hidden();
/// turn("}");
/// ```
pub async fn half<'a, T>(
    kind: &'a crate::Kind,
) -> impl Future<Output = Result<T>> + use<T> {
    todo!()
}

pub(crate) fn inner() {}

#[cfg(test)]
mod tests {
    pub fn none() {}
}
"""
KINDS = r"""/// A kind.
#[derive(Clone)]
pub enum Kind {
    /// Round.
    Round,
    /// With corners.
    Corners {
        /// At least 3.
        n: u32,
        names: Vec<(u8, u8)>,
    },
}

impl Kind {
    /// Its most.
    pub const MOST: u32 = 3;

    fn own(&self) {}
}

impl From<u32> for Kind {
    fn from(_: u32) -> Self {
        Self::Round
    }
}

/// Turns.
pub fn turn() {}
"""


def test_rust_is_read(tmp_path: Path) -> None:
    folder = f"{rust_reader.CRATE}/src"
    found = rust_reader.read(write(tmp_path, {f"{folder}/lib.rs": LIB, f"{folder}/kinds.rs": KINDS, rust_reader.MACROS: ""}))
    assert sorted(item.path for item in found) == ["Kind", "half", "made", "made::Made", "spin"]
    kind = read_one(found, "Kind")
    assert kind.uses == ("From<u32>",)
    assert [(member.path, member.signature, member.doc) for member in kind.members] == [
        ("Kind::Round", "Round", "Round."),
        ("Kind::Corners", "Corners { n: u32, names: Vec<(u8, u8)> }", "With corners.\n\n`n`: At least 3."),
        ("Kind::MOST", "const MOST: u32", "Its most."),
    ]
    made = read_one(found, "made::Made")
    assert (made.doc, [member.signature for member in made.members]) == ("A made one.", ["fn new(by: &Kind) -> Self"])
    assert read_one(found, "spin").doc == "Another name of `kinds::turn`."
    half = read_one(found, "half")
    assert half.signature == "async fn half<'a, T>(kind: &'a Kind) -> impl Future<Output = Result<T>>"
    assert texts.parsed(half.doc, "rust") == texts.Text(("Turns it.", "Errors: `invalid-argument` for a text."), (("rust", 'turn("}");'),))
