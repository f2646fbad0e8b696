"""Comments and documentation have lines of at most 120 columns."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_COLUMNS = 120
PRAGMA = re.compile(r"#\s*(noqa|type:|pragma:|fmt:)")


def wide_lines(path: Path, text: str) -> list[int]:
    """The numbers of the lines that are too long and could be wrapped."""
    lines = text.split("\n")
    if not any(_is_wide(line) for line in lines):
        return []
    return [number for number in _prose(path, text, lines) if _is_wide(lines[number - 1])]


def _is_wide(line: str) -> bool:
    """Whether a line has a place where it could be broken, and is too long. Tables and single words have none."""
    words = re.sub(r"^\s*(//[/!]?|/\*\*?|[-*+#]|\d+\.)?\s*", "", line)
    return len(line) > MAX_COLUMNS and not words.startswith("|") and " " in words.removeprefix('"""')


def _prose(path: Path, text: str, lines: list[str]) -> Iterator[int]:
    match path.suffix:
        case ".md":
            yield from _markdown(lines)
        case ".py" | ".pyi":
            yield from _python(text)
        case _:
            begins = re.compile(r"\s*//" if path.suffix in {".rs", ".wit"} else r"\s*(//|/?\*)")
            yield from (number for number, line in enumerate(lines, 1) if begins.match(line))
            # A comment behind code counts where it begins within the columns: the code in front is the formatter's.
            behind = re.compile(rf".{{1,{MAX_COLUMNS}}}[;{{,)] // ")
            yield from (number for number, line in enumerate(lines, 1) if behind.match(line))


def _markdown(lines: list[str]) -> Iterator[int]:
    is_fenced = is_indented = False
    before = ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
        is_indented = line.startswith("    ") and (is_indented or not before.strip())
        if not is_fenced and not is_indented:
            yield number
        before = line


def _python(text: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not PRAGMA.match(token.string):
            yield token.start[0]


def test_comments_and_documentation_fit() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    wide = []
    for name in listed.splitlines():
        path = ROOT / name
        is_ours = "deps/wasi-" not in name
        if path.suffix in {".rs", ".py", ".pyi", ".ts", ".js", ".mjs", ".wit", ".md"} and is_ours and path.is_file():
            wide += [f"{name}:{number}" for number in wide_lines(path, path.read_text(encoding="utf-8"))]
    assert wide == [], f"lines of more than {MAX_COLUMNS} columns"


LONG = "word " * 30


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.rs", f"fn f() {{}}\n/// {LONG}\n//! {LONG}\n    // {LONG}", [2, 3, 4]),
        ("a.rs", f'let text = "{LONG}";\n/// | {LONG}|\n/// {"w" * 200}', []),
        ("a.rs", f"let x = 1; // {LONG}", [1]),
        ("a.ts", f"/** {LONG} */\n/**\n * {LONG}\n */", [1, 3]),
        ("a.wit", f"/// {LONG}", [1]),
        ("a.py", f'"""{LONG}"""\n\nx = "{LONG}"\n# {LONG}\ny = 1  # {LONG}\nz = 1  # noqa: {LONG}\n', [1, 4, 5]),
        ("a.md", f"{LONG}\n\n- {LONG}\n\n| {LONG} |\n\n```\n{LONG}\n```\n\n    {LONG}\n    {LONG}\n\n{LONG}", [1, 3, 14]),
        ("a.md", f"- [{'w' * 60}](https://{'w' * 60})", []),
    ],
)
def test_the_rule_itself(name: str, text: str, found: list[int]) -> None:
    assert wide_lines(Path(name), text) == found
