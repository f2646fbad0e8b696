"""`pie snapshot`: the contexts that programs saved in a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pie.cli.tables import print_owned

if TYPE_CHECKING:
    from pie.client import Client

_COLUMNS = ("MODEL", "NAME", "TOKENS")


async def print_snapshots(client: Client, *, all_users: bool, as_json: bool) -> int:
    """Prints a line for each snapshot of the user, or of everybody."""
    snapshots = await client.snapshots(all_users=all_users)
    return print_owned(_COLUMNS, snapshots, lambda one: (one.model, one.name, str(one.tokens)), all_users=all_users, as_json=as_json)


async def delete(client: Client, model: str, name: str, owner: str | None) -> int:
    """Deletes a snapshot, one of `owner` for an operator."""
    await client.delete_snapshot(model, name, user=owner)
    return 0
