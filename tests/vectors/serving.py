"""Vectors of programs that are asked by HTTP: each entry is a line of the answer, which comes as it is made."""

from __future__ import annotations

from typing import Any

from tests.vectors.ops import Op, generate, op, report, state, transcript

ASKED = {"method": "POST", "path": "/a/b", "header": "own"}
"""The request, as its program sees it."""

MADE = [op("context", as_="c"), op("user", ctx="c", text="Hello"), generate("c", "g", n=4), *[op("step", gen="g")] * 5, *report("g")]
HELD = op("pull", topic="go")
"""It waits for what another request says, once the line before it has come."""

ROWS: list[tuple[Op, Any]] = [(op("request"), ASKED), *transcript(MADE), (HELD, "on"), *transcript([*MADE, *state("c")])[len(MADE) :]]
MEANWHILE = {str(len(MADE)): [op("push", topic="go", message="on")]}

VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    "http_in": (
        [row[0] for row in ROWS],
        {"expect": [row[1] for row in ROWS], "asked": ASKED, "meanwhile": MEANWHILE},
    ),
}
DOCS = {"http_in": "A request is answered line by line: what it asks for is made while its client reads what came before."}
