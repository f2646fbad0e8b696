"""What `pie run` is asked to launch, in an engine of its own or in that of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pie.bakery.manifest import Manifest
from pie.cli.arguments import Json, read_input
from pie.cli.program import text_parameters
from pie.errors import PieError


@dataclass(frozen=True)
class Launch:
    """What the command line asked for."""

    program: Path
    manifest: Path | None
    arguments: tuple[str, ...]
    input_text: str | None
    seed: int | None
    token_budget: int | None
    credits: float | None
    user: str | None
    """Whose process it is in an engine of its own; None: `anonymous`. A server is told by the connection."""
    files: Path | None
    detach: bool
    verbose: bool
    programs: Mapping[str, Path]
    """Those that the program can start, by the names that it calls them by."""

    def input(self, manifest: Manifest | None) -> Json:
        """The input of the program, whose manifest says which arguments are texts.

        PieError `invalid-argument` where both forms were given.
        """
        return read_input(self.arguments, self.input_text, texts=text_parameters(manifest))


def named_programs(options: Sequence[str]) -> dict[str, Path]:
    """What `--program NAME=FILE` says, each given once; PieError `invalid-argument` for anything else."""
    named: dict[str, Path] = {}
    for option in options:
        name, separator, path = option.partition("=")
        if not (name and separator and path):
            raise PieError("invalid-argument", f"--program {option}: give NAME=FILE, as in --program worker=worker.py")
        if name in named:
            raise PieError("invalid-argument", f"--program names {name!r} twice; give each program a name of its own")
        named[name] = Path(path)
    return named
