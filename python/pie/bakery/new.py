"""`pie new`: the beginning of a program, which builds, runs and has a test that passes."""

from __future__ import annotations

import keyword
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from pie.bakery import sdk
from pie.bakery.cargo_lock import lock_of_crate
from pie.bakery.manifest import NAME_RULE, is_program_name, plain_name
from pie.errors import PieError

Language: TypeAlias = Literal["rust", "python", "typescript", "javascript"]

TEMPLATES = Path(__file__).resolve().parent / "templates"
"""One folder a language.

`$NAME` stands for the name in every file, and `$CRATE` for that of the crate; the ending `.template` is taken off.
"""

_SUFFIX = ".template"
_HERE = {".", "./"}
_WORDS_OF_RUST = """
    abstract alloc as async await become box break const continue core crate do dyn else enum extern false final fn for gen if impl in
    inferlet let loop macro match mod move mut override priv proc_macro pub ref return self serde serde_json static std struct super test
    trait true try type typeof union unsafe unsized use virtual where while yield
"""
_RUST_WORDS = frozenset(_WORDS_OF_RUST.split())


def new(place: str, language: Language, parent: Path) -> Path:
    """Makes a program in a language in the folder `place`, a path from `parent`, and returns the folder.

    Nothing is overwritten. The program is called as the folder. `.` is `parent` itself, which may hold other files; the
    program is called as it, as far as a name may be. Raises PieError `invalid-name` for a name that no program can
    have, `build-failed` where the folder, or a file of the program in it, is there or cannot be made.
    """
    is_here = place in _HERE
    folder = parent if is_here else parent / place.rstrip("/")
    name = plain_name(folder.resolve().name) if is_here else _last_name(place)
    _check(name, language)
    files = _files(TEMPLATES / language, name)
    if language == "rust":
        files[Path("Cargo.lock")] = lock_of_crate(_read(sdk.FOLDER / "rust" / "Cargo.lock"), files[Path("Cargo.toml")])
    if is_here:
        _fill(folder, files)
    else:
        _make(folder)
        try:
            _fill(folder, files)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def _last_name(place: str) -> str:
    """The name of the folder that a path leads to."""
    names = place.rstrip("/").split("/")
    if "\0" in place or names[-1] in {".", ".."}:
        raise PieError("invalid-name", f"{place[:80]!r} cannot be the folder of a new program; name a new folder, or `.` for this one")
    return names[-1]


def _check(name: str, language: Language) -> None:
    if not is_program_name(name):
        raise PieError("invalid-name", f"{name[:80]!r} cannot be the name of a program; use {NAME_RULE}")
    plain = _crate(name).replace("-", "_")
    if (language == "rust" and plain in _RUST_WORDS) or (language == "python" and keyword.iskeyword(plain)):
        raise PieError("invalid-name", f"{name!r} is a word of {language.capitalize()} or one of its libraries; choose another name")


def _crate(name: str) -> str:
    """What the crate of a program is called: cargo allows neither dots nor a digit in front."""
    plain = name.replace(".", "-")
    return f"p{plain}" if plain[:1].isdigit() else plain


def _files(template: Path, name: str) -> dict[Path, bytes]:
    """The files of a new program by their paths in its folder."""
    found = {}
    for source in sorted(template.rglob(f"*{_SUFFIX}")):
        plain = source.name.removesuffix(_SUFFIX)
        inside = source.relative_to(template).with_name(".gitignore" if plain == "gitignore" else plain)
        found[inside] = _read(source).replace(b"$CRATE", _crate(name).encode()).replace(b"$NAME", name.encode())
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PieError("build-failed", f"{str(path)!r} cannot be read ({error.strerror}); install the package again") from error


def _make(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except FileExistsError as error:
        raise PieError("build-failed", f"{str(folder)!r} is there already, and nothing is overwritten; choose another name") from error
    except OSError as error:
        raise PieError("build-failed", f"the folder {str(folder)!r} cannot be made: {error.strerror}") from error


def _fill(folder: Path, files: Mapping[Path, bytes]) -> None:
    """Writes the files and links the SDK. Where one cannot be written, those before are removed again."""
    for inside in files:
        if os.path.lexists(folder / inside):
            message = f"{str(folder / inside)!r} is there already, and nothing is overwritten; move it, or name another folder"
            raise PieError("build-failed", message)
    written: list[Path] = []
    made: list[Path] = []
    try:
        for inside, content in files.items():
            path = folder / inside
            if not path.parent.is_dir():
                path.parent.mkdir()
                made.append(path.parent)
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
        sdk.link(folder)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        for path in reversed(made):
            with suppress(OSError):  # somebody else has put something there
                path.rmdir()
        if isinstance(error, OSError):
            raise PieError("build-failed", f"{str(folder)!r} cannot be filled: {error.strerror} ({error.filename})") from error
        raise
