"""The mistakes of the first hour: none of them is silent, and each is told with what to do about it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.command import pie

CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "first_hour.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['row']} {case['line']}" for case in CASES])
def test_a_mistake_is_told_with_what_to_do(tmp_path: Path, case: dict[str, Any]) -> None:
    for path, text in case["files"].items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    done = pie(*case["command"], cwd=tmp_path, stdin=case.get("stdin"))
    print(f"$ pie {' '.join(case['command'])}\n{done.stdout}{done.stderr}")
    assert done.returncode == case.get("exit", 1)
    assert [part for part in case.get("says", ()) if part not in done.stderr] == []
    assert [part for part in case.get("prints", ()) if part not in done.stdout] == []
    assert [part for part in case.get("never", ()) if part in done.stdout + done.stderr] == []
    assert "tracemalloc" not in done.stderr
    assert "panicked" not in done.stderr


def test_the_mistakes_have_names_of_their_own() -> None:
    names = [(case["row"], case["line"]) for case in CASES]
    assert len(set(names)) == len(names)
