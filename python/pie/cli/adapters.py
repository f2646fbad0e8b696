"""`pie adapter`: the adapters to which programs gave names in a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pie.cli.tables import print_owned, size

if TYPE_CHECKING:
    from pie.client import Client

_COLUMNS = ("MODEL", "NAME", "SIZE")


async def print_adapters(client: Client, *, all_users: bool, as_json: bool) -> int:
    """Prints a line for each adapter of the user, or of everybody."""
    adapters = await client.adapters(all_users=all_users)
    return print_owned(_COLUMNS, adapters, lambda one: (one.model, one.name, size(one.bytes)), all_users=all_users, as_json=as_json)


async def delete(client: Client, model: str, name: str, owner: str | None) -> int:
    """Takes the name of an adapter, one of `owner` for an operator."""
    await client.delete_adapter(model, name, user=owner)
    return 0
