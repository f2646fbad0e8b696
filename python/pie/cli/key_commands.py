"""`pie key` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pie.cli.commands import App
from pie.cli.options import ConfigOption, JsonOption, config_flags

key_app = App(help="Make, list and revoke the keys by which clients of a server come in.")

Scope = Literal["read", "user", "operator"]


@key_app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call it, as in laptop.", show_default=False)],
    user: Annotated[str, typer.Option(metavar="USER", help="The user whose programs and processes it opens.", show_default=False)],
    scope: Annotated[
        Scope, typer.Option(help="read: look at one's own; user: launch, too; operator: see and end what is anybody's.")
    ] = "user",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it ends, as in 12h or 30d; never if not given.", show_default=False)
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A public key of SSH in place of a secret, as in ~/.ssh/id_ed25519.pub.", show_default=False),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Make a key and print it, this once. A running server takes it at once."""
    from pie.cli.keys import add as make

    flags = config_flags(config, None, False, None)
    raise typer.Exit(make(flags, name, user=user, scope=scope, expires=expires, public_key=public_key))


@key_app.command("list")
def list_(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the keys, without their secrets."""
    from pie.cli.keys import show

    raise typer.Exit(show(config_flags(config, None, False, None), as_json=as_json))


@key_app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a key; `pie key list` lists them.", show_default=False)],
    config: ConfigOption = None,
) -> None:
    """Revoke a key. A running server ends the connections that use it."""
    from pie.cli.keys import revoke as take

    raise typer.Exit(take(config_flags(config, None, False, None), key_id))
