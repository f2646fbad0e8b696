"""What `pie build` and `pie new` do and print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pie.cli.progress import working
from pie.cli.tables import size
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.bakery.new import Language


def build_program(path: Path, output: Path | None, *, standalone: bool) -> int:
    """Builds; returns the exit code."""
    from pie.bakery.build import build
    from pie.bakery.manifest import usage

    with working(f"Building {_called(path)}"):
        built = build(path, output, standalone=standalone)
    print(f"{built.wasm}  {size(built.n_bytes)}  {built.digest}")
    print(f"{built.manifest_path}  {size(len(built.manifest.text.encode()))}")
    if built.runtime is not None:
        print(f"{'carries' if standalone else 'needs'} the language runtime {built.runtime}")
    print(usage(built.manifest))
    return 0


def _called(path: Path) -> str:
    """A path for people: `.` is the folder that it stands for."""
    return path.name or path.resolve().name or str(path)


def new_program(name: str, languages: Sequence[Language]) -> int:
    """Makes the beginning of a program in the language that was chosen, Python if none was; returns the exit code."""
    from pie.bakery.new import new

    if len(languages) > 1:
        chosen = " and ".join(languages)
        raise PieError("invalid-argument", f"a program is in one language, but {chosen} were chosen; choose one")
    folder = new(name, languages[0] if languages else "python", Path.cwd())
    print(f"Made {folder.name}. Next: pie run {folder.name} -- --help")
    return 0
