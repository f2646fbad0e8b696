"""Writes what others than the engine know of the layout of batches, from the layout that the engine writes.

These are the tables of `docs/reference/driver.md`, the constants of the kernels, and the constants and arrays that
Python sees. `python tools/gen_driver_docs.py` writes; `--check` writes nothing and fails where one is out of step.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import generated
from tools.generated import ROOT

LAYOUT = ROOT / "rust" / "core" / "src" / "batch" / "layout.rs"
PAGE = ROOT / "docs" / "reference" / "driver.md"
KERNELS = ROOT / "rust" / "kernels" / "src" / "arena" / "layout.rs"
PYTHON = ROOT / "python" / "pie" / "batch_layout.py"
SOURCE = f"Generated from {LAYOUT.relative_to(ROOT)} by tools/gen_driver_docs.py"
BEGIN = f"<!-- {SOURCE}; do not edit the tables. -->"
END = "<!-- End of the tables. -->"

_VARIANT = re.compile(r"((?:    /// .*\n)+)    (\w+)(?: = (\d+))?,")
_DESCRIPTION = re.compile(r"`(\[[^`]*\])` (.*)")
_CONSTANT = re.compile(r"const (\w+): \w+ = (\w+);")


_CLASS = '''class BatchArrays:
    """The arrays of a batch by name. They are views and read-only."""

    __slots__ = ()

    def array(self, name: str) -> U32:
        """The words of the array of that name of `ARRAYS`."""
        raise NotImplementedError
'''


@dataclass(frozen=True)
class Named:
    """A word of the header, an array, or a word that stands for something."""

    name: str
    """As Python names it."""
    value: int
    shape: str
    description: str


def constants() -> dict[str, int]:
    """The constants of the layout."""
    return {name: int(value.replace("_", ""), 0) for name, value in _CONSTANT.findall(_layout())}


def variants(enum: str) -> list[Named]:
    """What an enumeration of the layout names, in its order."""
    found = re.search(rf"pub enum {enum} \{{\n(.*?)\n\}}", _layout(), re.DOTALL)
    if found is None:
        raise SystemExit(f"{LAYOUT} has no enum {enum}")
    return list(_variants(found[1] + "\n"))


def _variants(body: str) -> Iterator[Named]:
    value = -1
    for comment, variant, number in _VARIANT.findall(body):
        value = int(number) if number else value + 1
        text = " ".join(line.strip().removeprefix("/// ") for line in comment.splitlines())
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", variant).lower()
        shaped = _DESCRIPTION.fullmatch(text)
        shape, description = (shaped[1], shaped[2]) if shaped else ("", text)
        yield Named(name, value, shape, description[0].upper() + description[1:])


def _layout() -> str:
    return LAYOUT.read_text(encoding="utf-8")


def tables() -> str:
    """The tables of the page, with the lines that enclose them."""
    known = constants()
    first, width = known["FIELDS_AT"], known["HEADER_WORDS"]
    spoken = {"magic": f'`{known["MAGIC"]:#010x}`, "PIEB".', "version": f"Version of the layout: {known['VERSION']}."}
    header = [_row(_words(word), spoken.get(word.name, word.description)) for word in variants("Head")]
    arrays = [_row(str(it.value), f"`{it.name}`", f"`{it.shape}`", it.description) for it in variants("Field")]
    lines = [
        BEGIN,
        "",
        "| word | what |",
        "|---|---|",
        *header,
        _row(f"{first} + 2f, {first + 1} + 2f", "First word and length in words of array f of the table below."),
        _row(f"{width} on", "The arrays."),
        "",
        f"Words below {width} that are not named are 0.",
        "",
        "| f | array | shape | what it holds |",
        "|---|---|---|---|",
        *arrays,
        "",
        END,
    ]
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _words(word: Named) -> str:
    """The words of the header that hold a value: two where it is a pair."""
    return f"{word.value}, {word.value + 1}" if word.shape else str(word.value)


def page() -> str:
    """The page with the tables anew. Raises SystemExit where it lacks the lines between which they stand."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise SystemExit(f"{PAGE} lacks the lines between which the tables stand")
    return before + tables() + after


def kernels() -> str:
    """What the kernels know of the layout."""
    known = constants()
    lines = [
        f"//! The layout of a batch. {SOURCE}; do not edit it.",
        "",
        "#![allow(dead_code)] // A model needs a part of it.",
        "",
        f"pub(super) const MAGIC: u32 = {known['MAGIC']:#010x};".replace("0x4245", "0x4245_"),
        f"pub(super) const VERSION: u32 = {known['VERSION']};",
        f"pub(super) const HEADER_WORDS: usize = {known['HEADER_WORDS']};",
        f"pub(super) const FIELDS_AT: usize = {known['FIELDS_AT']};",
        *(f"pub(super) const KEEP_{keep.name.upper()}: u32 = {keep.value};" for keep in variants("Keep")),
    ]
    for module, enum, what in (("head", "Head", "Words of the header."), ("array", "Field", "Arrays, by their number.")):
        lines += ["", f"/// {what}", f"pub(super) mod {module} {{"]
        lines += [f"    pub(in super::super) const {it.name.upper()}: usize = {it.value};" for it in variants(enum)]
        lines += ["}"]
    return "\n".join(lines) + "\n"


def python() -> str:
    """What Python knows of the layout."""
    known = constants()
    lines = [
        f'"""The layout of a batch. {SOURCE}; do not edit it."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TypeAlias",
        "",
        "import numpy as np",
        "import numpy.typing as npt",
        "",
        "U32: TypeAlias = npt.NDArray[np.uint32]",
        "U64: TypeAlias = npt.NDArray[np.uint64]",
        "",
        f"MAGIC = {known['MAGIC']:#010x}",
        f"LAYOUT_VERSION = {known['VERSION']}",
        f"HEADER_WORDS = {known['HEADER_WORDS']}",
        f"FIELDS_AT = {known['FIELDS_AT']}",
        '"""Where the pairs of first word and length begin."""',
    ]
    for keep in variants("Keep"):
        lines += [f"KEEP_{keep.name.upper()} = {keep.value}", f'"""In `row_keep`: {keep.description[0].lower()}{keep.description[1:]}"""']
    lines += [""]
    for word in variants("Head"):
        lines += [f"HEAD_{word.name.upper()} = {word.value}"]
    names = [f'    "{array.name}",' for array in variants("Field")]
    lines += ["", "ARRAYS = (", *names, ")", '"""The arrays in their order."""', "", "", _CLASS]
    for array in variants("Field"):
        lines += [*_property(array), ""]
    return "\n".join(lines[:-1]) + "\n"


def _property(array: Named) -> list[str]:
    """The array as a property: pairs of words are 64-bit values, rows of more words are rows."""
    words = re.search(r", (\d+)\]$", array.shape)
    wide = words is not None and words[1] == "2"
    value = f'self.array("{array.name}")' + ("" if words is None else '.view("<u8")' if wide else f".reshape(-1, {words[1]})")
    shape = array.shape.replace(", 2]", "]") if wide else array.shape
    return [
        "    @property",
        f"    def {array.name}(self) -> {'U64' if wide else 'U32'}:",
        f'        """{"uint64" if wide else "uint32"} {shape}.',
        "",
        generated.wrapped(array.description, "        "),
        '        """',
        f"        return {value}",
    ]


if __name__ == "__main__":
    files = {PAGE: page(), KERNELS: kernels(), PYTHON: python()}
    sys.exit(generated.main(files, source=str(LAYOUT.relative_to(ROOT)), description=__doc__))
