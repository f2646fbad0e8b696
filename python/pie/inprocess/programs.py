"""What a caller names as a program, and gives it as its input."""

from __future__ import annotations

import json
import textwrap
from os import PathLike
from pathlib import Path
from reprlib import Repr
from typing import Any, Literal, TypeAlias

from pie.bakery.build import ready
from pie.bakery.project import open_project
from pie.errors import PieError
from pie.programs import Component, Source

Program: TypeAlias = str | PathLike[str] | bytes | Component | Source
"""A path of a file or a project folder, the bytes of a built program, or what `source` makes of a text."""

_FILES: dict[str, tuple[Literal["python", "javascript"], str]] = {
    "python": ("python", "main.py"),
    "javascript": ("javascript", "main.js"),
    "typescript": ("javascript", "main.ts"),
}
_MAX_SEED = 2**64 - 1
_shortened = Repr()
_shortened.maxstring = _shortened.maxother = 80


def opened(program: Program) -> Component | Source:
    """The program to launch. A project that cannot run from its own files is built first, which may take minutes.

    Raises the PieErrors of opening and building, and `invalid-argument` for what names no program.
    """
    if isinstance(program, Component | Source):
        return program
    if isinstance(program, bytes):
        return Component(Path("program.wasm"), content=program)
    if not isinstance(program, str | PathLike):
        raise refused("program", program, "the path of a program, the bytes of a built one, or what pie.source(text) makes")
    return ready(open_project(Path(program)))


def source(text: str, *, language: Literal["python", "javascript", "typescript"] = "python") -> Source:
    """A program of one file, from its text, of which the indentation that all its lines share is taken off."""
    if not isinstance(text, str):
        raise refused("text", text, "the text of a program")
    if language not in _FILES:
        raise refused("language", language, " or ".join(map(repr, _FILES)))
    kind, name = _FILES[language]
    try:
        content = textwrap.dedent(text).encode()
    except UnicodeEncodeError as error:
        message = f"text holds the half of a character at {error.start}; give text that can be written as UTF-8"
        raise PieError("invalid-argument", message) from error
    return Source(kind, ((name, content),), name)


def check_input(value: Any) -> None:
    """Refuses an input that JSON does not hold, with PieError `invalid-argument`."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        reason = "it holds the half of a character" if isinstance(error, UnicodeEncodeError) else str(error)
        remedy = "give None, bool, int, finite float, str, or lists and dicts of these"
        raise PieError("invalid-argument", f"input is {_shortened.repr(value)}, which is not JSON: {reason}; {remedy}") from error


def check_seed(seed: int | None) -> None:
    """Refuses what is not a launch seed, with PieError `invalid-argument`."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _MAX_SEED):
        raise refused("seed", seed, f"a whole number from 0 to {_MAX_SEED}, or None for any")


def refused(name: str, value: object, expected: str) -> PieError:
    """The error of an argument that cannot be what it is."""
    return PieError("invalid-argument", f"{name} is {_shortened.repr(value)} ({type(value).__name__}); give {expected}", {"argument": name})
