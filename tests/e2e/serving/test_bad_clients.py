"""Clients that vanish, never read, or send what is no protocol: one clear error each, and everyone else is served as
before.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from client.fake import pack
from pie.client import Client, Event, connect
from support.serving import ECHO, FLOOD, Served, client_of, ended, exit_of, install_source, refused, scenario, serving

# Seconds that the server has patience with a client: more than one that behaves needs on a busy machine.
PATIENT_S = 3
HELLO = {"type": "hello", "protocol": 1, "user": "mallory"}


@asynccontextmanager
async def bystander(served: Served, folder: Path) -> AsyncIterator[Client]:
    """A client with a process, both of which work as before when the body is left."""
    async with client_of(served, "bystander") as client:
        await install_source(client, folder, ECHO, "echo")
        process = await client.launch("echo")
        events = process.events()
        assert await anext(events) == Event.Stdout("ready")
        yield client
        await process.send("still here")
        assert await anext(events) == Event.Stdout("<still here>")
        await process.terminate()


@asynccontextmanager
async def raw_client(served: Served, *, greet: bool = True, **options: Any) -> AsyncIterator[ClientConnection]:
    """A WebSocket that knows nothing of the protocol but the hello."""
    async with connect_socket(served.url, compression=None, max_size=None, **options) as socket:
        if greet:
            await socket.send(json.dumps(HELLO))
            assert json.loads(await socket.recv())["type"] == "hello"
        yield socket


async def closing(socket: ClientConnection) -> tuple[str | None, int | None]:
    """The code of the error that the server sends before it closes, and the code of its closing."""
    told = None
    try:
        while True:
            message = json.loads(await socket.recv())
            if message.get("type") == "error":
                told = message["error"]["code"]
                assert message["error"]["message"]
    except ConnectionClosed as closed:
        return told, closed.rcvd.code if closed.rcvd else None


GARBAGE = [
    "",
    "hello",
    "[]",
    "null",
    "{}",
    '{"id": 1}',
    '{"type": "ping"}',
    '{"id": "one", "type": "ping"}',
    '{"id": -1, "type": "ping"}',
    '{"type": "mcp_line", "link": 1}',
    '{"type": "mcp_line", "link": "one", "text": ""}',
    '{"type": "mcp_end", "link": 1, "text": "", "code": 1}',
    '{"id": 1.5, "type": "ping"}',
    "[" * 100_000,
    '{"id": 1, "type": "launch", "input": ' + "[" * 100_000 + "}",
    b"",
    b"\x01",
    b"\xff\xff\xff\xff{}",
    b"\x02\x00\x00\x00[]",
    pack({"type": "upload"}, b"x" * 100),
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@scenario
async def test_garbage_ends_its_own_connection(server: Served, tmp_path: Path, garbage: str | bytes) -> None:
    async with bystander(server, tmp_path), raw_client(server) as socket:
        await socket.send(garbage)
        told, code = await closing(socket)
        assert (told, code) == ("protocol-error", 1002)


BAD_REQUESTS = [
    ({"type": "conquer"}, "protocol-error"),
    ({"type": "ping", "more": 1}, "protocol-error"),
    ({"type": "launch"}, "protocol-error"),
    ({"type": "launch", "program": 5}, "protocol-error"),
    ({"type": "launch", "program": "nobody@1"}, "unknown-program"),
    ({"type": "launch", "program": "sha256:00"}, None),
    ({"type": "launch", "program": "nobody@1", "seed": -1}, None),
    ({"type": "launch", "program": "nobody@1", "seed": 2**64}, None),
    ({"type": "launch", "program": "nobody@1", "programs": ["a"]}, "protocol-error"),
    ({"type": "launch", "program": "nobody@1", "programs": {"a": 5}}, "invalid-argument"),
    ({"type": "launch", "program": "nobody@1", "programs": {f"p{n}": "nobody@1" for n in range(33)}}, "protocol-error"),
    ({"type": "attach", "pid": 2**63}, "unknown-process"),
    ({"type": "send", "pid": 0, "text": "x"}, None),
    ({"type": "terminate", "pid": "all"}, "protocol-error"),
    ({"type": "logs", "pid": 1, "tail_bytes": -5}, None),
]


@scenario
async def test_a_bad_request_fails_alone(server: Served, tmp_path: Path) -> None:
    async with bystander(server, tmp_path), raw_client(server) as socket:
        for number, (request, code) in enumerate(BAD_REQUESTS):
            await socket.send(json.dumps({"id": number, **request}))
            answer = json.loads(await socket.recv())
            assert answer["id"] == number, (request, answer)
            assert "ok" not in answer, (request, answer)
            if code is not None:
                assert answer["error"]["code"] == code, (request, answer)
        await socket.send(json.dumps({"id": 99, "type": "ping"}))
        assert json.loads(await socket.recv()) == {"id": 99, "ok": {}}


NAMES = ["", "a/b", "../x", "..", ".", ".hidden", "a\0b", "a b", "A", "ä", "-x", "x" * 65, "a@b", "a\nb", "con\\x"]
VERSIONS = ["", "1/2", "..", "1\0", "1 0", "v" * 33, "-1", "1@2"]


@scenario
async def test_names_that_are_none_are_refused_and_touch_no_file(server: Served, tmp_path: Path) -> None:
    def files() -> set[Path]:
        return set((server.folder / "data").rglob("*"))

    async with bystander(server, tmp_path) as client:
        program = tmp_path / "echo.py"
        before = files()
        for name, version in [*((name, "1.0") for name in NAMES if name), *(("good", version) for version in VERSIONS if version)]:
            assert (await refused(client.install(program, name=name, version=version))).code == "invalid-name", (name, version)
        for name in NAMES:
            assert (await refused(client.launch(name))).code in {"invalid-name", "unknown-program"}, name
        assert files() == before


@pytest.mark.parametrize("user", ["", "a/b", "../x", "a\0", "a b", "x" * 65, "-x"])
@scenario
async def test_users_that_are_none_are_refused(server: Served, user: str) -> None:
    async def enter() -> None:
        async with connect(server.url, user=user):
            pass

    error = await refused(enter())
    assert error.code == "invalid-name"


@pytest.mark.parametrize("protocol", [0, 2, 999])
@scenario
async def test_a_client_of_another_version_is_told_which_one_is_spoken(server: Served, tmp_path: Path, protocol: int) -> None:
    async with bystander(server, tmp_path), raw_client(server, greet=False) as socket:
        await socket.send(json.dumps({"type": "hello", "protocol": protocol, "from": "the future"}))
        error = json.loads(await socket.recv())["error"]
        assert error["code"] == "protocol-version"
        assert str(protocol) in error["message"]
        assert await closing(socket) == (None, 1002)


@pytest.mark.parametrize("first", ['{"id": 1, "type": "ping"}', "nonsense", b"\0\0\0\0", '{"type": "hello"}'])
@scenario
async def test_a_client_that_does_not_greet(server: Served, tmp_path: Path, first: str | bytes) -> None:
    async with bystander(server, tmp_path), raw_client(server, greet=False) as socket:
        await socket.send(first)
        told, code = await closing(socket)
        assert (told, code) == ("protocol-error", 1002)


@scenario
async def test_a_client_that_says_nothing_is_disconnected(tmp_path: Path) -> None:
    with serving(tmp_path, server__handshake_timeout_s=PATIENT_S) as served:
        async with bystander(served, tmp_path), raw_client(served, greet=False) as socket:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            await closing(socket)
            assert await reader.read() in {b"", b"HTTP/1.1 408 Request Timeout\r\n\r\n"}
            writer.close()


@scenario
async def test_a_client_that_falls_silent_is_disconnected(tmp_path: Path) -> None:
    with serving(tmp_path, server__ping_interval_s=0.1, server__idle_timeout_s=PATIENT_S, server__grace_s=0.001) as served:
        async with client_of(served) as client:  # which answers the server's pings
            await install_source(client, tmp_path, ECHO, "echo")
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(
                b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            hello = json.dumps(HELLO).encode()
            writer.write(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)
            heard = b""
            while piece := await reader.read(65536):  # pings are read and not answered
                heard += piece
            writer.close()
            assert heard.startswith(b"HTTP/1.1 101 ")
            assert heard.count(b"\x89\x00") > 1, "it was pinged"
            assert heard.endswith(b"\x03\xe8nothing was heard for idle_timeout_s"), "it is told why"
            process = await client.launch("echo")
            assert await anext(process.events()) == Event.Stdout("ready"), "who answers is served on"
            await process.terminate()


@scenario
async def test_half_a_frame_and_a_client_that_vanishes(server: Served, tmp_path: Path) -> None:
    async with bystander(server, tmp_path):
        for cut in (1, 2, 10):
            async with raw_client(server) as socket:
                frame = bytes([0x81, 0xFE, 0x10, 0x00, 0, 0, 0, 0]) + b"x" * 50
                socket.transport.write(frame[:cut])
                await socket.ping()
                socket.transport.abort()


@scenario
async def test_a_hundred_megabytes_are_refused(server: Served, tmp_path: Path) -> None:
    async with bystander(server, tmp_path):
        for frame in ("x" * (100 << 20), bytes(100 << 20)):
            async with raw_client(server) as socket:
                with suppress(ConnectionClosed):
                    await socket.send(frame)
                _, code = await closing(socket)
                assert code in {1009, None}, "too big, or cut off while it was still sent"


@scenario
async def test_an_upload_that_is_too_large_or_damaged(tmp_path: Path) -> None:
    with serving(tmp_path, server__max_upload_bytes=1 << 20) as served:
        async with bystander(served, tmp_path) as client:
            assert (await refused(client.upload(bytes((1 << 20) + 1)))).code == "limit-upload"
            data = bytes(1000)
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            header = {"type": "upload", "digest": digest, "bytes": len(data), "offset": 0, "last": True}
            async with raw_client(served) as socket:
                for number, (change, payload) in enumerate(
                    [
                        ({}, data[:-1]),
                        ({}, data + b"x"),
                        ({}, b"y" * len(data)),
                        ({"offset": 5}, data),
                        ({"bytes": 999}, data),
                        ({"digest": "sha256:" + "0" * 64}, data),
                    ]
                ):
                    await socket.send(pack({"id": number, **header, **change}, payload))
                    answer = json.loads(await socket.recv())
                    assert answer["id"] == number
                    assert answer["error"]["code"] in {"upload-damaged", "protocol-error"}, change
                await socket.send(pack({"id": 50, **header}, data))
                assert json.loads(await socket.recv()) == {"id": 50, "ok": {"digest": digest, "bytes": len(data)}}


@scenario
async def test_an_upload_that_is_cut_in_the_middle_leaves_nothing(server: Served, tmp_path: Path) -> None:
    data = bytes(2 << 20)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    async with bystander(server, tmp_path) as client:
        before = {path for path in (server.folder / "data").rglob("*") if path.is_file()}
        async with raw_client(server) as socket:
            header = {"id": 1, "type": "upload", "digest": digest, "bytes": len(data), "offset": 0, "last": False}
            await socket.send(pack(header, data[: 1 << 19]))
            await socket.send(json.dumps({"id": 2, "type": "ping"}))
            assert json.loads(await socket.recv()) == {"id": 2, "ok": {}}
            socket.transport.abort()
        assert (await refused(client.launch(digest))).code == "unknown-program"
        assert {path for path in (server.folder / "data").rglob("*") if path.is_file()} == before


@scenario
async def test_a_client_that_never_reads_holds_up_nobody(server: Served, tmp_path: Path) -> None:
    async with client_of(server, "mallory") as helper:
        await install_source(helper, tmp_path / "m", FLOOD, "flood")
        async with bystander(server, tmp_path):
            async with raw_client(server, max_queue=1) as socket:
                await socket.send(json.dumps({"id": 1, "type": "launch", "program": "flood", "attach": True}))
                pid = json.loads(await socket.recv())["ok"]["pid"]
                for _ in range(10):
                    await helper.ping()
                socket.transport.abort()
            await ended(helper, pid)
            assert await exit_of(helper, pid) == "cancelled"


@scenario
async def test_more_requests_than_may_be_open(server: Served, tmp_path: Path) -> None:
    async with bystander(server, tmp_path) as client, raw_client(server) as socket:
        process = await client.launch("echo")
        assert process.pid > 0
        async with client_of(server, "mallory") as helper:
            await install_source(helper, tmp_path / "m", ECHO, "quiet")
            quiet = await helper.launch("quiet")
            assert await anext(quiet.events()) == Event.Stdout("ready")
            for number in range(65):
                request = {"id": number, "type": "logs", "pid": quiet.pid, "after": 5, "follow": True}
                await socket.send(json.dumps(request))
            refusal = json.loads(await socket.recv())
            assert (refusal["id"], refusal["error"]["code"]) == (64, "protocol-error")
            await quiet.close_input()
            answers = [json.loads(await socket.recv()) for _ in range(64)]
            assert sorted(answer["id"] for answer in answers) == list(range(64))


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost.evil.example"])
@scenario
async def test_a_web_page_of_elsewhere_cannot_connect(server: Served, origin: str) -> None:
    with pytest.raises(InvalidStatus) as caught:
        async with connect_socket(server.url, origin=origin):
            pass
    assert caught.value.response.status_code == 403
    assert json.loads(caught.value.response.body)["error"]["code"] == "forbidden-origin"


@scenario
async def test_more_connections_than_may_be(tmp_path: Path) -> None:
    with serving(tmp_path, server__max_connections=3) as served:
        async with client_of(served) as first, client_of(served), client_of(served):

            async def enter() -> None:
                async with client_of(served):
                    pass

            assert (await refused(enter())).code == "limit-connections"
            await first.ping()
