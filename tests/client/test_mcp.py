"""The MCP servers that a client runs: when their processes start and end, and what is carried."""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
from typing import Any

import pytest

from client.fake import Peer, fake_server, scenario
from pie.client import Client, PieError, connect
from pie.client import mcp as servers_of_clients
from pie.client.mcp import Command, McpServers
from pie.client.wire import Frame

# Says its number and its variables, then echoes messages, each behind a line of no meaning.
ECHO = """
import json, os, sys
variables = {name: os.environ.get(name) for name in ("PIE_KEY", "PIE_CLIENT__KEY", "OWN")}
print(json.dumps({"pid": os.getpid(), "variables": variables}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    print("noise", flush=True)
    sys.stdout.buffer.write(b"{\\xff}\\n")
    sys.stdout.buffer.flush()
    if message.get("long"):
        message["long"] = "x" * message["long"]
    print(json.dumps(message), flush=True)
    if message.get("end"):
        sys.exit(message["end"])
"""


async def registered(client: Client, peer_is_done: asyncio.Event, *command: str) -> None:
    """Registers a server, and waits until the other side has seen what it wants."""
    program, *args = command or (sys.executable, "-c", ECHO)
    await client.register_mcp_server("files", program, args)
    await peer_is_done.wait()


async def started(peer: Peer, link: int = 1, server: str = "files") -> None:
    await peer.tell({"type": "mcp_start", "link": link, "server": server})


async def line(peer: Peer, link: int = 1) -> dict[str, Any]:
    message = await peer.expect("mcp_line")
    assert message.keys() == {"type", "link", "text"}
    assert message["link"] == link
    said: dict[str, Any] = json.loads(message["text"])
    return said


async def tell(peer: Peer, link: int = 1, **message: Any) -> None:
    await peer.tell({"type": "mcp_line", "link": link, "text": json.dumps(message)})


async def run(script: Any, *command: str) -> None:
    """A client that registers a server and waits for the end of a script."""
    done = asyncio.Event()

    async def whole(peer: Peer) -> None:
        request = await peer.expect("register_mcp_server")
        assert request["name"] == "files"
        await peer.answer(request)
        try:
            await script(peer)
        finally:
            done.set()

    async with fake_server(whole) as address, connect(address) as client:
        await registered(client, done, *command)


@scenario
async def test_messages_are_carried_and_nothing_else() -> None:
    async def script(peer: Peer) -> None:
        await started(peer)
        assert "pid" in await line(peer)
        for number in range(3):
            await tell(peer, id=number, text="ü")
            assert await line(peer) == {"id": number, "text": "ü"}
        await tell(peer, end=3)
        assert await line(peer) == {"end": 3}
        ended = await peer.expect("mcp_end")
        assert (ended["link"], ended["text"]) == (1, "it ended (status 3)")

    await run(script)


@scenario
async def test_each_start_is_a_process_of_its_own() -> None:
    async def script(peer: Peer) -> None:
        await started(peer, 1)
        first = await line(peer, 1)
        await peer.tell({"type": "mcp_stop", "link": 1})
        await started(peer, 2)
        second = await line(peer, 2)
        assert first["pid"] != second["pid"]
        # What is said to a link that has ended is passed over.
        await tell(peer, 1, id=1)
        await tell(peer, 2, id=2)
        assert await line(peer, 2) == {"id": 2}

    await run(script)


@scenario
async def test_a_line_that_is_too_long_is_answered_by_an_error() -> None:
    async def script(peer: Peer) -> None:
        await started(peer)
        await line(peer)
        await tell(peer, id=5, long=3 << 20)
        refused = await line(peer)
        assert (refused["id"], refused["error"]["code"]) == (5, -32603)
        assert "longer than the" in refused["error"]["message"]
        await tell(peer, id=6)
        assert await line(peer) == {"id": 6}

    await run(script)


@pytest.mark.parametrize(("command", "why"), [(("/nowhere/at/all",), "cannot be started"), ((sys.executable, "-c", "exit(2)"), "status 2")])
def test_a_server_that_does_not_run_says_why(command: tuple[str, ...], why: str) -> None:
    async def script(peer: Peer) -> None:
        await started(peer)
        assert why in (await peer.expect("mcp_end"))["text"]

    @scenario
    async def whole() -> None:
        await run(script, *command)

    whole()


def test_a_server_has_the_variables_of_its_client_but_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIE_KEY", "PIE_CLIENT__KEY", "OWN"):
        monkeypatch.setenv(name, "of the client")

    async def script(peer: Peer) -> None:
        await started(peer)
        assert (await line(peer))["variables"] == {"PIE_KEY": None, "PIE_CLIENT__KEY": None, "OWN": "of the client"}

    @scenario
    async def whole() -> None:
        await run(script)

    whole()


