"""A client of a server: programs are installed and launched, processes listed and attached to."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

import msgspec

from pie import checks
from pie.client.connection import Connection, nothing
from pie.client.info import AdapterInfo, ConnectionInfo, Logs, ProcessInfo, ProgramInfo, ServerStats, SnapshotInfo, TopicInfo
from pie.client.mcp import Command
from pie.client.opening import Identity
from pie.client.process import Process
from pie.client.signing import PrivateKey, check_key
from pie.client.wire import Frame, parse, to_event
from pie.errors import PieError
from pie.events import AnyEvent, Event, LastEvent
from pie.programs import ENDINGS

if TYPE_CHECKING:
    from pie.client.programs import Package

DEFAULT_ADDRESS = "ws://127.0.0.1:8080"
# A host, in brackets where it is an address of IPv6, and a port.
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/:?#\[\]@]+):[0-9]{1,5}(/.*)?")
MAX_NAME_BYTES = 128
"""Of what an upload is called."""
# What the server takes for meant, at the end of its message.
_HINT = re.compile(r'; did you mean "[^"]*"\?$')
_PROGRAM = "a str: NAME@VERSION, or NAME"
_NO_SUCH_PROGRAM = frozenset({"unknown-program", "invalid-name"})
"""Codes of a launch whose program the server does not know, or does not take for the name of one."""


class _Outcome(msgspec.Struct, frozen=True):
    outcome: Frame | None


class _Launched(msgspec.Struct, frozen=True):
    pid: int
    launch_seed: int


class _Attached(msgspec.Struct, frozen=True):
    pid: int


class _Processes(msgspec.Struct, frozen=True):
    processes: list[ProcessInfo]


class _Snapshots(msgspec.Struct, frozen=True):
    snapshots: list[SnapshotInfo]


class _Adapters(msgspec.Struct, frozen=True):
    adapters: list[AdapterInfo]


class _Programs(msgspec.Struct, frozen=True):
    programs: list[ProgramInfo]


class _Connections(msgspec.Struct, frozen=True):
    connections: list[ConnectionInfo]


class _Topics(msgspec.Struct, frozen=True):
    topics: list[TopicInfo]


class _Discarded(msgspec.Struct, frozen=True):
    dropped: int


_launched = msgspec.json.Decoder(_Launched)
_attached = msgspec.json.Decoder(_Attached)
_processes = msgspec.json.Decoder(_Processes)
_programs = msgspec.json.Decoder(_Programs)
_snapshots = msgspec.json.Decoder(_Snapshots)
_adapters = msgspec.json.Decoder(_Adapters)
_connections = msgspec.json.Decoder(_Connections)
_topics = msgspec.json.Decoder(_Topics)
_discarded = msgspec.json.Decoder(_Discarded)
_outcomes = msgspec.json.Decoder(_Outcome)
_logs = msgspec.json.Decoder(Logs)
_stats = msgspec.json.Decoder(dict[str, Any])


class Client:
    """An open connection to a server, from `connect`. Any method may be cancelled at any time.

    Every method raises PieError: the server's, `connection-failed`, and `invalid-argument` for an argument of the wrong
    type or out of its range, before anything is sent.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def user(self) -> str:
        """Whose programs and processes this client sees."""
        return self._connection.hello.user

    @property
    def role(self) -> str:
        """What this client may do: `read`, `user` or `operator`."""
        return self._connection.hello.role

    @property
    def server(self) -> str:
        """The name and version of the server."""
        return self._connection.hello.server

    @property
    def instance(self) -> str:
        """The name by which programs know the engine of the server."""
        return self._connection.hello.instance

    @property
    def is_draining(self) -> bool:
        """Whether the server has said that it is about to end: it launches nothing more."""
        return self._connection.draining

    async def close(self) -> None:
        """Ends the connection: every call and loop that waits gets `connection-failed`.

        A second call waits for the first. Processes go on for a while, so that this user can attach to them again;
        detached ones go on without limit.
        """
        await self._connection.close()

    async def ping(self) -> None:
        """Answers when the server does."""
        await self._connection.request("ping", {}, nothing)

    async def upload(self, program: str | Path | bytes, *, manifest: str | None = None, name: str | None = None) -> str:
        """Sends a program, or what lies at a path, and returns its digest, which can be launched on this connection.

        What cannot run from its own files is built first, which may take minutes. `manifest`, the text of a `Pie.toml`,
        takes the place of the one in its folder; bytes are sent as they are. Lists show its processes with `name`: that
        of the path where none is given. Raises PieError `limit-upload` where it is larger than the server takes,
        `invalid-name`, and the errors of a program that cannot be read or built.
        """
        given = checks.program(program)
        manifest = None if manifest is None else checks.text("manifest", manifest)
        if name is not None:
            name = checks.text("name", name)
        if isinstance(given, bytes):
            return await self._upload(given, name)
        return await self._upload(await asyncio.to_thread(_launchable, given, manifest), file_name(given) if name is None else name)

    async def install(
        self,
        program: str | Path | bytes,
        *,
        name: str | None = None,
        version: str | None = None,
        manifest: str | None = None,
    ) -> str:
        """Installs a program under `name@version`, which is answered; one of the same name and version is replaced.

        The name and the version are those of the manifest (the text of a `Pie.toml`; of its folder, or the one that it
        carries, where none is given), else of the path and 0.1.0. What cannot run from its own files is built first.
        The errors are those of `upload`.
        """
        return await self._install(program, name, version, manifest)

    async def launch_daemon(  # noqa: PLR0913  # those of `install`, and how it serves
        self,
        program: str | Path | bytes,
        *,
        name: str | None = None,
        version: str | None = None,
        manifest: str | None = None,
        shared: bool = True,
        public: bool = False,
    ) -> str:
        """Installs a program that serves HTTP, and returns the path by which the server answers with it.

        The path is on the port of the server, as in `/http/chat@0.1.0/`. One instance answers all requests, which
        begins with the first of them; without `shared` each has its own. With `public` anybody may ask, and otherwise
        only this user, by their key. It serves until it is uninstalled. The errors are those of `install`, and
        `invalid-argument` where the table `[http]` of its manifest says otherwise.
        """
        http = {"shared": checks.flag("shared", shared), "public": checks.flag("public", public)}
        installed = await self._install(program, name, version, manifest, {"http": http})
        return f"/http/~{self.user}/{installed}/" if public else f"/http/{installed}/"

    async def uninstall(self, name: str, version: str, *, user: str | None = None) -> None:
        """Removes an installed program; processes that run it are left alone. An operator may name another `user`."""
        fields = {"name": checks.text("name", name), "version": checks.text("version", version)} | _of(user)
        await self._connection.request("uninstall", fields, nothing)

    async def programs(self, *, all_users: bool = False) -> list[ProgramInfo]:
        """The programs that this user has installed, by name and version.

        For an operator, with `all_users`, those of everybody.
        """
        return await self._connection.request("programs", _everybody(all_users), lambda raw: parse(raw, _programs).programs)

    async def check_program(self, program: str, *, digest: str | None = None) -> bool:
        """Whether this user has installed `program`, which is `name@version`, or `name` for any version.

        With `digest` (that of a `ProgramInfo`, or what `upload` answered), whether it is that program.
        """
        checks.text("program", program, _PROGRAM)
        if digest is not None:
            checks.text("digest", digest)
        return any(digest in (None, found.digest) for found in await self._installed(program))

    async def resolve_version(self, program: str) -> str:
        """The `name@version` that a launch of `program` runs: of a `name`, its highest version.

        Raises PieError `unknown-program` where this user has installed none.
        """
        checks.text("program", program, _PROGRAM)
        installed = await self._installed(program)
        if not installed:
            message = f"{self.user!r} has no program {program!r}; install it first (`programs` lists those that are installed)"
            raise PieError("unknown-program", message, {"program": program})
        return f"{installed[-1].name}@{installed[-1].version}"

    async def snapshots(self, *, all_users: bool = False) -> list[SnapshotInfo]:
        """The snapshots that programs of this user have saved, by model and name.

        For an operator, with `all_users`, those of everybody.
        """
        return await self._connection.request("snapshots", _everybody(all_users), lambda raw: parse(raw, _snapshots).snapshots)

    async def delete_snapshot(self, model: str, name: str, *, user: str | None = None) -> None:
        """Forgets a snapshot of this user; an operator may name another. Raises PieError `snapshot-missing`."""
        await self._connection.request("delete_snapshot", _of_model(model, name, user), nothing)

    async def adapters(self, *, all_users: bool = False) -> list[AdapterInfo]:
        """The adapters to which programs of this user gave names, by model and name.

        For an operator, with `all_users`, those of everybody.
        """
        return await self._connection.request("adapters", _everybody(all_users), lambda raw: parse(raw, _adapters).adapters)

    async def delete_adapter(self, model: str, name: str, *, user: str | None = None) -> None:
        """Takes the name of an adapter of this user; an operator may name another.

        Contexts that were computed with it go on. Raises PieError `adapter-missing`, and `adapter-busy` while a pass is
        computed with it.
        """
        await self._connection.request("delete_adapter", _of_model(model, name, user), nothing)

    async def topics(self, *, all_users: bool = False) -> list[TopicInfo]:
        """The topics by which programs of this user send to each other, by name.

        For an operator, with `all_users`, those of everybody.
        """
        return await self._connection.request("topics", _everybody(all_users), lambda raw: parse(raw, _topics).topics)

    async def discard_topic(self, topic: str, *, user: str | None = None) -> int:
        """Drops the messages that wait in the queue of a topic of this user; an operator may name another.

        Returns how many those were. Programs that wait for a message go on waiting, and subscriptions are left alone.
        """
        fields = {"topic": checks.text("topic", topic)} | _of(user)
        return await self._connection.request("discard_topic", fields, lambda raw: parse(raw, _discarded).dropped)

    async def connections(self) -> list[ConnectionInfo]:
        """The clients that are connected, as they came: for operators. Raises PieError `not-permitted`."""
        return await self._connection.request("connections", {}, lambda raw: parse(raw, _connections).connections)

    async def disconnect(self, connection: int) -> None:
        """Ends the connection of a client, who gets the error `cancelled`: for operators.

        Raises PieError `not-permitted`, and `invalid-argument` where no client has that number.
        """
        fields = {"connection": checks.whole("connection", connection, least=0)}
        await self._connection.request("disconnect", fields, nothing)

    async def launch(  # noqa: PLR0913  # a field each
        self,
        program: str,
        input: Any = None,  # noqa: A002  # what the entry of a program calls it
        *,
        args: Sequence[str] = (),
        seed: int | None = None,
        token_budget: int | None = None,
        credits: float | None = None,  # noqa: A002  # what every client calls it
        limits: Mapping[str, float | None] | None = None,
        programs: Mapping[str, str] | None = None,
        detached: bool = False,
        window_bytes: int | None = None,
    ) -> Process:
        """Launches `name@version`, `name` (its newest version) or the digest of an upload, and attaches to it.

        `input` is any JSON value, `args` the unparsed arguments; `seed` repeats a run. `token_budget` bounds the tokens
        that the process may put into its contexts, `credits` is what it begins with in each model to bid for pages
        where those are short, and `limits` lowers limits of the engine by their names, as in `{"cpu_s": 10}`. The
        process and its children can start `programs` by their names: each is given as `program` is. A process ends some
        time after its client has gone, unless it was launched `detached`. `window_bytes` of events are sent before they
        are read, and more hold the program up: detach from one whose events you do not want. A path is for `run`, or
        for `upload`, whose answer is launched.
        """
        fields: dict[str, Any] = {
            "program": checks.text("program", program, "a str: NAME@VERSION, NAME, or what `upload` answered"),
            "input": checks.json_value("input", input),
            "args": checks.texts("args", args),
            "detached": checks.flag("detached", detached),
            "attach": True,
        }
        for name, number in (("seed", seed), ("token_budget", token_budget)):
            if number is not None:
                fields[name] = checks.whole(name, number)
        if credits is not None:
            fields["credits"] = checks.amount("credits", credits)  # older servers do not know the field
        if limits is not None:
            fields["limits"] = checks.limits("limits", limits)
        if programs is not None and checks.programs("programs", programs):
            fields["programs"] = dict(programs)  # older servers do not know the field
        if window_bytes is not None:
            fields["window_bytes"] = checks.whole("window_bytes", window_bytes, least=1)

        def accept(raw: msgspec.Raw) -> Process:
            launched = parse(raw, _launched)
            stream = self._connection.attach(launched.pid, window_bytes=self._window(window_bytes))
            return Process(self._connection, stream, launched.launch_seed)

        def undo(process: Process) -> None:
            self._connection.post("terminate", {"pid": process.pid})

        try:
            return await self._connection.request("launch", fields, accept, undo=undo)
        except PieError as error:
            if error.code not in _NO_SUCH_PROGRAM or not _is_path(program):
                raise
            raise PieError(error.code, _told_of_path(self.user, program, error), error.details) from None

    async def run(  # noqa: PLR0913  # those of `launch`
        self,
        program: str | Path | bytes,
        input: Any = None,  # noqa: A002  # what the entry of a program calls it
        *,
        manifest: str | None = None,
        args: Sequence[str] = (),
        seed: int | None = None,
        token_budget: int | None = None,
        credits: float | None = None,  # noqa: A002
        limits: Mapping[str, float | None] | None = None,
        programs: Mapping[str, str] | None = None,
        window_bytes: int | None = None,
        on_event: Callable[[AnyEvent], object] | None = None,
    ) -> Any:
        """Runs a program to its end and returns what it returned: uploads what is a path, launches, waits.

        A Path and bytes are uploaded as by `upload`, with their `manifest`, and so is a text that has a `/` or ends as
        programs do (`.py`, `.js`, `.mjs`, `.ts`, `.wasm`), or is `.`. Any other text is what `launch` takes. `on_event`
        is called with each event; without it what the program writes is passed over. Nothing is sent to the program,
        whose `receive` fails. To give up the call, or an exception of `on_event`, ends the program. An error of the
        program is a PieError, as in `Process.result`.
        """
        checks.function("on_event", on_event, "an event")
        given = program
        if not isinstance(program, str) or _is_path(program):
            given = await self.upload(program, manifest=manifest)
        elif manifest is not None:
            raise checks.refused("manifest", manifest, "None: what the server has carries a manifest of its own")
        options: dict[str, Any] = {"args": args, "seed": seed, "token_budget": token_budget, "credits": credits}
        options |= {"limits": limits, "programs": programs}
        process = await self.launch(cast("str", given), input=input, window_bytes=window_bytes, **options)
        try:
            self._connection.post("close_input", {"pid": process.pid})
            if on_event is not None:
                async for event in process.events():
                    on_event(event)
            return await process.result()
        except BaseException:
            if not process.has_ended:
                self._connection.post("terminate", {"pid": process.pid})
            raise

    async def attach(self, pid: int, *, after_seq: int = 0, window_bytes: int | None = None) -> Process:
        """Attaches to a process, running or ended: its events come from the first that nobody has read.

        Events up to `after_seq` are passed over: what was read on a connection that broke may come again.
        Raises PieError `unknown-process`, `process-attached` while a client is attached, or `invalid-argument` for an
        `after_seq` beyond the last event of the process.
        """
        fields = _pid(pid) | ({} if window_bytes is None else {"window_bytes": checks.whole("window_bytes", window_bytes, least=1)})
        after_seq = checks.whole("after_seq", after_seq)
        if after_seq:
            # Older servers do not know the field, and need none where there is nothing to pass over.
            fields["after_seq"] = after_seq

        def accept(raw: msgspec.Raw) -> Process:
            attached = parse(raw, _attached)
            stream = self._connection.attach(attached.pid, window_bytes=self._window(window_bytes), after_seq=after_seq)
            return Process(self._connection, stream, None)

        def undo(process: Process) -> None:
            self._connection.post("detach", {"pid": process.pid})

        return await self._connection.request("attach", fields, accept, undo=undo)

    async def list(self, *, all: bool = False, all_users: bool = False) -> list[ProcessInfo]:  # noqa: A002
        """The processes of this user that run; with `all`, also those that ended and are still kept.

        For an operator, with `all_users`, everybody's.
        """
        fields = {"all": checks.flag("all", all)} | _everybody(all_users)
        return await self._connection.request("processes", fields, lambda raw: parse(raw, _processes).processes)

    async def logs(self, pid: int, *, tail_bytes: int | None = None, after: int = 0, follow: bool = False) -> Logs:
        """What a process wrote after the position `after`, at any time, whoever is attached; no event is taken by it.

        At most the last `tail_bytes`. With `follow`, waits until there is some or the process has ended.
        """
        fields = _pid(pid) | {"after": checks.whole("after", after), "follow": checks.flag("follow", follow)}
        if tail_bytes is not None:
            fields["tail_bytes"] = checks.whole("tail_bytes", tail_bytes)
        return await self._connection.request("logs", fields, lambda raw: parse(raw, _logs))

    async def outcome(self, pid: int) -> LastEvent | None:
        """How a process ended: its last event, `Return` or `Error`, whoever has taken it; None while it runs."""

        def accept(raw: msgspec.Raw) -> LastEvent | None:
            last = parse(raw, _outcomes).outcome
            event = None if last is None else to_event(last, b"")
            if event is None or isinstance(event, Event.Return | Event.Error):
                return event
            raise PieError("protocol-error", f"the server says that process {pid} ended with {last.kind if last else None!r}")

        return await self._connection.request("outcome", _pid(pid), accept)

    async def terminate(self, pid: int) -> None:
        """Ends a process of this user, or for an operator of anybody, whoever is attached to it."""
        await self._connection.request("terminate", _pid(pid), nothing)

    async def register_mcp_server(  # noqa: PLR0913  # a field each
        self,
        name: str,
        command: str,
        args: Sequence[str] = (),
        transport: Literal["stdio"] = "stdio",
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> None:
        """Offers an MCP server to the programs that this connection launches, and to their children, by a name.

        This client starts `command` with `args` when a program asks for the server, speaks to it by its standard input
        and output (`stdio`, the one transport), and ends it with the connection. `env` are variables beside those of
        this process, of which it gets all but those that begin with `PIE_`. A server of the operator with that name
        gives way, and so does one that was registered by it before. Raises PieError `invalid-argument`, `invalid-name`,
        and `limit-mcp-calls` where there are too many; a server that had the name before stays then.
        """
        if transport != "stdio":
            raise checks.refused("transport", transport, "'stdio'; servers that speak HTTP are configured at the server of Pie")
        checks.text("name", name)
        argv = (checks.text("command", command), *checks.texts("args", args))
        given = {} if env is None else checks.variables("env", env)
        folder = None if cwd is None else checks.path("cwd", cwd)
        variables = await asyncio.to_thread(_variables_of_server, given)
        mcp = self._connection.mcp
        before = mcp.register(name, Command(argv, variables, folder))
        fields = {"name": name}

        def undo(_: None) -> None:
            if before is None:
                self._connection.post("unregister_mcp_server", fields)

        try:
            await self._connection.request("register_mcp_server", fields, nothing, undo=undo)
        except BaseException:  # a call that is cancelled, too
            if before is None:
                mcp.unregister(name)
            else:
                mcp.register(name, before)
            raise

    async def unregister_mcp_server(self, name: str) -> None:
        """Takes an MCP server back: programs find it no more. Raises PieError `unknown-mcp-server`."""
        await self._connection.request("unregister_mcp_server", {"name": checks.text("name", name)}, nothing)
        self._connection.mcp.unregister(name)

    async def stats(self) -> ServerStats:
        """What this user has at the server.

        For an operator also what everybody has, and what the engine counts of each model.
        """
        return await self._connection.request("stats", {}, lambda raw: cast("ServerStats", parse(raw, _stats)))

    install_program = install
    launch_process = launch
    attach_process = attach
    list_processes = list  # noqa: A003  # the method of this class, as its older name has it
    terminate_process = terminate
    """Longer names of the same methods."""

    async def _installed(self, program: str) -> Sequence[ProgramInfo]:
        """What is installed as `name@version`, or the versions of `name`, oldest first."""
        name, at, version = program.partition("@")
        return [found for found in await self.programs() if found.name == name and (not at or found.version == version)]

    async def _install(
        self,
        program: str | Path | bytes,
        name: str | None,
        version: str | None,
        manifest: str | None,
        more: Mapping[str, Any] | None = None,
    ) -> str:
        """Installs a program under `name@version`, which is returned; `more` are fields of the request."""
        for argument, value in (("name", name), ("version", version), ("manifest", manifest)):
            if value is not None:
                checks.text(argument, value)
        package = await asyncio.to_thread(_read, checks.program(program), manifest)
        name, version = name or package.name, version or package.version
        described = {} if package.manifest is None else {"manifest": package.manifest}
        fields = {"name": name, "version": version, "digest": await self._upload(package.data), **described, **(more or {})}
        await self._connection.request("install", fields, nothing)
        return f"{name}@{version}"

    async def _upload(self, data: bytes, name: str | None = None) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        await self._connection.upload(data, digest, name)
        return digest

    def _window(self, asked_bytes: int | None) -> int:
        return self._connection.hello.limits.window_bytes if asked_bytes is None else asked_bytes


def _is_path(program: str) -> bool:
    """Whether a text that names a program looks like a path, and not like what a server calls it."""
    return "/" in program or program in {".", ".."} or program.endswith(ENDINGS)


def _told_of_path(user: str, program: str, error: PieError) -> str:
    """What to do with a path that was launched. The server has a remedy of its own, for those who have no `run`."""
    # The configuration brings the engine along, which is large.
    from pie.config.suggest import shortened  # noqa: PLC0415

    hint = _HINT.search(error.message)
    remedy = "it looks like a path: `run(path, input)` uploads and launches it, and `upload(path)` returns what can be launched"
    return f"{user!r} has no program {shortened(program)!r}; {remedy}{hint[0] if hint else ''}"


def file_name(path: Path) -> str | None:
    """What an upload of the file or folder at a path is called; None where no part of that can be shown."""
    called = "".join(one for one in path.name or path.resolve().name if one.isprintable())
    return called.encode()[:MAX_NAME_BYTES].decode(errors="ignore").strip() or None


def _pid(pid: int) -> dict[str, int]:
    return {"pid": checks.whole("pid", pid, least=1)}


def _everybody(all_users: bool) -> dict[str, bool]:
    """Nothing where it is not asked for: older servers do not know the field."""
    return {"all_users": True} if checks.flag("all_users", all_users) else {}


def _of(user: str | None) -> dict[str, str]:
    return {} if user is None else {"user": checks.text("user", user)}


def _of_model(model: str, name: str, user: str | None) -> dict[str, str]:
    """What a user has of a model under a name."""
    return {"model": checks.text("model", model), "name": checks.text("name", name)} | _of(user)


def _variables_of_server(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of an MCP server: those of this process but for what is for Pie, and what is given."""
    # The configuration brings the engine along, which is large.
    from pie.config.environment import environment_of_others  # noqa: PLC0415

    return {**environment_of_others(), **given}


def _read(program: Path | bytes, manifest: str | None) -> Package:
    # The engine is large, and only building and reading need it.
    from pie.client.programs import read_package  # noqa: PLC0415

    return read_package(program, manifest)


def _launchable(program: Path, manifest: str | None) -> bytes:
    return _read(program, manifest).launchable()


def _identity(user: str | None, key: str | None, private_key: PrivateKey | str | Path | None) -> Identity:
    if user is not None:
        checks.text("user", user)
    if key is not None:
        key = check_key(checks.secret("key", key))
    if private_key is None:
        return Identity(user, key)
    if key is not None:
        raise PieError("invalid-argument", "a key and a private key were given; give one of them", {"argument": "private_key"})
    if user is None:
        raise PieError("invalid-argument", "a private key counts together with a user; give `user`, too", {"argument": "user"})
    if not isinstance(private_key, PrivateKey | str | Path):
        raise checks.refused("private_key", private_key, "a PrivateKey, or the path of one")
    return Identity(user, None, private_key if isinstance(private_key, PrivateKey) else PrivateKey.load(private_key))


class Connecting:
    """A connection that is about to be opened, from `connect`."""

    def __init__(self, address: str, who: Callable[[], Identity], timeout_s: float) -> None:
        self._address = address
        self._who = who
        self._timeout_s = timeout_s
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    if not TYPE_CHECKING:  # for type checkers it is no context manager

        def __enter__(self) -> NoReturn:
            raise TypeError("a connection is opened by `async with connect(...) as client`; that of pie.client.sync by `with`")

        def __exit__(self, *_error: object) -> None:
            """Never: nothing is entered."""

    async def __aexit__(self, *_error: object) -> None:
        if self._client is not None:
            await self._client.close()

    if not TYPE_CHECKING:  # type checkers say it better

        def __getattr__(self, name: str) -> NoReturn:
            remedy = "open it by `async with connect(...) as client`, or by `client = await connect(...)`"
            raise AttributeError(f"a connection that is not open has no {name!r}; {remedy}")

    async def _open(self) -> Client:
        checks.text("address", self._address, "a str, as in 'ws://127.0.0.1:8080'")
        checks.time_s("timeout_s", self._timeout_s)
        address = f"ws://{self._address}" if _HOST_AND_PORT.fullmatch(self._address) else self._address
        return Client(await Connection.open(address, self._who(), timeout_s=self._timeout_s))


def connect(
    address: str = DEFAULT_ADDRESS,
    *,
    user: str | None = None,
    key: str | None = None,
    private_key: PrivateKey | str | Path | None = None,
    timeout_s: float = 10.0,
) -> Connecting:
    """Connects to the server at `address` (`ws://HOST:PORT`, or `HOST:PORT`) as `user`.

    `async with connect(...) as client` closes the connection at the end of the block. `client = await connect(...)`
    leaves that to `await client.close()`.

    Where the server has to know who asks, `key` is an API key (`pie key add`), whose user one is then; or `private_key`
    one whose public half the operator has added, a `PrivateKey` or the path of one, with the `user` whose it is.

    Raises PieError `authentication-required`, `authentication-failed` and `limit-attempts` where the server does not
    let one in, `connection-failed` where there is no server, `protocol-version` where it is of another version,
    `invalid-argument` for what is no address, user, key or time.
    """
    return Connecting(address, lambda: _identity(user, key, private_key), timeout_s)
