"""MCP servers that clients run, and the programs that they launch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket

from pie.client import Client
from support.launching import ROOT
from support.serving import Served, client_of, install_source, refused, scenario, serving

SERVER = str(ROOT / "tests/support/mcp_server.py")
ASKING = """
import json
from inferlet import InferletError, mcp, runtime, session

def ask(tool, args):
    try:
        with mcp.connect("files") as files:
            return json.loads(files.call_tool(tool, args))["content"][0]["text"]
    except InferletError as error:
        return error.code

async def main(input):
    if input == "servers":
        return mcp.available_servers()
    if input == "wait":
        found = [ask("add", {"a": 1, "b": 2})]
        session.send("asked")
        while True:
            try:
                await session.receive()
            except session.SessionClosed:
                return [*found, ask("add", {"a": 1, "b": 2})]
    if input == "child":
        return await runtime.spawn(".", {"tool": "add", "args": {"a": 1, "b": 2}})
    return ask(input["tool"], input.get("args"))
"""


async def asked(client: Client, tool: str, **args: object) -> object:
    process = await client.launch("asking", input={"tool": tool, "args": args})
    return await process.result()


@pytest.mark.rows("RS-220", language="client")
@scenario
async def test_programs_find_the_servers_of_the_client_that_launched_them(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client, client_of(server) as other:
        await install_source(client, tmp_path, ASKING, "asking")
        await client.register_mcp_server("files", sys.executable, [SERVER, "noisy"], "stdio", env={"OWN": "a=b"}, cwd=tmp_path)
        assert await (await client.launch("asking", input="servers")).result() == ["files"]
        assert await asked(client, "add", a=1, b=2) == "3"
        assert await asked(client, "variable", name="OWN") == "a=b"
        assert await asked(client, "folder") == str(tmp_path)
        assert await (await client.launch("asking", input="child")).result() == "3"
        # Another connection of the same user has none.
        assert await (await other.launch("asking", input="servers")).result() == []
        assert await asked(other, "add", a=1, b=2) == "unknown-mcp-server"
        await client.unregister_mcp_server("files")
        assert await asked(client, "add", a=1, b=2) == "unknown-mcp-server"
        assert (await refused(client.unregister_mcp_server("files"))).code == "unknown-mcp-server"


@scenario
async def test_a_server_of_a_client_that_crashes_or_cannot_be_started_has_a_code(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        await install_source(client, tmp_path, ASKING, "asking")
        await client.register_mcp_server("files", sys.executable, [SERVER])
        first = await asked(client, "pid")
        assert await asked(client, "crash") == "mcp-unavailable"
        assert await asked(client, "pid") != first
        # What the client cannot carry is refused, and what the engine does not take.
        assert await asked(client, "long", n=10_000_000) in {"mcp-error", "limit-mcp-bytes"}
        assert await asked(client, "add", a=1, b=2) == "3"
        await client.register_mcp_server("files", "/nowhere/at/all")
        assert await asked(client, "add", a=1, b=2) == "mcp-unavailable"


@scenario
async def test_no_setting_of_the_client_is_given_to_its_servers(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("PIE_KEY", "PIE_CLIENT__KEY", "PIE_client__key")
    for name in names:
        monkeypatch.setenv(name, "secret")
    async with client_of(server) as client:
        await install_source(client, tmp_path, ASKING, "asking")
        await client.register_mcp_server("files", sys.executable, [SERVER], env={"PIE_OWN": "given"})
        assert [await asked(client, "variable", name=name) for name in (*names, "PIE_OWN")] == ["none", "none", "none", "given"]


@scenario
async def test_mistakes_of_a_registration_are_named(server: Served) -> None:
    async with client_of(server) as client:
        for name in ("", "a b", "x" * 65):
            assert (await refused(client.register_mcp_server(name, "x"))).code == "invalid-name"
        assert (await refused(client.register_mcp_server("a", "x", transport="http"))).code == "invalid-argument"  # type: ignore[arg-type]
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"cwd": 5}, "cwd is 5 (int); give a path as a str or a Path"),
            ({"cwd": b"/"}, "cwd is b'/' (bytes); give a path"),
            ({"args": "x"}, "args is 'x' (str); give a list of str"),
            ({"args": [1]}, "args[0] is 1 (int); give a str"),
            ({"env": 5}, "env is 5 (int); give a dict of variables"),
            ({"env": {"A": 1}}, "env['A'] is 1 (int); give a str"),
            ({"env": {1: "A"}}, "a name in env is 1 (int); give a str"),
            ({"command": 5}, "command is 5 (int); give a str"),
        ]
        for given, message in wrong:
            call: dict[str, Any] = {"name": "a", "command": "x", **given}
            error = await refused(client.register_mcp_server(**call))
            assert error.code == "invalid-argument", given
            assert message in str(error)
        for number in range(256):
            await client.register_mcp_server(f"s{number}", "x")
        assert (await refused(client.register_mcp_server("more", "x"))).code == "limit-mcp-calls"
        await client.register_mcp_server("s1", "y")


@scenario
async def test_calls_fail_once_the_client_has_gone(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as served:
        async with client_of(served) as other:
            async with client_of(served) as client:
                await install_source(client, tmp_path, ASKING, "asking")
                await client.register_mcp_server("files", sys.executable, [SERVER])
                process = await client.launch("asking", input="wait", detached=True)
                async for event in process.events():
                    if getattr(event, "text", None) == "asked":
                        break
                await process.detach()
            again = await other.attach(process.pid)
            await again.close_input()
            assert await again.result() == ["3", "mcp-unavailable"]


async def told(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """The next message of that type."""
    while True:
        message: dict[str, Any] = json.loads(await socket.recv())
        if message.get("type") == kind:
            return message


@scenario
async def test_a_client_that_plays_a_server_badly_fails_its_own_calls(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client, connect_socket(server.url, compression=None, max_size=None) as socket:

        async def say(**message: Any) -> None:
            await socket.send(json.dumps(message))

        await install_source(client, tmp_path, ASKING, "asking")
        await say(type="hello", protocol=1, user="alice")
        # Lines and ends of links that there are not are passed over.
        await say(type="mcp_line", link=7, text="{}")
        await say(type="mcp_end", link=7, text="")
        await say(id=1, type="register_mcp_server", name="files")
        await say(id=2, type="launch", program="asking", input={"tool": "add", "args": {}}, attach=True)
        started = await told(socket, "mcp_start")
        assert started["server"] == "files"
        link = started["link"]
        asked = json.loads((await told(socket, "mcp_line"))["text"])
        assert asked["method"] == "initialize"
        foreign = [json.dumps({"id": number, "result": {}}) for number in (99, str(asked["id"]))]
        for noise in ("", "x", "[]", "\u0000", "[" * 100_000, *foreign):
            await say(type="mcp_line", link=link, text=noise)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        await say(type="mcp_line", link=link, text=json.dumps({"id": asked["id"], "result": hello}))
        assert json.loads((await told(socket, "mcp_line"))["text"])["method"] == "notifications/initialized"
        called = json.loads((await told(socket, "mcp_line"))["text"])
        assert called["params"] == {"name": "add", "arguments": {}}
        # An answer that is longer than any process may have fails this call.
        long = json.dumps({"id": called["id"], "result": "x" * (9 << 20)})
        await say(type="mcp_line", link=link, text=long)
        returned = await told(socket, "event")
        assert json.loads(returned["value"]) == "limit-mcp-bytes"
        await say(type="mcp_end", link=link, text="it was enough")
        await say(type="mcp_end", link=link, text="again")
        await say(id=3, type="ping")
        while json.loads(await socket.recv()).get("id") != 3:
            pass
