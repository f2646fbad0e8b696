"""`pie topic` and `pie connection`: what waits in a server, and who is connected to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pie.cli.remote import is_another, listed_of
from pie.cli.tables import age, print_json, print_owned, print_table
from pie.cli.terminal import warn
from pie.config.suggest import nearest, shortened
from pie.errors import PieError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pie.cli.remote import Server
    from pie.client import Client, TopicInfo

_TOPIC_COLUMNS = ("TOPIC", "MESSAGES", "BYTES", "PUSHES", "PULLS", "SUBSCRIPTIONS")
_CONNECTION_COLUMNS = ("CONNECTION", "USER", "ROLE", "KEY", "ADDRESS", "CLIENT", "SINCE")


async def print_topics(client: Client, *, all_users: bool, as_json: bool) -> int:
    """Prints a line for each topic of the user, or of everybody."""
    topics = await client.topics(all_users=all_users)
    return print_owned(_TOPIC_COLUMNS, topics, _topic_row, all_users=all_users, as_json=as_json)


def _topic_row(one: TopicInfo) -> tuple[str, ...]:
    counts = (one.queued, one.queued_bytes, one.waiting_pushes, one.waiting_pulls, one.subscriptions)
    return (one.topic, *map(str, counts))


async def discard(client: Client, topic: str, owner: str | None, server: Server) -> int:
    """Drops what waits in the queue of a topic, one of `owner` for an operator, and prints how much that was.

    A topic is there while something waits in it or for it: of one that is not, a warning tells.
    """
    dropped = await client.discard_topic(topic, user=owner)
    print(dropped, flush=True)
    if not dropped:
        try:
            await _tell_of_absent(client, topic, owner, server)
        except PieError as error:
            # The topic was discarded, so that the command has not failed.
            unknown = "the list of topics, by which a name that is not in use would be told of, cannot be read"
            warn(server.advised(f"{unknown} ([{error.code}] {error.message})"))
    return 0


async def _tell_of_absent(client: Client, topic: str, owner: str | None, server: Server) -> None:
    """Warns, of a topic that is not in use, that it is not, and what may be meant."""
    topics = [one.topic for one in await listed_of(owner, client.user, client.topics)]
    if topic not in topics:
        near = nearest(topic, topics)
        hint = "" if near is None else f"; did you mean {near!r}?"
        listing = "`pie topic list --all-users`" if is_another(owner, client.user) else "`pie topic list`"
        user = owner or client.user
        warn(server.advised(f"{user!r} has no topic {shortened(topic)!r} in use, which {listing} would list{hint}"))


async def print_connections(client: Client, *, as_json: bool) -> int:
    """Prints a line for each client that is connected."""
    connections = await client.connections()
    if as_json:
        print_json(connections)
        return 0
    now = time.time()
    rows = [
        (str(one.connection), one.user, one.role, one.key or "", one.address, one.client, f"{age(now - one.since)} ago")
        for one in connections
    ]
    print_table(_CONNECTION_COLUMNS, rows)
    return 0


async def end_connections(client: Client, connections: Sequence[int]) -> int:
    """Ends the connections of these numbers."""
    for connection in connections:
        await client.disconnect(connection)
    return 0
