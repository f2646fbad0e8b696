"""What `pie build`, `pie new` and `pie types` do and print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pie.cli.progress import working
from pie.cli.tables import size
from pie.cli.terminal import LINES, plain
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.bakery.new import Language


_LANGUAGES: dict[str, Language] = {
    "rust": "rust",
    "python": "python",
    "typescript": "typescript",
    "javascript": "javascript",
    "rs": "rust",
    "py": "python",
    "ts": "typescript",
    "js": "javascript",
}


def build_program(  # noqa: PLR0913  # options of one command
    path: Path, output: Path | None, *, standalone: bool, locked: bool, upgrade: bool, check: bool
) -> int:
    """Builds; returns the exit code."""
    from pie.bakery.build import build
    from pie.bakery.lock import LockUse
    from pie.bakery.project import open_project
    from pie.cli.program import note_emptiness, usage_of_built

    if locked and upgrade:
        raise PieError(
            "invalid-argument", "--locked builds with the packages of pie.lock, and --upgrade looks for others; give one of them"
        )
    lock = LockUse.REQUIRE if locked else LockUse.UPGRADE if upgrade else LockUse.UPDATE
    with working(f"Building {_called(path)}") as tell:
        built = build(path, output, standalone=standalone, lock=lock, with_types=check, tell=tell)
    print(f"{built.wasm}  {size(built.n_bytes)}  {built.digest}")
    print(f"{built.manifest_path}  {size(len(built.manifest.text.encode()))}")
    if built.lock_path is not None:
        print(f"{built.lock_path}  the packages that it was built with")
    if built.types is not None:
        print(built.types)
    if built.runtime is not None:
        print(f"{'carries' if standalone else 'needs'} the language runtime {built.runtime}")
    project = open_project(path)
    print(plain(usage_of_built(project, built.manifest), keep=LINES))
    note_emptiness(project)
    return 0


def _called(path: Path) -> str:
    """A path for people: `.` is the folder that it stands for."""
    return path.name or path.resolve().name or str(path)


def language_of(name: str) -> Language:
    """The language that `--lang` names; PieError `invalid-argument` for another word."""
    language = _LANGUAGES.get(name.lower())
    if language is None:
        from pie.config.suggest import nearest, shortened

        near = nearest(name, _LANGUAGES)
        meant = "" if near is None else f"; did you mean {near!r}?"
        message = f"--lang {shortened(name)!r} is not a language of programs; give one of {', '.join(_LANGUAGES)}{meant}"
        raise PieError("invalid-argument", message)
    return language


def new_program(place: str, languages: Sequence[Language]) -> int:
    """Makes the beginning of a program in the language that was chosen, Python if none was; returns the exit code."""
    from pie.bakery.new import new

    if len(languages) > 1:
        chosen = " and ".join(languages)
        raise PieError("invalid-argument", f"a program is in one language, but {chosen} were chosen; choose one")
    folder = new(place, languages[0] if languages else "python", Path.cwd())
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    what = "a program in this folder" if folder == Path.cwd() else shown
    chosen_for = "" if languages else ", in Python (--lang chooses another language)"
    print(f"Made {what}{chosen_for}. Next: pie run {shown} -- --help")
    return 0


def write_types(folder: Path) -> int:
    """Makes the types of the SDK known to editors in a folder of scripts; returns the exit code."""
    from pie.bakery.loose_types import write_loose_types

    print(write_loose_types(folder))
    return 0
