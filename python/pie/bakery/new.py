"""`pie new`: the beginning of a program, which builds, runs and has a test that passes."""

from __future__ import annotations

import keyword
import re
import shutil
from pathlib import Path
from typing import Literal, TypeAlias

from pie.bakery import sdk
from pie.errors import PieError

Language: TypeAlias = Literal["rust", "python", "typescript", "javascript"]

TEMPLATES = Path(__file__).resolve().parent / "templates"
"""One folder a language; `$NAME` stands for the name in every file, and the ending `.template` is taken off."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_SUFFIX = ".template"
_WORDS_OF_RUST = """
    abstract alloc as async await become box break const continue core crate do dyn else enum extern false final fn for gen if impl in
    inferlet let loop macro match mod move mut override priv proc_macro pub ref return self serde static std struct super test trait true
    try type typeof union unsafe unsized use virtual where while yield
"""
_RUST_WORDS = frozenset(_WORDS_OF_RUST.split())


def new(name: str, language: Language, parent: Path) -> Path:
    """Makes the folder `name` in `parent` with a program in a language, and returns its path; nothing is overwritten.

    Raises PieError `invalid-name` for a name that no program can have, `build-failed` where the folder is there or
    cannot be made.
    """
    _check(name, language)
    folder = parent / name
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise PieError("build-failed", f"{str(folder)!r} is there already, and nothing is overwritten; choose another name") from error
    except OSError as error:
        raise PieError("build-failed", f"the folder {str(folder)!r} cannot be made: {error.strerror}") from error
    try:
        _fill(folder, TEMPLATES / language, name)
        if language == "rust":
            # The versions that the SDK was tested with; cargo adds the program itself.
            shutil.copyfile(sdk.FOLDER / "rust" / "Cargo.lock", folder / "Cargo.lock")
        sdk.link(folder)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise PieError("build-failed", f"{str(folder)!r} cannot be filled: {error.strerror} ({error.filename})") from error
        raise
    return folder


def _check(name: str, language: Language) -> None:
    if not _NAME.fullmatch(name):
        raise PieError(
            "invalid-name",
            f"{name[:80]!r} cannot be the name of a program; use at most 64 of a to z, 0 to 9, '-' and '_', beginning with a letter",
        )
    plain = name.replace("-", "_")
    if (language == "rust" and plain in _RUST_WORDS) or (language == "python" and keyword.iskeyword(plain)):
        raise PieError("invalid-name", f"{name!r} is a word of {language.capitalize()} or one of its libraries; choose another name")


def _fill(folder: Path, template: Path, name: str) -> None:
    for source in sorted(template.rglob(f"*{_SUFFIX}")):
        inside = source.relative_to(template)
        plain = source.name.removesuffix(_SUFFIX)
        target = folder / inside.with_name(".gitignore" if plain == "gitignore" else plain)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text().replace("$NAME", name))
