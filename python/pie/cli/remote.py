"""What the commands that talk to a server have in common: where it is, who asks, and how an error or Ctrl-C ends them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from pie.cli.interrupts import cancel_at_interrupt, raised

if TYPE_CHECKING:
    from pie.client import Client
    from pie.config import Config, Flags

ServerOption = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="The server, as in ws://127.0.0.1:8080.", show_default=False)
]
UserOption = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Whose programs and processes.", show_default=False)]


@dataclass(frozen=True)
class Server:
    """Where a server is, and who asks; None: what the configuration says."""

    url: str | None
    user: str | None
    flags: Flags | None = None

    def config(self) -> Config:
        """The configuration with what the options say. PieError `invalid-config`."""
        from pie.config import Flags, load

        flags = self.flags or Flags()
        return load(replace(flags, values={**flags.values, "client.url": self.url, "client.user": self.user}))


def talk(server: Server, work: Callable[[Client, Config], Awaitable[int]]) -> int:
    """Connects and does the work; answers its exit code."""
    import asyncio

    from pie.client import connect

    config = server.config()

    async def connected() -> int:
        cancel_at_interrupt()
        async with connect(config.client.url, user=config.client.user or None) as client:
            return await work(client, config)

    with raised():
        try:
            return asyncio.run(connected())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
