"""The commands that talk to a server, and their options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pie.cli.commands import App, NamedCommand
from pie.cli.completing import complete_installed, complete_process, complete_running
from pie.cli.options import FilesOption, JsonOption
from pie.cli.remote import KeyOption, PrivateKeyOption, Server, ServerOption, UserOption, talk

if TYPE_CHECKING:
    from pie.client import Client

PidArgument = Annotated[
    int,
    typer.Argument(
        metavar="PID",
        min=1,
        help="The number of a process; `pie ps` lists them.",
        show_default=False,
        autocompletion=complete_process,
    ),
]

AllUsersOption = Annotated[bool, typer.Option("--all-users", help="For operators: those of everybody.")]
OfOption = Annotated[str | None, typer.Option("--of", metavar="USER", help="For operators: the user whose it is.", show_default=False)]

connection_app = App(help="List and end the connections of a server: for operators.")
topic_app = App(help="List the topics by which programs send to each other, and drop what waits in them.")
snapshot_app = App(help="List and delete the contexts that programs saved in a server.")
adapter_app = App(help="List and delete the adapters to which programs gave names in a server.")


def register(app: App) -> None:
    """Adds the commands to the command line."""
    for command in (ps, attach, logs, stop, install, uninstall, programs, stats):
        app.command()(command)
    app.command("kill", help="The same as `pie stop`.")(stop)
    app.add_typer(snapshot_app, name="snapshot")
    app.add_typer(adapter_app, name="adapter")
    app.add_typer(topic_app, name="topic")
    app.add_typer(connection_app, name="connection")


def _ask(asking: Server, work: Callable[[Client], Awaitable[int]]) -> NoReturn:
    """Does the work with a client of the server; its exit code is that of the command."""
    raise typer.Exit(talk(asking, lambda client, _: work(client)))


@snapshot_app.command("list")
def list_snapshots(
    all_users: AllUsersOption = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """List the snapshots that programs have saved in a server."""
    from pie.cli.snapshots import print_snapshots

    _ask(Server(server, user, key, private_key), lambda client: print_snapshots(client, all_users=all_users, as_json=as_json))


@snapshot_app.command("delete", cls=NamedCommand)
def delete_snapshot(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model whose context it is.", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name under which it was saved.", show_default=False)],
    owner: OfOption = None,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Delete a snapshot from a server."""
    from pie.cli.snapshots import delete

    _ask(Server(server, user, key, private_key), lambda client: delete(client, model, name, owner))


@adapter_app.command("list")
def list_adapters(
    all_users: AllUsersOption = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """List the adapters to which programs have given names in a server."""
    from pie.cli.adapters import print_adapters

    _ask(Server(server, user, key, private_key), lambda client: print_adapters(client, all_users=all_users, as_json=as_json))


@adapter_app.command("delete", cls=NamedCommand)
def delete_adapter(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model that it changes.", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that a program gave it.", show_default=False)],
    owner: OfOption = None,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Delete an adapter from a server; one that programs have saved in /scratch stays there.

    Contexts that were computed with it go on.
    """
    from pie.cli.adapters import delete

    _ask(Server(server, user, key, private_key), lambda client: delete(client, model, name, owner))


@topic_app.command("list")
def list_topics(
    all_users: AllUsersOption = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """List the topics that are in use in a server."""
    from pie.cli.operating import print_topics

    _ask(Server(server, user, key, private_key), lambda client: print_topics(client, all_users=all_users, as_json=as_json))


@topic_app.command("discard")
def discard_topic(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.", show_default=False)],
    owner: OfOption = None,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Drop the messages that wait in the queue of a topic, and print how many those were."""
    from pie.cli.operating import discard

    asking = Server(server, user, key, private_key)
    _ask(asking, lambda client: discard(client, topic, owner, asking))


