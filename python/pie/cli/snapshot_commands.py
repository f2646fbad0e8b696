"""`pie snapshots` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pie.cli.commands import App, NamedCommand
from pie.cli.options import ConfigOption, JsonOption, config_flags

snapshots_app = App(help="Look at the snapshots on disk, also where no engine runs; `pie snapshot` asks a server.")

FolderOption = Annotated[
    Path | None,
    typer.Option("--folder", metavar="DIR", help="The folder of snapshots; that of the configuration if not given.", show_default=False),
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="The model whose context it is.", show_default=False)]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name under which it was saved.", show_default=False)]
OfOption = Annotated[
    str | None,
    typer.Option("--of", metavar="USER", help="The user whose it is, where several have one of that name.", show_default=False),
]


@snapshots_app.command("list")
def list_(
    check: Annotated[
        bool, typer.Option("--check", help="Read every part of each, and compare all checksums; the exit code is 1 where one is damaged.")
    ] = False,
    folder: FolderOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List the snapshots on disk, and what is wrong with those that cannot be opened.

    Without --check only the header and the index of each file are read: `header ok` says nothing of the parts behind
    them.
    """
    from pie.cli.kept_snapshots import list_kept

    raise typer.Exit(list_kept(folder, config_flags(config, None, False, None), checks=check, as_json=as_json))


@snapshots_app.command(cls=NamedCommand)
def show(
    model: ModelArgument, name: NameArgument, owner: OfOption = None, folder: FolderOption = None, config: ConfigOption = None
) -> None:
    """Check every part of a snapshot and print what it is, as JSON."""
    from pie.cli.kept_snapshots import Wanted
    from pie.cli.kept_snapshots import show as print_one

    raise typer.Exit(print_one(folder, config_flags(config, None, False, None), Wanted(model, name, owner)))


@snapshots_app.command(cls=NamedCommand)
def export(
    model: ModelArgument,
    name: NameArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - is stdout.", show_default=False)] = "-",
    force: Annotated[bool, typer.Option("--force", help="Write over FILE where it is there.")] = False,
    owner: OfOption = None,
    folder: FolderOption = None,
    config: ConfigOption = None,
) -> None:
    """Write the tokens of a snapshot, and all else that it says, as JSON."""
    from pie.cli.kept_snapshots import Wanted
    from pie.cli.kept_snapshots import export as write

    raise typer.Exit(write(folder, config_flags(config, None, False, None), Wanted(model, name, owner), file, replaces=force))


@snapshots_app.command(cls=NamedCommand)
def delete(
    model: ModelArgument, name: NameArgument, owner: OfOption = None, folder: FolderOption = None, config: ConfigOption = None
) -> None:
    """Delete a snapshot while no engine uses the folder."""
    from pie.cli.kept_snapshots import Wanted
    from pie.cli.kept_snapshots import delete as remove

    raise typer.Exit(remove(folder, config_flags(config, None, False, None), Wanted(model, name, owner)))
