"""Writes the table of the arena's arrays in `docs/reference/driver.md` from the layout that the engine writes.

`python tools/gen_driver_docs.py` writes; `--check` writes nothing and fails where the page is out of step.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import generated
from tools.generated import ROOT

LAYOUT = ROOT / "rust" / "core" / "src" / "batch" / "layout.rs"
PAGE = ROOT / "docs" / "reference" / "driver.md"
BEGIN = "<!-- Generated from rust/core/src/batch/layout.rs by tools/gen_driver_docs.py; do not edit the table. -->"
END = "<!-- End of the table. -->"

_ENUM = re.compile(r"pub enum Field \{\n(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"((?:    /// .*\n)+)    (\w+)(?: = \d+)?,")
_DESCRIPTION = re.compile(r"`(\[[^`]*\])` (.*)")


@dataclass(frozen=True)
class Field:
    """An array of the arena."""

    name: str
    """As Python names it."""
    shape: str
    description: str


def fields() -> list[Field]:
    """The arrays in the order of the layout."""
    found = _ENUM.search(LAYOUT.read_text(encoding="utf-8"))
    assert found is not None, f"{LAYOUT} has no enum Field"
    return [_field(comment, name) for comment, name in _FIELD.findall(found[1] + "\n")]


def _field(comment: str, variant: str) -> Field:
    text = " ".join(line.strip().removeprefix("/// ") for line in comment.splitlines())
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", variant).lower()
    shaped = _DESCRIPTION.fullmatch(text)
    shape, description = (shaped[1], shaped[2]) if shaped else ("", text)
    return Field(name, shape, description[0].upper() + description[1:])


def table() -> str:
    """The table, with the lines that enclose it."""
    rows = "\n".join(
        f"| {index} | `{field.name}` | {f'`{field.shape}`' if field.shape else ''} | {field.description} |"
        for index, field in enumerate(fields())
    )
    return f"{BEGIN}\n\n| f | array | shape | what it holds |\n|---|---|---|---|\n{rows}\n\n{END}"


def page() -> str:
    """The page with the table anew. Raises SystemExit where it lacks the lines between which that stands."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise SystemExit(f"{PAGE} lacks the lines between which the table stands")
    return before + table() + after


if __name__ == "__main__":
    sys.exit(generated.main({PAGE: page()}, source=str(LAYOUT.relative_to(ROOT)), description=__doc__))
