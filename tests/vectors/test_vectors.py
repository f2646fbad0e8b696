"""Every vector gives its transcript, in every language, on the dummy driver."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pie.engine import Engine
from support.launching import LANGUAGES, finish, load_interpreter

FOLDER = Path(__file__).resolve().parent
VECTORS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json")) if path.stem != "tsconfig"}
RUNS = [(name, language) for name, vector in VECTORS.items() for language in vector.get("languages", LANGUAGES)]


@pytest.mark.parametrize(("name", "language"), RUNS, ids=[f"{name}-{language}" for name, language in RUNS])
def test_vector(dummy: Engine, name: str, language: str) -> None:
    vector = VECTORS[name]
    ops = [op for op, _ in vector["rows"]]
    username = f"{name}-{language}"  # who runs nothing else finds nothing computed but by this run
    named = {"{name}-{language}": username}
    process = dummy.launch(load_interpreter(language), input={"ops": ops}, seed=vector["launch_seed"], username=username)
    for message in vector.get("messages", []):
        process.send(message)
    for file in vector.get("files", []):
        process.send_file(bytes(file))
    process.close_input()
    outcome = finish(process)
    assert outcome.code is None, outcome.message
    rows = [(op, named.get(expected, expected) if isinstance(expected, str) else expected) for op, expected in vector["rows"]]
    differences = [(op, expected, given) for (op, expected), given in zip(rows, outcome.value, strict=True) if not same(expected, given)]
    assert differences == [], short(differences)
    assert outcome.messages == vector.get("beside", [])
    if "events" in vector:
        assert [sent if isinstance(sent, str) else list(sent) for sent in outcome.sent] == vector["events"]


def same(expected: Any, given: Any) -> bool:
    """Whether two answers are equal; numbers that are not whole may differ by the rounding of sums."""
    if isinstance(expected, float) and isinstance(given, int | float) and not isinstance(given, bool):
        return math.isclose(expected, given, rel_tol=1e-6)
    if isinstance(expected, list) and isinstance(given, list):
        return len(expected) == len(given) and all(map(same, expected, given))
    if isinstance(expected, dict) and isinstance(given, dict):
        return expected.keys() == given.keys() and all(same(expected[key], given[key]) for key in expected)
    return bool(expected == given)


def short(differences: list[Any]) -> str:
    """The first difference, for a reader."""
    op, expected, given = differences[0]
    return f"{len(differences)} differ; the first: {json.dumps(op)} must answer {json.dumps(expected)} and answered {json.dumps(given)}"


def test_vectors_are_in_step_with_the_oracle() -> None:
    done = subprocess.run([sys.executable, str(FOLDER / "write.py"), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
