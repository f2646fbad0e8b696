"""What a caller names as a program."""

from __future__ import annotations

import textwrap
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

from pie import checks
from pie.bakery.build import ready
from pie.bakery.project import open_project
from pie.programs import Component, Source

Program: TypeAlias = str | PathLike[str] | bytes | Component | Source
"""A path of a file or a project folder, the bytes of a built program, or what `source` makes of a text."""

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
    return ready(open_project(Path(program)))


def source(text: str, *, language: Literal["python", "javascript", "typescript"] = "python") -> Source:
    """A program of one file, from its text, of which the indentation that all its lines share is taken off."""
    checks.text("text", text, "the text of a program")
    if language not in _FILES:
        raise checks.refused("language", language, " or ".join(map(repr, _FILES)))
    kind, name = _FILES[language]
    return Source(kind, ((name, textwrap.dedent(text).encode()),), name)
