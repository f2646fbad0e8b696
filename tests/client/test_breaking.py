"""Connections that do not come about, break, or carry what is no protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
from http import HTTPStatus

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from client.fake import Peer, fake_server, pack, raw_server, scenario
from pie.client import Event, PieError, connect, opening
from support.command import environment

EVENT = {"type": "event", "pid": 1, "seq": 1}
GARBAGE = [
    "",
    "hello",
    "[]",
    "{}",
    "[" * 200_000,
    '{"id": "1"}',
    '{"id": 999, "ok": {}}',
    '{"id": 2}',
    '{"id": 2, "ok": []}',
    '{"id": 2, "ok": null}',
    json.dumps(EVENT | {"kind": "riddle"}),
    json.dumps(EVENT | {"seq": "one", "kind": "stdout"}),
    json.dumps(EVENT | {"kind": "stdout", "text": 5}),
    b"",
    b"\x01\x02",
    b"\xff\xff\xff\xff{}",
    pack({"type": "event"}, b"")[:-2],
    b"\x04\x00\x00\x00\xff\xfe\xfd\xfc",
]


@scenario
async def test_a_broken_connection_ends_every_wait_at_once() -> None:
    launched = asyncio.Event()

    async def script(peer: Peer) -> None:
        for pid in (1, 2):
            await peer.answer(await peer.expect("launch"), pid=pid, launch_seed=0)
        for _ in range(30):
            await peer.receive()
        await launched.wait()
        peer.socket.transport.abort()

    async with fake_server(script) as address, connect(address) as client:
        read, awaited = await client.launch("p@1"), await client.launch("p@1")
        events = read.events()
        calls = [asyncio.ensure_future(call) for call in (anext(events), awaited.result(), *(client.ping() for _ in range(200)))]
        launched.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {outcome.code for outcome in outcomes} == {"connection-failed"}
        assert all("pie serve" in outcome.message for outcome in outcomes)
        for call in (client.ping(), client.launch("p@1"), read.send("x"), read.result(), anext(events)):
            with pytest.raises(PieError) as caught:
                await call
            assert caught.value.code in {"connection-failed"}


@scenario
async def test_what_arrived_before_the_break_is_still_given() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        for number in range(3):
            await peer.event(1, "stdout", text=str(number))
        await peer.socket.close(1001, "restart")

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        with pytest.raises(PieError, match="1001: restart"):
            await client.ping()
        events = process.events()
        assert [(await anext(events)).text for _ in range(3)] == ["0", "1", "2"]
        with pytest.raises(PieError, match="1001: restart") as caught:
            await anext(events)
        assert caught.value.code == "connection-failed"


@scenario
async def test_a_transport_that_ended_with_its_last_byte_can_be_closed() -> None:
    async def script(peer: Peer) -> None:
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        transport = client._connection._socket.transport
        # What the transport does where it has sent its last byte after the peer, or this side, has closed.
        transport._closing = True
        transport._loop._remove_reader(transport._sock_fd)
        transport._call_connection_lost(None)
        with pytest.raises(PieError) as caught:
            await client.ping()
        assert caught.value.code == "connection-failed"


@scenario
async def test_a_fault_of_the_socket_is_told_while_the_connection_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(peer: Peer) -> None:
        await peer.serve_forever()

    async def fault(*_: object, **__: object) -> None:
        raise AttributeError("a fault")

    async with fake_server(script) as address, connect(address) as client:
        with monkeypatch.context() as patched:
            patched.setattr(ClientConnection, "send", fault)
            with pytest.raises(AttributeError, match="a fault"):
                await client.ping()


@scenario
async def test_what_the_server_says_before_it_closes_is_the_reason() -> None:
    async def script(peer: Peer) -> None:
        await peer.receive()
        await peer.tell({"type": "draining"})
        await peer.tell({"type": "error", "error": {"code": "limit-connections", "message": "too many", "details": {"limit": 3}}})
        await peer.socket.close(1013)

    async with fake_server(script) as address, connect(address) as client:
        with pytest.raises(PieError) as caught:
            await client.ping()
        assert (caught.value.code, caught.value.details) == ("limit-connections", {"limit": 3})
        assert client.is_draining


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@scenario
async def test_garbage_from_the_server_is_one_clear_error(garbage: str | bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.expect("launch")
        await peer.socket.send(garbage)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        for call in (client.launch("p@1"), client.ping(), process.result()):
            with pytest.raises(PieError) as caught:
                await call
            assert caught.value.code == "protocol-error"
            assert len(caught.value.message) < 500


@scenario
async def test_a_message_of_the_future_is_passed_over() -> None:
    n_answered = 0

    async def script(peer: Peer) -> None:
        nonlocal n_answered
        await peer.answer(await peer.expect("launch"), pid=5, launch_seed=9, more=1)
        await peer.tell({"type": "weather", "of": ["tomorrow"], "id": None})
        await peer.tell({"type": "weather", "pid": 5, "seq": 1, "kind": "stdout", "text": "no event"})
        await peer.answer(await peer.expect("ping"), more={"than": "known"})
        n_answered += 1
        await peer.event(5, "stdout", text="the first", more=[2])
        await peer.answer(await peer.expect("ping"))
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        await client.ping()
        assert (process.pid, n_answered, client.is_draining) == (5, 1, False)
        assert await anext(process.events()) == Event.Stdout("the first")
        await client.ping()


@scenario
async def test_a_frame_that_is_too_large_is_refused() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.event(1, "file", data=bytes(100 << 20))
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        with pytest.raises(PieError, match="larger") as caught:
            await process.result()
        assert caught.value.code == "protocol-error"


@pytest.mark.parametrize(
    "hello",
    [
        {"type": "hello", "protocol": 2, "server": "pie/9.0"},
        {"type": "error", "error": {"code": "protocol-version", "message": "this server 'pie/9.0' speaks protocol 2", "details": {}}},
    ],
)
@scenario
async def test_another_version_is_told_with_both_versions(hello: dict) -> None:
    async def handle(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(json.dumps(hello))
        await socket.wait_closed()

    async with raw_server(handle) as address:
        with pytest.raises(PieError, match="protocol 2") as caught:
            async with connect(address):
                pass
        assert caught.value.code == "protocol-version"
        assert "pie/9.0" in caught.value.message


@pytest.mark.parametrize("hello", ["nonsense", "{}", '{"protocol": 1}', '{"type": "hello", "protocol": 1, "server": "s"}', b"\x00"])
@scenario
async def test_a_server_that_greets_with_garbage(hello: str | bytes) -> None:
    async def handle(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(hello)
        await socket.wait_closed()

    async with raw_server(handle) as address:
        with pytest.raises(PieError, match="pie serve") as caught:
            async with connect(address):
                pass
        assert caught.value.code == "protocol-error"


@scenario
async def test_a_server_that_closes_before_it_greets() -> None:
    async def handle(socket: ServerConnection) -> None:
        await socket.close(1008, "go away")

    async with raw_server(handle) as address:
        with pytest.raises(PieError, match="go away") as caught:
            async with connect(address):
                pass
        assert caught.value.code == "connection-failed"


@pytest.mark.parametrize(
    ("reason", "code", "remedy"),
    [
        ("the key is no longer good", "authentication-failed", "ask the operator of the server for another one"),
        ("another reason", "connection-failed", "connect again"),
    ],
)
@scenario
async def test_a_connection_whose_key_was_revoked_is_not_told_to_connect_again(reason: str, code: str, remedy: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect("ping")
        await peer.socket.close(1008, reason)

    async with fake_server(script) as address, connect(address) as client:
        with pytest.raises(PieError, match=remedy) as caught:
            await client.ping()
    assert caught.value.code == code


@scenario
async def test_a_server_that_never_greets_is_given_up() -> None:
    async def handle(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with raw_server(handle) as address:
        with pytest.raises(PieError, match="within") as caught:
            async with connect(address, timeout_s=0.05):
                pass
        assert caught.value.code == "connection-failed"


@pytest.mark.parametrize(
    ("status", "body", "code", "said"),
    [
        (HTTPStatus.FORBIDDEN, '{"error": {"code": "forbidden-origin", "message": "not you"}}', "forbidden-origin", "not you"),
        (HTTPStatus.NOT_FOUND, "nothing here", "connection-failed", "HTTP 404"),
        (HTTPStatus.BAD_GATEWAY, '{"error": "text"}', "connection-failed", "HTTP 502"),
    ],
)
@scenario
async def test_an_answer_that_is_no_upgrade(status: HTTPStatus, body: str, code: str, said: str) -> None:
    def refuse(socket: ServerConnection, _request: Request) -> Response:
        return socket.respond(status, body)

    async def handle(_socket: ServerConnection) -> None:
        raise AssertionError("nobody gets here")

    async with serve(handle, "127.0.0.1", 0, process_request=refuse) as server:
        address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(PieError, match=said) as caught:
            async with connect(address):
                pass
        assert caught.value.code == code


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n", b"\x00" * 100, b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"x" * 100_000])
@scenario
async def test_what_is_no_websocket_server(answer: bytes) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(PieError, match="pie serve") as caught:
            async with connect(address):
                pass
        assert caught.value.code == "connection-failed"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the server answered without TLS .*; write ws://"),
        (b"", "the connection broke before TLS was agreed on; where the server speaks no TLS, write ws://"),
        (bytes([21, 3, 3, 0, 2, 2, 40]), "TLS failed .*ALERT"),  # an alert of TLS: the handshake has failed
    ],
)
@scenario
async def test_a_server_without_tls_is_told_from_others(answer: bytes, told: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.read(4096))[0] == 0x16
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        with pytest.raises(PieError, match=told) as caught:
            async with connect(f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}"):
                pass
    assert caught.value.code == "connection-failed"
    assert "not permitted" not in caught.value.message


@scenario
async def test_a_server_that_waits_may_have_no_tls() -> None:
    ended = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        with pytest.raises(PieError, match=r"no answer within 0\.01 s.*; where it speaks no TLS, write ws://"):
            await connect(f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout_s=0.01)
        await ended.wait()


def test_a_certificate_that_is_refused_is_no_wrong_address() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    told = opening._explain(error, "wss://127.0.0.1:1", 10.0)
    assert told is not None
    assert "TLS failed (self-signed certificate); check the certificate of the server" in told.message


@scenario
async def test_an_error_without_words_is_told_in_some() -> None:
    async with fake_server(Peer.serve_forever) as address:  # which hangs up on what is not HTTP
        with pytest.raises(PieError, match="the connection broke") as caught:
            async with connect(address.replace("ws://", "wss://")):
                pass
    assert caught.value.code == "connection-failed"


@pytest.mark.parametrize(
    "address", ["", "localhost", "localhost:", "http://localhost:1", "ws://", "ws://[::1", "ws://h:99999", "ws://\x00/"]
)
@scenario
async def test_what_is_no_address(address: str) -> None:
    with pytest.raises(PieError, match="ws://HOST:PORT") as caught:
        async with connect(address):
            pass
    assert caught.value.code == "connection-failed"


@scenario
async def test_nobody_listens() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
    with pytest.raises(PieError, match=f"127.0.0.1:{port}.*pie serve") as caught:
        async with connect(f"ws://127.0.0.1:{port}"):
            pass
    assert caught.value.code == "connection-failed"
    with pytest.raises(PieError, match=f"cannot connect to 'ws://127.0.0.1:{port}'"):
        await connect(f"127.0.0.1:{port}")


def test_the_client_needs_no_engine() -> None:
    code = "import sys, pie.client\nprint([name for name in ('torch', 'numpy', 'pie._engine', 'cffi', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "[]\n"