@connection_app.command("list")
def list_connections(
    as_json: JsonOption = False,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """List the clients that are connected to a server."""
    from pie.cli.operating import print_connections

    _ask(Server(server, user, key, private_key), lambda client: print_connections(client, as_json=as_json))


@connection_app.command("end")
def end_connection(
    connections: Annotated[
        list[int], typer.Argument(metavar="NUMBER...", min=0, help="Numbers that `pie connection list` shows.", show_default=False)
    ],
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """End connections of a server.

    What their clients have launched goes on as after any disconnect.
    """
    from pie.cli.operating import end_connections

    _ask(Server(server, user, key, private_key), lambda client: end_connections(client, connections))


def ps(
    with_ended: Annotated[bool, typer.Option("--all", "-a", help="List those that have ended, too.")] = False,
    all_users: AllUsersOption = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """List the processes of a server."""
    from pie.cli.processes import Asked, print_processes

    asked = Asked(with_ended=with_ended, all_users=all_users, as_json=as_json)
    _ask(Server(server, user, key, private_key), lambda client: print_processes(client, asked))


def attach(
    pid: PidArgument,
    no_stdin: Annotated[
        bool, typer.Option("--no-stdin", help="Send nothing, and leave the input of the process open at the end of stdin.")
    ] = False,
    files: FilesOption = None,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Attach to a process: print what no client has read, go on until it ends, and send it the lines of stdin.

    The exit code is that of the program, as with `pie run`. Ctrl-C detaches and leaves the process running; `pie stop`
    ends it.
    """
    from pie.cli.attach import attach as go_on

    asking = Server(server, user, key, private_key)
    _ask(asking, lambda client: go_on(client, pid, asking, files=files, with_stdin=not no_stdin))


def logs(
    pid: PidArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the process has ended.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, metavar="BYTES", help="Only the last so many bytes.", show_default=False)] = None,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Print what a process wrote last and, once it has ended, its value or its error.

    No event is taken from a client that is attached.
    """
    from pie.cli.processes import print_logs

    _ask(Server(server, user, key, private_key), lambda client: print_logs(client, pid, tail_bytes=tail, follow=follow))


def stop(
    pids: Annotated[
        list[int],
        typer.Argument(metavar="PID...", min=1, help="Numbers of processes.", show_default=False, autocompletion=complete_running),
    ],
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """End processes of a server, and wait until they have ended."""
    from pie.cli.processes import stop_processes

    asking = Server(server, user, key, private_key)
    _ask(asking, lambda client: stop_processes(client, pids, asking))


def install(
    program: Annotated[
        Path, typer.Argument(metavar="PATH", help="A .wasm, .py, .js or .ts file, or a project folder.", show_default=False)
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its name; that of the manifest, or of the path, if not given.", show_default=False)
    ] = None,
    version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Its version; that of the manifest, or 0.1.0, if not given.", show_default=False)
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its Pie.toml; that of its folder if not given.", show_default=False)
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Have it answer requests by HTTP, at /http/NAME/ of the server.")] = False,
    shared: Annotated[bool, typer.Option("--shared", help="With --http: by one instance for all requests.")] = False,
    public: Annotated[bool, typer.Option("--public", help="With --http: of anybody, at /http/~USER/NAME/.")] = False,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Install a program in a server, and print the name by which it is launched."""
    from pie.cli.install import HttpOptions
    from pie.cli.install import install as send

    if (shared or public) and not http:
        hint = "--shared" if shared else "--public"
        raise typer.BadParameter("it says how a program serves HTTP: give --http too", param_hint=hint)
    serving = HttpOptions(shared=shared, public=public) if http else None
    raise typer.Exit(send(Server(server, user, key, private_key), program, name=name, version=version, manifest=manifest, http=serving))


def uninstall(
    program: Annotated[
        str,
        typer.Argument(
            metavar="NAME@VERSION",
            help="An installed program; NAME is enough for one of one version.",
            show_default=False,
            autocompletion=complete_installed,
        ),
    ],
    owner: OfOption = None,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Remove a program from a server.

    Processes that run it are left alone.
    """
    from pie.cli.install import uninstall as remove

    _ask(Server(server, user, key, private_key), lambda client: remove(client, program, owner))


def programs(
    all_users: AllUsersOption = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """List the programs that are installed in a server."""
    from pie.cli.install import print_programs

    _ask(Server(server, user, key, private_key), lambda client: print_programs(client, all_users=all_users, as_json=as_json))


def stats(server: ServerOption = None, user: UserOption = None, key: KeyOption = None, private_key: PrivateKeyOption = None) -> None:
    """Print the counters and gauges of a server and of its models, as JSON."""
    from pie.cli.processes import print_stats

    _ask(Server(server, user, key, private_key), print_stats)
