"""The rows of the reference (`tests/surface/rows.tsv`), the tests that name them, and where the two disagree.

A test names the rows that it shows: a vector by its key `shows`, a Python test by `@pytest.mark.rows("PY-012")`, a Node
test by a title that begins with `[JS-024]`, a Rust test by the comment `// rows: RS-031` above it. Each takes a list of
ids apart by blanks, in which `JS-024..026` stands for three. CONTRIBUTING.md has the rules.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("python", "javascript", "rust")
ALL = "all"
"""The language of rows that hold in each of `LANGUAGES`."""
OTHERS = ("client", "command line")
"""What else rows are of; Python tests show these."""
STATES = ("present", "absent")
FIELDS = ("id", "language", "area", "state", "names", "row")

_ID = re.compile(r"[A-Z]+-\d+")
_PART = re.compile(r"([A-Z]+)-(\d+)(?:\.\.(\d+))?")
_TITLE = re.compile(r"""(['"`])\[([A-Z]+-\d[^\]]*)\] (.*?)\1""")
_RUST = re.compile(r"^\s*// rows: (.*)$")
_RUST_ITEM = re.compile(r"\b(?:fn|mod) (\w+)")
# The names that vectors and Python tests have of languages.
_OF_VECTORS = {"python": "python", "typescript": "javascript", "rust": "rust"}


class SurfaceError(Exception):
    """A file that cannot be read as rows, or a test that names them wrongly."""


@dataclass(frozen=True)
class Row:
    """A symbol, an option or a behaviour of the reference."""

    id: str
    language: str
    """One of `LANGUAGES`, `ALL` or `OTHERS`."""
    area: str
    state: str
    names: tuple[str, ...]
    """What has to be there for it, as paths from the root of the SDK; none where it is a behaviour."""
    text: str

    @property
    def is_present(self) -> bool:
        """Whether the product has it."""
        return self.state == "present"

    @property
    def needs(self) -> tuple[str, ...]:
        """The languages in which a test has to show it."""
        return LANGUAGES if self.language == ALL else (self.language,)


@dataclass(frozen=True)
class Claim:
    """A test says that it shows a row."""

    row: str
    test: str
    """Where the test is, for a reader."""
    languages: tuple[str, ...] | None
    """The languages in which the test runs; None: that of the row, for a Python test may run programs of any
    language.
    """


def read_rows(text: str) -> list[Row]:
    """The rows of a file. Raises SurfaceError for a line that is none."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line and not line.startswith("#")]
    if not lines or lines[0][1].split("\t") != list(FIELDS):
        raise SurfaceError(f"the first line of the rows must name the fields {', '.join(FIELDS)}")
    rows = [_row(number, line) for number, line in lines[1:]]
    twice = sorted({row.id for row in rows if sum(row.id == other.id for other in rows) > 1})
    if twice:
        raise SurfaceError(f"{', '.join(twice)}: an id is that of one row")
    return rows


def _row(number: int, line: str) -> Row:
    fields = line.split("\t")
    if len(fields) != len(FIELDS):
        raise SurfaceError(f"line {number} of the rows has {len(fields)} fields; expected {len(FIELDS)}")
    row = Row(fields[0], fields[1], fields[2], fields[3], tuple(fields[4].split()), fields[5])
    if not _ID.fullmatch(row.id):
        raise SurfaceError(f"line {number} of the rows: {row.id!r} is not an id, such as PY-012")
    if row.language not in (*LANGUAGES, ALL, *OTHERS):
        raise SurfaceError(f"{row.id}: {row.language!r} is not a language; expected one of {', '.join((*LANGUAGES, ALL, *OTHERS))}")
    if row.state not in STATES:
        raise SurfaceError(f"{row.id}: {row.state!r} is not a state; expected present or absent")
    return row


def ids(text: str, place: str) -> list[str]:
    """The ids of a list. Raises SurfaceError where it is none; `place` says where it stands."""
    found = []
    for part in text.split():
        match = _PART.fullmatch(part)
        if match is None:
            break
        kind, first, last = match.groups()
        found += [f"{kind}-{n:0{len(first)}}" for n in range(int(first), int(last or first) + 1)]
    else:
        if found:
            return found
    raise SurfaceError(f"{place}: {text!r} is not a list of rows, such as `JS-024..026 PY-012`")


def claims(root: Path) -> list[Claim]:
    """What every test under a folder says that it shows."""
    readers = (
        ("tests/vectors/*.json", claims_of_vector),
        ("tests/**/test_*.py", claims_of_python),
        ("tests/sdk_js/*.test.mjs", claims_of_node),
        ("rust/**/*.rs", claims_of_rust),
    )
    found = []
    for pattern, read in readers:
        for path in sorted(root.glob(pattern)):
            name = path.relative_to(root).as_posix()
            if "/target/" not in name and path.stem != "tsconfig":
                found += list(read(name, path.read_text(encoding="utf-8")))
    return found


def claims_of_vector(name: str, text: str) -> Iterator[Claim]:
    """Its key `shows` lists rows, which it shows in the languages that it runs in."""
    vector = json.loads(text)
    languages = tuple(_OF_VECTORS[language] for language in vector.get("languages", _OF_VECTORS))
    for row in ids(vector["shows"], name) if "shows" in vector else ():
        yield Claim(row, name, languages)


def claims_of_python(name: str, text: str) -> Iterator[Claim]:
    """The marks above its tests.

    A test that is parametrized by `language` runs in those; else the mark may name one.
    """
    tree = ast.parse(text)
    above = 0
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in _marks(node.decorator_list):
            above += 1
            named = tuple(str(ast.literal_eval(keyword.value)) for keyword in mark.keywords if keyword.arg == "language")
            test = f"{name}::{node.name}"
            languages = _parametrized(node.decorator_list)
            for row in ids(" ".join(str(ast.literal_eval(argument)) for argument in mark.args), test):
                yield Claim(row, test, languages or named or None)
    if above != sum(1 for _ in _marks([tree])):
        raise SurfaceError(f"{name}: a mark `rows` stands above no test")


def _parametrized(decorators: Iterable[ast.expr]) -> tuple[str, ...]:
    """The languages of `@pytest.mark.parametrize("language", LANGUAGES)`, or of a list of them; none without."""
    for node in decorators:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.parametrize":
            name, values = node.args[:2]
            if isinstance(name, ast.Constant) and name.value == "language":
                given = _OF_VECTORS if isinstance(values, ast.Name) else ast.literal_eval(values)
                return (*(_OF_VECTORS.get(language, language) for language in given), *OTHERS)
    return ()


def _marks(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rows":
                yield node


def claims_of_node(name: str, text: str) -> Iterator[Claim]:
    """A title that begins with ids in brackets."""
    for _, rows, title in _TITLE.findall(text):
        for row in ids(rows, f"{name}: {title}"):
            yield Claim(row, f"{name}: {title}", ("javascript",))


def claims_of_rust(name: str, text: str) -> Iterator[Claim]:
    """Comments above functions and modules. Raises SurfaceError where neither follows."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = _RUST.match(line)
        if found is None:
            continue
        item = next((item[1] for item in map(_RUST_ITEM.search, lines[number + 1 :]) if item), None)
        if item is None:
            raise SurfaceError(f"{name}:{number + 1}: the comment `rows` stands above no function and no module")
        for row in ids(found[1], f"{name}:{number + 1}"):
            yield Claim(row, f"{name}: {item}", ("rust",))


Counts = dict[tuple[str, str], int]
"""How many rows of an area are present in a language."""


def counts(rows: Iterable[Row]) -> Counts:
    """What is present, by area and language."""
    found: Counts = {}
    for row in rows:
        key = (row.area, row.language)
        found[key] = found.get(key, 0) + row.is_present
    return found


def read_counts(text: str) -> Counts:
    """The counts of a file. Raises SurfaceError for a line that is none."""
    found: Counts = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != 3 or not fields[2].isdecimal():
                raise SurfaceError(f"{line!r} is not a count: an area, a language and a number, apart by tabs")
            found[fields[0], fields[1]] = int(fields[2])
    return found


def faults(rows: Sequence[Row], claimed: Sequence[Claim], committed: Mapping[tuple[str, str], int]) -> list[str]:
    """Where rows, tests and the committed counts disagree, a line each."""
    known = {row.id: row for row in rows}
    shown: dict[str, set[str]] = {}
    found = []
    for claim in claimed:
        row = known.get(claim.row)
        if row is None:
            found.append(f"{claim.test} names {claim.row}, which is not a row")
            continue
        if not row.is_present:
            found.append(f"{claim.test} shows {row.id}, which is absent: {row.text}")
        in_languages = set(_shown_in(claim, row))
        if not in_languages:
            runs_in = " and ".join(claim.languages or ())
            found.append(f"{claim.test} names {row.id} of {row.language}, but runs in {runs_in}")
        shown.setdefault(row.id, set()).update(in_languages)
    for row in rows:
        missing = [language for language in row.needs if language not in shown.get(row.id, ())]
        if row.is_present and missing:
            found.append(f"{row.id} is present, and no test in {' or '.join(missing)} shows it: {row.text}")
    now = counts(rows)
    for (area, language), n in committed.items():
        n_now = now.get((area, language), 0)
        if n_now < n:
            found.append(f"{area} in {language}: {n_now} rows are present, {n} were")
    return found


def _shown_in(claim: Claim, row: Row) -> Iterable[str]:
    if claim.languages is not None:
        return [language for language in row.needs if language in claim.languages]
    return ("python",) if row.language == ALL else row.needs
