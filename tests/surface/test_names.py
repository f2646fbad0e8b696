"""What programs and clients can import is what the rows say: the names of present rows, and not those of absent ones.

For Rust `rust/inferlet/tests/names.rs`, which follows from the rows, does the same by compiling.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

import pie.client
from pie.engine import Engine
from pie.programs import load_program
from support.launching import run
from tools.surface import Row, read_rows

FOLDER = Path(__file__).resolve().parent
ROWS = read_rows((FOLDER / "rows.tsv").read_text(encoding="utf-8"))
PROGRAMS = {"python": "names.py", "javascript": "names.ts"}


def of_language(language: str) -> list[Row]:
    return [row for row in ROWS if row.language == language and row.names]


def every_name(rows: Iterable[Row]) -> list[str]:
    return sorted({name for row in rows for name in row.names})


def wrong(rows: Iterable[Row], there: Collection[str]) -> list[str]:
    """Present rows that lack a name, and absent ones that have all of theirs."""
    missing = [f"{row.id} is present and lacks {name}" for row in rows if row.is_present for name in row.names if name not in there]
    found = [f"{row.id} is absent and has {' '.join(row.names)}" for row in rows if not row.is_present and set(row.names) <= set(there)]
    return missing + found


@pytest.mark.rows("JS-008 JS-013 JS-021 JS-101 JS-180 PY-005 PY-010 PY-018 PY-041 PY-140 PY-172 OLD-001..002 OLD-016..021 OLD-025..026")
@pytest.mark.parametrize("of", PROGRAMS)
def test_programs_find_the_names_of_present_rows_and_no_others(dummy: Engine, of: str) -> None:
    rows = of_language(of)
    outcome = run(dummy, load_program(FOLDER / PROGRAMS[of]), every_name(rows))
    assert outcome.code is None, outcome.traceback
    assert len(outcome.value) > 50
    assert wrong(rows, outcome.value) == []


def test_a_client_finds_the_names_of_present_rows_and_no_others() -> None:
    def is_there(path: str) -> bool:
        owner, _, name = path.rpartition(".")
        return hasattr(getattr(pie.client, owner), name)

    rows = of_language("client")
    assert wrong(rows, [name for name in every_name(rows) if is_there(name)]) == []


@pytest.mark.rows("OLD-033")
def test_messages_are_filled_in_by_the_interface_that_the_reference_names() -> None:
    interface = (FOLDER.parents[1] / "wit/deps/pie-instruct/chat.wit").read_text(encoding="utf-8")
    assert interface.startswith("package pie:instruct@")
    assert "interface chat {" in interface
    assert all(f"    {name}: func(" in interface for name in ("fill", "cue", "seal"))


def test_what_is_wrong_is_told() -> None:
    present = Row("PY-001", "python", "Context", "present", ("Context", "Context.fork"), "fork")
    absent = Row("PY-002", "python", "Context", "absent", ("Context", "Context.idle"), "idle")
    assert wrong([present, absent], ["Context", "Context.fork"]) == []
    assert wrong([present], ["Context"]) == ["PY-001 is present and lacks Context.fork"]
    assert wrong([absent], ["Context", "Context.idle"]) == ["PY-002 is absent and has Context Context.idle"]
