"""What `pie build` and `pie new` do and print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pie.cli.progress import working
from pie.cli.terminal import EXIT_ERROR, make_streams_sturdy, report
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.bakery.new import Language


def build_program(path: Path, output: Path | None, *, standalone: bool) -> int:
    """Builds; answers the exit code."""
    make_streams_sturdy()
    from pie.bakery.build import build
    from pie.bakery.manifest import usage

    try:
        with working(f"Building {path}"):
            built = build(path, output, standalone=standalone)
    except PieError as error:
        report(error.code, error.message)
        return EXIT_ERROR
    print(f"{built.wasm}  {_size(built.n_bytes)}  {built.digest}")
    print(f"{built.manifest_path}  {_size(len(built.manifest.text.encode()))}")
    if built.runtime is not None:
        print(f"{'carries' if standalone else 'needs'} the language runtime {built.runtime}")
    print(usage(built.manifest))
    return 0


def new_program(name: str, languages: Sequence[Language]) -> int:
    """Makes the beginning of a program in the language that was chosen, Python if none was; answers the exit code."""
    make_streams_sturdy()
    from pie.bakery.new import new

    try:
        if len(languages) > 1:
            chosen = " and ".join(languages)
            raise PieError("invalid-argument", f"a program is in one language, but {chosen} were chosen; choose one")
        folder = new(name, languages[0] if languages else "python", Path.cwd())
    except PieError as error:
        report(error.code, error.message)
        return EXIT_ERROR
    print(f"Made {folder.name}. Next: pie run {folder.name} -- --help")
    return 0


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 10**6 else f"{n_bytes / 1e3:.1f} kB"
