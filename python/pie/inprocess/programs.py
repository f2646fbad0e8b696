"""What a caller names as a program."""

from __future__ import annotations

import re
import textwrap
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

from pie import checks
from pie.bakery.build import ready
from pie.bakery.project import open_project
from pie.errors import PieError
from pie.programs import Component, Source

Program: TypeAlias = str | PathLike[str] | bytes | Component | Source
"""A path of a file or a project folder, the bytes of a built program, or what `source` makes of a text."""

_CODE = re.compile(
    r"\n|^\s*(?:(?:export\s+)?(?:(?:async\s+)?(?:def|function)\s+\w+\s*\(|(?:const|let|var|class)\s+\w)"
    r"|import\s+\w|from\s+\S+\s+import\s|print\()"
)
"""What code has, and the path of a program hardly."""
_FILES: dict[str, tuple[Literal["python", "javascript"], str]] = {
    "python": ("python", "main.py"),
    "javascript": ("javascript", "main.js"),
    "typescript": ("javascript", "main.ts"),
}


def opened(program: Program) -> Component | Source:
    """The program to launch. A project that cannot run from its own files is built first, which may take minutes.

    Raises the PieErrors of opening and building, and `invalid-argument` for what names no program.
    """
    if isinstance(program, Component | Source):
        return program
    if isinstance(program, bytes):
        return Component(Path("program.wasm"), content=program)
    if not isinstance(program, str | PathLike):
        raise checks.refused("program", program, "the path of a program, the bytes of a built one, or what pie.source(text) makes")
    if isinstance(program, str) and _is_text(program):
        raise PieError("invalid-argument", "this is the text of a program, not the path of one; write pie.source(text) in its place")
    return ready(open_project(Path(program)))


def _is_text(program: str) -> bool:
    """Whether a text that was given as a path is a program itself."""
    if _CODE.search(program) is None:
        return False
    try:
        return not Path(program).exists()
    except (OSError, ValueError):  # longer than a path may be
        return True


def source(text: str, *, language: Literal["python", "javascript", "typescript"] = "python") -> Source:
    """A program of one file, from its text, of which the indentation that all its lines share is taken off."""
    checks.text("text", text, "the text of a program")
    if language not in _FILES:
        raise checks.refused("language", language, " or ".join(map(repr, _FILES)))
    kind, name = _FILES[language]
    return Source(kind, ((name, textwrap.dedent(text).encode()),), name)
