"""The cases that `rust/text` is tested against are what the installed `transformers` gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from text import write_cases, write_families

FILES = write_cases.files() | write_families.files()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_cases_are_those_of_transformers(path: Path) -> None:
    expected = json.loads(FILES[path])
    actual = json.loads(path.read_text(encoding="utf-8"))
    assert actual == expected, "run `python tests/text/write_cases.py` and `python tests/text/write_families.py`"
