"""The entries of a folder are stated once in Python, for the command, and once in Rust, for children: the same ones."""

from __future__ import annotations

import re
from pathlib import Path

from pie import programs

PARTS = Path(__file__).resolve().parents[2] / "rust/host/src/program/parts.rs"


def test_children_find_the_entries_that_the_command_finds() -> None:
    table = re.search(r"const ENTRIES: .*? = \[(.*?)\];", PARTS.read_text(encoding="utf-8"), re.DOTALL)
    assert table is not None
    assert tuple(re.findall(r'"([^"]+)"', table[1])) == programs._ENTRIES
