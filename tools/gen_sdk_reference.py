"""Writes the reference of the SDKs, `docs/reference/sdk/`, from their sources in three languages.

`python tools/gen_sdk_reference.py` writes; `--check` writes nothing and fails where a page is out of step. It reads
sources alone: nothing has to be built. `tools/sdk_reference/areas.py` says which page a name stands on, and which names
of the three languages are one.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import generated
from tools.generated import ROOT
from tools.sdk_reference import python_reader, rust_reader, typescript_reader, wit_reader
from tools.sdk_reference.items import Item, SourceError
from tools.sdk_reference.pages import Reference

FOLDER = ROOT / "docs" / "reference" / "sdk"


def items(root: Path = ROOT) -> list[Item]:
    """Every public name of the three languages, under the root of a tree."""
    return [*python_reader.read(root), *typescript_reader.read(root), *rust_reader.read(root)]


def outputs(root: Path = ROOT) -> dict[Path, str]:
    """Every page with its text; what is no page any more is not among them."""
    files = Reference(items(root), wit_reader.read(root)).files()
    return {FOLDER / name: text for name, text in files.items()}


def main() -> int:
    """Runs the command; returns the exit code."""
    try:
        pages = outputs()
    except SourceError as error:
        print(error, file=sys.stderr)
        return 1
    return generated.main(pages, source="the sources of the SDKs", description=__doc__)


if __name__ == "__main__":
    sys.exit(main())
