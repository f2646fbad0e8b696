"""The tests that name rows of the surface, as pytest, cargo and node are told to run them and no others.

A command has a place for them: `{cargo CRATE}` for the tests of a Rust crate, `{cargo CRATE/src}` for those of its
library alone, `{node}` for those of the JavaScript SDK, `{pytest PATH ...}` for Python tests and vectors under the
paths; `PATH@python` takes the vectors of one language.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.surface import Claim, Row, SurfaceError

_PLACE = re.compile(r"\{(cargo|node|pytest)((?: [^ }]+)*)\}")
_VECTOR = "tests/vectors/test_vectors.py::test_vector"
# The names that vectors have of the languages of rows.
_OF_ROWS = {"python": "python", "javascript": "typescript", "rust": "rust"}
_INLINE = re.compile(r"^(?:pub )?mod (\w+) \{", re.MULTILINE)
_RUST_TEST = re.compile(r"#\[test\]\s(?:\s*(?://|#\[)[^\n]*\n)*\s*fn (\w+)")
_PASSED = re.compile(r"\b(\d+) passed\b|^\S pass (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Filled:
    """A command that runs tests which name rows."""

    command: str
    n_tests: int
    """So many tests pass at least where all is well."""


def of_areas(rows: Sequence[Row], claims: Iterable[Claim], areas: Sequence[str]) -> list[Claim]:
    """The claims of rows of some areas; `all` is every area. Raises SurfaceError where there is no such area."""
    known = list(dict.fromkeys(row.area for row in rows))
    for area in areas:
        if area not in (*known, "all"):
            raise SurfaceError(f"there is no area {area!r}; the areas are {', '.join(known)}, and all")
    wanted = {row.id for row in rows if "all" in areas or row.area in areas}
    return [claim for claim in claims if claim.row in wanted]


def fill(root: Path, command: str, claims: Sequence[Claim]) -> Filled | None:
    """The command with the tests in their place; none where there are none."""
    place = _PLACE.search(command)
    if place is None:
        raise SurfaceError(f"{command!r} has no place for tests, such as {{cargo rust/core}}")
    kind, paths = place[1], place[2].split()
    if kind == "cargo":
        own = list(dict.fromkeys(_rust(root, paths[0], claims)))
        targets = dict.fromkeys(f"--test {target}" if target else "--lib" for target, _ in own)
        n_tests, text = len(own), " ".join((*targets, "-- --exact", *dict.fromkeys(name for _, name in own)))
    elif kind == "node":
        # Of a title that is put together the part before the first value.
        titles = dict.fromkeys(claim.test.partition(": ")[2].partition("${")[0] for claim in claims if ".mjs: " in claim.test)
        pattern = r"\] (" + "|".join(map(re.escape, titles)) + ")"
        n_tests, text = len(titles), f"--test-name-pattern={shlex.quote(pattern)}"
    else:
        ids = dict.fromkeys(_python(paths, claims))
        n_tests, text = len(ids), " ".join(map(shlex.quote, ids))
    return Filled(command[: place.start()] + text + command[place.end() :], n_tests) if n_tests else None


def n_passed(printed: str) -> int:
    """How many tests passed, by what cargo, pytest or node printed."""
    return sum(int(cargo or node) for cargo, node in _PASSED.findall(printed))


def _python(paths: Iterable[str], claims: Iterable[Claim]) -> Iterator[str]:
    for path in paths:
        folder, _, language = path.partition("@")
        for claim in claims:
            if not claim.test.startswith(folder):
                continue
            if claim.test.endswith(".json"):
                for of in claim.languages or ():
                    if language in ("", of):
                        yield f"{_VECTOR}[{Path(claim.test).stem}-{_OF_ROWS[of]}]"
            elif "::" in claim.test and not language:
                yield claim.test


def _rust(root: Path, folder: str, claims: Iterable[Claim]) -> Iterator[tuple[str, str]]:
    """The file under `tests`, or nothing for the library, and the whole name of each test."""
    crate = folder.removesuffix("/src").removesuffix("/tests")
    for claim in claims:
        name, _, item = claim.test.partition(": ")
        if not name.startswith(f"{folder}/") or not name.endswith(".rs"):
            continue
        parts = Path(name).relative_to(crate).with_suffix("").parts
        target, modules = ("", parts[1:]) if parts[0] == "src" else (parts[1], parts[2:])
        modules = tuple(part for part in modules if part not in ("mod", "lib", "main"))
        for path in _named(Path(root, name).read_text(encoding="utf-8"), item):
            yield target, "::".join((*modules, *path))


def _named(text: str, item: str) -> Iterator[tuple[str, ...]]:
    """The tests of a source that an item is or has, each behind the module of the source that it stands in."""
    for test in _RUST_TEST.finditer(text):
        modules = [module for module in _INLINE.finditer(text, 0, test.start()) if "\n}" not in text[module.end() : test.start()]]
        path = (*(module[1] for module in modules), test[1])
        if item in path:
            yield path
