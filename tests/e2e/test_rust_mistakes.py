"""How a Rust program ends badly, and what its launcher is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pie.engine import Engine
from pie.programs import load_program
from support.launching import ROOT, run

CASES: list[tuple[Any, str, tuple[str, ...]]] = [
    ({"error": {"text": "boom"}}, "program-error", ("boom",)),
    # A code that the engine did not give is the program's own word.
    ({"error": {"text": "[out-of-pages] none left"}}, "program-error", ("none left",)),
    ({"error": {"text": ""}}, "program-error", ("`main` returned an error without a text; give it one",)),
    ("thread", "trap", ("failed to spawn thread", "a program has one thread, in which `inferlet::task::join_all` runs futures")),
    ("socket", "program-error", ("a program has no sockets, and asks servers by `inferlet::http`",)),
    ("process", "program-error", ("a program has no threads and no processes", "`inferlet::runtime::spawn` starts another program")),
    ("file", "program-error", ("a program has no files of the machine", "--mount DIR=/data")),
    ({"error": {"text": "[no-such-code] text"}}, "program-error", ("[no-such-code] text",)),
    ({"unknown_model": {"name": "nobody"}}, "unknown-model", ("nobody",)),
    ({"unmet": {"token": 4_000_000_000}}, "invalid-token", ("4000000000",)),
    ({"met": {"token": 4_000_000_000}}, "invalid-token", ("4000000000",)),
    ({"unmet_wait": {"topic": "a\0b"}}, "invalid-argument", ("is not a name",)),
    ("late_option", "invalid-argument", ("a token mask comes after the first step was opened",)),
    ("released", "generator-retired", ("the release of its context",)),
    ({"exit": {"status": 3}}, "program-error", ("exited as one that failed", "; return an error from `main`")),
    ({"exit": {"status": 0}}, "program-error", ("exited as one that succeeded", ", or return an error from `main`")),
    ("deadlock", "deadlock", ("nothing can wake it",)),
    ("output", "invalid-output", ("Answer", "string")),
    ("nan_output", "invalid-output", ("what main returned at scores[1] is the number NaN", "finite")),
    ("nan_sent", "invalid-argument", ("what is sent at score is the number inf", "finite")),
    ("no-such-mistake", "invalid-input", ("no-such-mistake", "Mistake")),
    ({"error": {}}, "invalid-input", ("missing field `text`",)),
    ({"memory": {"bytes": 1 << 30}}, "limit-memory", ()),
    ({"recursion": {"depth": 100_000_000}}, "limit-stack", ()),
]


@pytest.mark.rows("RS-005")
@pytest.mark.parametrize(("mistake", "code", "words"), CASES, ids=[str(mistake) for mistake, _, _ in CASES])
def test_a_mistake_has_its_code_and_its_message(tiny: Engine, mistake: Any, code: str, words: tuple[str, ...]) -> None:
    outcome = run(tiny, load_program(ROOT / "build/programs/mistakes.wasm"), mistake)
    assert outcome.code == code, outcome.message
    assert outcome.message is not None
    assert [word for word in words if word not in outcome.message] == []
    assert f"[{code}]" not in outcome.message


def test_a_panic_tells_its_message_and_its_line(tiny: Engine) -> None:
    outcome = run(tiny, load_program(ROOT / "build/programs/mistakes.wasm"), {"panic": {"index": 7}})
    assert outcome.code == "trap"
    assert outcome.message is not None
    words = r"the program panicked at (\S+/)?src/lib\.rs:\d+:\d+: index out of bounds: the len is 3 but the index is 7"
    assert re.fullmatch(words, outcome.message), outcome.message
    said = "".join(outcome.stderr)
    assert "index out of bounds" in said
    assert "src/lib.rs:" in said
    # Rust writes it in a dozen pieces.
    assert [piece for piece in outcome.stderr if not piece.endswith("\n")] == []
    # Of the functions that led there, those of the program, and not those that every panic goes through.
    functions = outcome.traceback.splitlines()
    assert functions
    assert [line for line in functions if line.startswith(("  in std::", "  in core::", "  in abort"))] == []
