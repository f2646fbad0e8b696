"""`pie build`, `pie new` and `pie types`, and the same as the command `bakery`."""

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
    locked: Annotated[
        bool, typer.Option("--locked", help="Build with the packages of pie.lock (crates: Cargo.lock) and no others, or fail.")
    ] = False,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Look for the newest packages that fit, and write pie.lock anew.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check the types first, by tsc or mypy, where they are there.")] = False,
) -> None:
    """Build a program: one .wasm file, with its Pie.toml beside it.

    Which packages it was built with is written to pie.lock in its folder, and the next build takes the same.
    """
    from pie.cli.build import build_program

    raise typer.Exit(build_program(path, output, standalone=standalone, locked=locked, upgrade=upgrade, check=check))


def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A new folder, called as the program, as in poet or programs/poet; `.` makes it in this folder."
        ),
    ],
    lang: Annotated[
        str | None,
        typer.Option("--lang", metavar="LANGUAGE", help="rust, python, typescript or javascript; python if not given.", show_default=False),
    ] = None,
    rust: Annotated[bool, typer.Option("--rust", help="In Rust.")] = False,
    python: Annotated[bool, typer.Option("--python", help="In Python.")] = False,
    typescript: Annotated[bool, typer.Option("--ts", "--typescript", help="In TypeScript.")] = False,
    javascript: Annotated[bool, typer.Option("--js", "--javascript", help="In JavaScript.")] = False,
) -> None:
    """Make the folder NAME with a program that builds, runs and has a test."""
    from pie.cli.build import language_of, new_program

    languages: dict[Language, bool] = {"rust": rust, "python": python, "typescript": typescript, "javascript": javascript}
    chosen = {language for language, wanted in languages.items() if wanted}
    if lang is not None:
        chosen.add(language_of(lang))
    raise typer.Exit(new_program(name, sorted(chosen)))


def types(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Where scripts lie; this folder if not given.", show_default=False)
    ] = Path(),
) -> None:
    """Give editors and tsc the types of the SDK for the scripts in DIR: the link .pie/sdk, and a tsconfig.json."""
    from pie.cli.build import write_types

    raise typer.Exit(write_types(folder))


def register(app: App) -> None:
    """Adds the commands."""
    app.command()(build)
    app.command()(new)
    app.command()(types)