@scenario
async def test_a_server_that_is_not_registered_has_ended() -> None:
    async def script(peer: Peer) -> None:
        await started(peer, server="others")
        assert "no such server" in (await peer.expect("mcp_end"))["text"]

    await run(script)


@scenario
async def test_processes_end_with_the_connection() -> None:
    pids: list[int] = []

    async def script(peer: Peer) -> None:
        await started(peer)
        pids.append((await line(peer))["pid"])

    await run(script)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


# Says its number, and neither ends with its input nor by what could be caught.
STUBBORN = """
import json, os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(json.dumps({"pid": os.getpid()}), flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("is_stopped_before", [False, True])
def test_a_process_that_does_not_end_by_itself_is_killed(is_stopped_before: bool) -> None:
    """Also where it was told to end before the connection closes: that a link ends twice interrupts nothing."""
    pids: list[int] = []

    async def script(peer: Peer) -> None:
        await started(peer)
        pids.append((await line(peer))["pid"])
        if is_stopped_before:
            await peer.tell({"type": "mcp_stop", "link": 1})

    @scenario
    async def whole() -> None:
        await run(script, sys.executable, "-c", STUBBORN)

    whole()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@scenario
async def test_a_registration_that_is_refused_leaves_nothing() -> None:
    async def script(peer: Peer) -> None:
        await peer.refuse(await peer.expect("register_mcp_server"), "invalid-name")
        ping = await peer.expect("ping")
        await started(peer)
        assert "no such server" in (await peer.expect("mcp_end"))["text"]
        await peer.answer(ping)

    async with fake_server(script) as address, connect(address) as client:
        with pytest.raises(PieError) as raised:
            await client.register_mcp_server("files", sys.executable, ["-c", ECHO])
        assert raised.value.code == "invalid-name"
        await client.ping()


@scenario
async def test_a_registration_that_is_refused_leaves_the_one_before() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("register_mcp_server"))
        await peer.refuse(await peer.expect("register_mcp_server"), "limit-mcp-calls")
        ping = await peer.expect("ping")
        await started(peer)
        assert "pid" in await line(peer)
        await peer.answer(ping)

    async with fake_server(script) as address, connect(address) as client:
        await client.register_mcp_server("files", sys.executable, ["-c", ECHO])
        with pytest.raises(PieError) as raised:
            await client.register_mcp_server("files", "/nowhere/at/all")
        assert raised.value.code == "limit-mcp-calls"
        await client.ping()


@scenario
async def test_a_registration_that_is_given_up_is_taken_back() -> None:
    has_come, is_given_up, is_taken = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        registering = await peer.expect("register_mcp_server")
        has_come.set()
        await is_given_up.wait()
        await peer.answer(registering)
        taken = await peer.expect("unregister_mcp_server")
        assert taken["name"] == "files"
        await peer.answer(taken)
        is_taken.set()
        ping = await peer.expect("ping")
        await started(peer)
        assert "no such server" in (await peer.expect("mcp_end"))["text"]
        await peer.answer(ping)

    async with fake_server(script) as address, connect(address) as client:
        registering = asyncio.create_task(client.register_mcp_server("files", sys.executable, ["-c", ECHO]))
        await has_come.wait()
        registering.cancel()
        await asyncio.wait({registering})
        assert registering.cancelled()
        is_given_up.set()
        await is_taken.wait()
        await client.ping()


# Says its number, and does not end when its input does.
DEAF = """
import json, os, signal
print(json.dumps({"pid": os.getpid()}), flush=True)
while True:
    signal.pause()
