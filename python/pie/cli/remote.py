"""What the commands that talk to a server have in common.

Where the server is, who asks, and how an error or Ctrl-C ends them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from pie.cli.interrupts import cancel_at_interrupt, raised
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.cli.tables import Owned
    from pie.client import Client
    from pie.config import Config, Flags

_T = TypeVar("_T", bound="Owned")

ServerOption = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="The server, as in ws://127.0.0.1:8080, or HOST:PORT.", show_default=False),
]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="The user whose programs and processes they are.", show_default=False)
]
LaunchUserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        help="The user whose process, snapshots, files and topics they are, here or in a server; else that of the key, or `anonymous`.",
        show_default=False,
    ),
]

KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="The API key; others see it in the list of processes, so set PIE_KEY or client.key_file instead.",
        show_default=False,
    ),
]
PrivateKeyOption = Annotated[
    Path | None,
    typer.Option("--private-key", metavar="FILE", help="A private key of SSH that says who you are, with --user.", show_default=False),
]

_WEBSOCKET = {"http": "ws", "https": "wss"}
# A command of a client that a message advises.
_ADVICE = re.compile(r"`(pie (?:adapter|attach|connection|install|logs|programs|ps|snapshot|stats|stop|topic|uninstall)\b[^`]*)`")
# What the protocol calls what a command asks for, at the beginning of the error of a role.
_NEEDING_ROLE = re.compile(r'^"(\w+)"(?= needs the role )')
_AS_TYPED = {
    "all_users": "`--all-users`",
    "attach": "`pie attach`",
    "connections": "`pie connection list`",
    "delete_adapter": "`pie adapter delete`",
    "delete_snapshot": "`pie snapshot delete`",
    "discard_topic": "`pie topic discard`",
    "disconnect": "`pie connection end`",
    "install": "`pie install`",
    "launch": "`pie run`",
    "terminate": "`pie stop`",
    "uninstall": "`pie uninstall`",
    "upload": "to send a program",
}
_LAYERS = ("flag", "environment", "file", "default")


@dataclass(frozen=True)
class Server:
    """Where a server is, and who asks; None: what the configuration says."""

    url: str | None
    user: str | None
    key: str | None = None
    private_key: Path | None = None
    flags: Flags | None = None

    def config(self) -> Config:
        """The configuration with what the options say. PieError `invalid-config`."""
        from pie.config import Flags, load

        flags = self.flags or Flags()
        private_key = None if self.private_key is None else str(self.private_key)
        given = {"client.url": self.url, "client.user": self.user, "client.key": self.key, "client.private_key": private_key}
        return load(replace(flags, values={**flags.values, **given}))

    def advised(self, message: str) -> str:
        """The message, with the `--server` that was given in the commands that it advises.

        A server does not know how it was called, nor which command asked for what needs another role.
        """
        if self.url is not None:
            option = f" --server {shlex.quote(self.url)}"
            message = _ADVICE.sub(lambda found: f"`{found[1]}{'' if '--server' in found[1] else option}`", message)
        return _NEEDING_ROLE.sub(lambda found: _AS_TYPED.get(found[1], found[0]), message)


def credentials(config: Config) -> dict[str, Any]:
    """What `pie.client.connect` gets to prove who asks.

    Of several ways that of the later layer counts, and a key before a private key.

    PieError `invalid-argument` for a file that holds none and a private key without a user, and `invalid-config` for
    two ways in one layer.
    """
    from pie.client.signing import read_key

    client = config.client
    ways = [name for name in ("key", "key_file", "private_key") if getattr(client, name)]
    if not ways:
        return {}
    layer = {name: _LAYERS.index(config.origins[f"client.{name}"].kind) for name in ways}
    best = [name for name in ways if layer[name] == min(layer.values())]
    if "private_key" in best and len(best) > 1:
        where = config.origins["client.private_key"]
        raise PieError("invalid-config", f"{where}: both client.{best[0]} and client.private_key are set there; leave one out")
    match best[0]:
        case "key":
            return {"key": client.key}
        case "key_file":
            return {"key": read_key(Path(client.key_file))}
    if not client.user:
        raise PieError("invalid-argument", "a private key counts together with a user; add --user NAME, or set client.user")
    return {"private_key": Path(client.private_key)}


def websocket_address(address: str) -> str:
    """The WebSocket that is meant by an address: `ws://HOST:PORT` for `http://HOST:PORT`.

    Anything else stays as it is: the client takes `HOST:PORT` too, and says what is not an address.
    """
    scheme, separator, rest = address.partition("://")
    return f"{_WEBSOCKET[scheme.lower()]}://{rest}" if separator and scheme.lower() in _WEBSOCKET else address


def refuse_server_options(options: Mapping[str, object]) -> None:
    """A usage error for the first of `options`, by name, that has a value: there is no server to tell it to."""
    for option, given in options.items():
        if given is not None:
            message = f"`{option}` only counts with `--server`: it says to a server who asks. Add --server URL, or leave it out"
            raise typer.BadParameter(message, param_hint=option)


class _Listing(Protocol[_T]):
    """A call of a client that lists what is its user's or, for an operator, everybody's."""

    def __call__(self, *, all_users: bool) -> Awaitable[list[_T]]: ...


def is_another(owner: str | None, asking: str) -> bool:
    """Whether `--of` names somebody else than who asks, which is for operators."""
    return owner not in (None, asking)


async def listed_of(owner: str | None, asking: str, listing: _Listing[_T]) -> list[_T]:
    """What a server lists of `owner`, of who asks without one.

    PieError `not-permitted` where that is somebody else and who asks is no operator.
    """
    of_other = is_another(owner, asking)
    return [one for one in await listing(all_users=of_other) if not of_other or one.user == owner]


def talk(server: Server, work: Callable[[Client, Config], Awaitable[int]]) -> int:
    """Connects and does the work; returns its exit code."""
    import asyncio

    from pie.client import connect

    config = server.config()
    proof = credentials(config)

    async def connected() -> int:
        cancel_at_interrupt()
        async with connect(websocket_address(config.client.url), user=config.client.user or None, **proof) as client:
            return await work(client, config)

    with raised():
        try:
            return asyncio.run(connected())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        except PieError as error:
            raise PieError(error.code, server.advised(error.message), error.details) from error
