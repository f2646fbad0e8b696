"""`pie build` and `pie new`, and the same two as the command `bakery`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pie.cli.commands import App

if TYPE_CHECKING:
    from pie.bakery.new import Language


def build(
    path: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="A project folder, or a .py, .js or .ts file.", show_default=False)
    ] = Path(),
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write; dist/NAME.wasm in the project if not given.", show_default=False
        ),
    ] = None,
    standalone: Annotated[
        bool, typer.Option("--standalone", help="Carry the language runtime in the file, for engines that have another one.")
    ] = False,
) -> None:
    """Build a program: one .wasm file, with its Pie.toml beside it."""
    from pie.cli.build import build_program

    raise typer.Exit(build_program(path, output, standalone=standalone))


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the program and of its folder.")],
    rust: Annotated[bool, typer.Option("--rust", help="In Rust.")] = False,
    python: Annotated[bool, typer.Option("--python", help="In Python; so too if no language is given.")] = False,
    typescript: Annotated[bool, typer.Option("--ts", help="In TypeScript.")] = False,
    javascript: Annotated[bool, typer.Option("--js", help="In JavaScript.")] = False,
) -> None:
    """Make the folder NAME with a program that builds, runs and has a test."""
    from pie.cli.build import new_program

    languages: dict[Language, bool] = {"rust": rust, "python": python, "typescript": typescript, "javascript": javascript}
    chosen = [language for language, wanted in languages.items() if wanted]
    raise typer.Exit(new_program(name, chosen))


def register(app: App) -> None:
    """Adds the commands."""
    app.command()(build)
    app.command()(new)