"""


@scenario
async def test_a_second_start_of_a_link_ends_the_connection_and_its_process() -> None:
    pids: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("register_mcp_server"))
        await peer.expect("ping")
        await started(peer)
        pids.append((await line(peer))["pid"])
        await started(peer)
        while True:
            await peer.receive()

    async with fake_server(script) as address, connect(address) as client:
        await client.register_mcp_server("files", sys.executable, ["-c", ECHO])
        with pytest.raises(PieError) as raised:
            await client.ping()
        assert raised.value.code == "protocol-error"
        message = "the server of Pie started an MCP server as the link 1, which is still open; connect again"
        assert raised.value.message == message
    # Nobody would end the first process, had the second taken its place.
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.parametrize("is_told", [False, True])
@scenario
async def test_a_process_that_does_not_end_by_itself_is_gone_when_the_client_is(monkeypatch: pytest.MonkeyPatch, is_told: bool) -> None:
    monkeypatch.setattr(servers_of_clients, "_END_S", 0.05)
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def say(_: str, fields: dict[str, Any]) -> None:
        await said.put(fields)

    servers = McpServers(say, 1 << 20)
    servers.register("deaf", Command((sys.executable, "-c", DEAF), {}))
    servers.take(Frame(type="mcp_start", link=1, server="deaf"))
    descriptor = os.pidfd_open(json.loads((await said.get())["text"])["pid"])
    try:
        if is_told:
            servers.take(Frame(type="mcp_stop", link=1))
        # The end of a connection says so first, and its close then.
        servers.stop()
        # What was begun is under way when it is told again.
        await asyncio.sleep(0)
        await servers.close()
        assert select.select([descriptor], [], [], 0)[0], "the process runs on"
    finally:
        os.close(descriptor)


# Neither reads nor ends.
SLEEPING = "import signal\nwhile True:\n    signal.pause()"


@pytest.mark.parametrize(
    ("n_lines", "n_bytes", "bound"),
    [
        (20, 900_000, "bytes would wait, of at most 16777216 of one server at this client (limit-mcp-bytes)"),
        (1200, 1000, "1024 lines wait, the most of one server at this client (limit-mcp-calls)"),
    ],
)
def test_a_server_that_does_not_read_ends_at_the_bound_of_what_waits(
    monkeypatch: pytest.MonkeyPatch, n_lines: int, n_bytes: int, bound: str
) -> None:
    monkeypatch.setattr(servers_of_clients, "_END_S", 0.05)

    async def script(peer: Peer) -> None:
        await started(peer)
        for number in range(n_lines):
            await tell(peer, id=number, text="x" * n_bytes)
        why = (await peer.expect("mcp_end"))["text"]
        assert why.startswith("it does not read what it is sent: ")
        assert bound in why

    @scenario
    async def whole() -> None:
        await run(script, sys.executable, "-c", SLEEPING)

    whole()


@scenario
async def test_what_waits_for_all_servers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers_of_clients, "_END_S", 0.05)
    ended: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def say(_: str, fields: dict[str, Any]) -> None:
        await ended.put(fields)

    servers = McpServers(say, 1 << 20)
    servers.register("deaf", Command((sys.executable, "-c", SLEEPING), {}))
    text = "x" * ((8 << 20) - 1)
    for link in range(1, 6):
        servers.take(Frame(type="mcp_start", link=link, server="deaf"))
    for link in (1, 1, 2, 2, 3, 3, 4, 4):
        servers.take(Frame(type="mcp_line", link=link, text=text))
    servers.take(Frame(type="mcp_line", link=5, text="{}"))
    said = await ended.get()
    assert said["link"] == 5
    assert "67108867 bytes would wait, of at most 67108864 of all servers at this client (limit-mcp-bytes)" in said["text"]
    servers.stop()
    await servers.close()
    # What waited for those that have ended waits no more.
    assert servers._waiting.n_bytes == 0


@scenario
async def test_what_waits_for_a_server_that_is_stopped_before_it_begins_waits_no_more() -> None:
    said: list[str] = []

    async def say(kind: str, _: dict[str, Any]) -> None:
        said.append(kind)

    servers = McpServers(say, 1 << 20)
    servers.register("deaf", Command((sys.executable, "-c", SLEEPING), {}))
    servers.take(Frame(type="mcp_start", link=1, server="deaf"))
    servers.take(Frame(type="mcp_line", link=1, text="{}"))
    assert servers._waiting.n_bytes == 3
    servers.take(Frame(type="mcp_stop", link=1))
    await servers.close()
    assert (servers._waiting.n_bytes, said) == (0, [])


@scenario
async def test_one_link_more_than_a_client_carries_is_refused() -> None:
    may_say = asyncio.Event()

    async def say(_: str, __: dict[str, Any]) -> None:
        await may_say.wait()

    servers = McpServers(say, 1 << 20)
    for link in range(1024):
        servers.take(Frame(type="mcp_start", link=link, server="absent"))
    with pytest.raises(PieError) as raised:
        servers.take(Frame(type="mcp_start", link=1024, server="absent"))
    message = "the server of Pie started one more MCP server than the 1024 that this client runs at once; connect again"
    assert (raised.value.code, raised.value.message) == ("limit-mcp-calls", message)
    may_say.set()
    await servers.close()
    servers.take(Frame(type="mcp_start", link=1024, server="absent"))
    await servers.close()
