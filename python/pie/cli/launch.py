"""What `pie run` is asked to launch, in an engine of its own or in that of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pie.bakery.manifest import Manifest
from pie.cli.arguments import Json, read_input
from pie.cli.program import text_parameters


@dataclass(frozen=True)
class Launch:
    """What the command line asked for."""

    program: Path
    manifest: Path | None
    arguments: tuple[str, ...]
    input_text: str | None
    seed: int | None
    token_budget: int | None
    files: Path | None
    detach: bool
    verbose: bool

    def input(self, manifest: Manifest | None) -> Json:
        """The input of the program, whose manifest says which arguments are texts.

        PieError `invalid-argument` where both forms were given.
        """
        return read_input(self.arguments, self.input_text, texts=text_parameters(manifest))
