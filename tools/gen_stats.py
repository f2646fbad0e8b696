"""Writes what an engine counts, from the fields of `Stats` and `BusStats`.

It writes the tables in `docs/reference/stats.md` and the types in `python/pie/stats.py`.

`python tools/gen_stats.py` writes; `--check` writes nothing and fails where one is out of step.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import generated
from tools.generated import ROOT

SOURCE = ROOT / "rust" / "core" / "src" / "engine" / "stats.rs"
PAGE = ROOT / "docs" / "reference" / "stats.md"
TYPES = ROOT / "python" / "pie" / "stats.py"
BUS_SOURCE = ROOT / "rust" / "core" / "src" / "bus" / "stats.rs"
BEGIN = "<!-- Generated from rust/core/src/engine/stats.rs by tools/gen_stats.py; do not edit until the end of the table. -->"
BUS_BEGIN = "<!-- Generated from rust/core/src/bus/stats.rs by tools/gen_stats.py; do not edit until the end of the table. -->"
END = "<!-- End of the table. -->"

_FIELD = re.compile(r"((?:        /// .*\n)+)        pub (\w+): (\w+),")
_BUS_FIELD = re.compile(r"((?:    /// .*\n)+)    (\w+);")

TYPES_HEAD = '''"""What an engine counts: of a model, and of the messages between programs.

Generated from `rust/core/src/engine/stats.rs` and `rust/core/src/bus/stats.rs` by `tools/gen_stats.py`; do not edit.
"""

from __future__ import annotations

from typing import TypedDict


class Histogram(TypedDict):
    """How often values of which size were seen."""

    counts: list[int]
    """`counts[d]` values had `d` binary digits: less than `2**d`, and at least `2**(d - 1)` for `d > 0`.

    It ends with the largest.
    """
    sum: int
    """All values together."""
    max: int
    """The largest value; 0 without any."""


class ModelStats(TypedDict):
    """Counters and gauges of a model: one structure, taken at one moment."""
'''

BUS_HEAD = '''

class MessageStats(TypedDict):
    """What programs sent to each other so far, and what waits."""
'''


@dataclass(frozen=True)
class Field:
    """A figure."""

    name: str
    type: str
    """`int` or `Histogram`."""
    description: str


def fields() -> list[Field]:
    """The figures in their order."""
    found = _FIELD.findall(SOURCE.read_text(encoding="utf-8"))
    return [Field(name, "int" if kind == "u64" else kind, _text(comment)) for comment, name, kind in found]


def bus_fields() -> list[Field]:
    """The figures of messages in their order."""
    found = _BUS_FIELD.findall(BUS_SOURCE.read_text(encoding="utf-8"))
    return [Field(name, "int", _text(comment)) for comment, name in found]


def _text(comment: str) -> str:
    return " ".join(line.strip().removeprefix("/// ") for line in comment.splitlines())


def table(begin: str, every: list[Field]) -> str:
    """A table, with the lines that enclose it."""
    rows = "\n".join(f"| `{field.name}` | {'histogram: ' * (field.type != 'int')}{field.description} |" for field in every)
    return f"{begin}\n\n| name | what it is |\n|---|---|\n{rows}\n\n{END}"


def page() -> str:
    """The page with the tables anew. Raises SystemExit where it lacks the lines between which one stands."""
    text = PAGE.read_text(encoding="utf-8")
    for begin, every in ((BEGIN, fields()), (BUS_BEGIN, bus_fields())):
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(END)
        if not found:
            raise SystemExit(f"{PAGE} lacks the lines between which a table stands")
        text = before + table(begin, every) + after
    return text


def types() -> str:
    """The Python module."""
    return TYPES_HEAD + _members(fields()) + BUS_HEAD + _members(bus_fields())


def _members(every: list[Field]) -> str:
    return "".join(f"\n    {field.name}: {field.type}\n{generated.docstring(field.description, '    ')}\n" for field in every)


if __name__ == "__main__":
    sys.exit(generated.main({PAGE: page(), TYPES: types()}, source=str(SOURCE.relative_to(ROOT)), description=__doc__))
