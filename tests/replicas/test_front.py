"""The front before two engines of this process: which sees a session, what it is told, and who is refused."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as changed

from pie._engine import add_key
from pie.client import PieError, connect
from pie.config import Config
from pie.engine import Engine
from pie.replicas import actors
from pie.replicas import front as fronts
from pie.replicas.front import Front, FrontOptions
from pie.replicas.head import Head
from pie.replicas.replica import Replica
from pie.replicas.routing import order
from pie.replicas.serving import asks_who, replica_configs, serve_replicas
from support.launching import finish, python_source
from support.replicated import PROGRAM, config, tokens
from support.serving import scenario

INNER = "X-Pie-inner"
OPTIONS = FrontOptions((), "X-Pie-User", INNER, 100, 5.0)


def prefixes() -> list[str]:
    """One whose sessions go to the first of two replicas, and one of the second."""
    found: dict[int, str] = {}
    for n in range(100):
        found.setdefault(order(f"prefix:{n}".encode(), 2)[0], str(n))
    return [found[0], found[1]]


class Two:
    """Two replicas, opened."""

    def __init__(self, folder: Path, port: int = 1, **server: object) -> None:
        self.config = config(folder, **server)
        self.replicas = [Replica(one) for one in replica_configs(self.config, port, INNER)]
        self.ports = [replica.open() for replica in self.replicas]

    def close(self) -> None:
        for replica in self.replicas:
            replica.end(0.0)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    opened = Two(tmp_path_factory.mktemp("server"))
    yield opened
    opened.close()


@asynccontextmanager
async def front(ports: list[int], options: FrontOptions = OPTIONS) -> AsyncIterator[tuple[Front, str]]:
    """A front before these ports, and its address."""
    opened = Front(len(ports), options)
    host, port = await opened.listen("127.0.0.1", 0)
    for index, at in enumerate(ports):
        opened.up(index, at)
    try:
        yield opened, f"ws://{host}:{port}"
    finally:
        await opened.close()


async def get(url: str, path: str, *fields: str) -> tuple[int, str]:
    """What a request that is no upgrade is answered."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write("\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *fields, "", ""]).encode())
    answer = (await reader.read()).decode()
    writer.close()
    return int(answer.split()[1]), answer.partition("\r\n\r\n")[2].removesuffix("\n")


@scenario
async def test_a_connection_asks_a_program_once(two: Two) -> None:
    """What follows would not be looked at, and could name the address of anybody."""
    async with front(two.ports) as (_, url):
        host, _, port = url.removeprefix("ws://").rpartition(":")
        for more in ((), ("Connection: keep-alive",), ("Connection: Upgrade", "Upgrade: other")):
            reader, writer = await asyncio.open_connection(host, int(port))
            asked = "\r\n".join(["GET /http/absent/?a=1 HTTP/1.1", f"Host: {host}", *more, "", ""]).encode()
            writer.write(asked + b"GET /http/absent/ HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
            answers = await reader.read()
            writer.close()
            assert answers.startswith(b"HTTP/1.1 404 "), answers
            assert answers.count(b"HTTP/1.1 ") == 1


@scenario
async def test_a_page_whose_name_was_made_to_lead_here_is_refused(two: Two) -> None:
    async with front(two.ports) as (_, url):
        host, _, port = url.removeprefix("ws://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /http/absent/ HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 403 "), answer
        assert b"forbidden-origin" in answer


@scenario
async def test_sessions_of_a_prefix_meet_on_one_replica(two: Two, tmp_path: Path) -> None:
    path = tmp_path / "waiting.py"
    path.write_text("from inferlet import session\n\n\nasync def main(input):\n    return await session.receive()\n", encoding="utf-8")
    first, second = prefixes()
    async with front(two.ports) as (_, url), connect(f"{url}/?prefix={first}") as client:
        process = await client.launch(await client.upload(path), input={}, detached=True)
        for prefix, expected in ((first, [process.pid]), (second, [])):
            async with connect(f"{url}/?prefix={prefix}") as other:
                assert [info.pid for info in await other.list()] == expected
        await process.send("go on")
        assert await process.result() == "go on"


PUSHES = """
from inferlet import messaging


async def main(topic):
    messaging.push(topic, "here")
"""


@scenario
async def test_topics_are_of_one_replica(two: Two, tmp_path: Path) -> None:
    path = tmp_path / "pushes.py"
    path.write_text(PUSHES, encoding="utf-8")
    first, second = prefixes()
    async with front(two.ports) as (_, url), connect(f"{url}/?prefix={first}") as client:
        process = await client.launch(await client.upload(path), input="jobs")
        await process.result()
        for prefix, expected in ((first, [("jobs", 1)]), (second, [])):
            async with connect(f"{url}/?prefix={prefix}") as other:
                assert [(info.topic, info.queued) for info in await other.topics()] == expected
        assert await client.discard_topic("jobs") == 1


@scenario
async def test_every_replica_gives_the_tokens_of_one_engine(two: Two, tmp_path: Path) -> None:
    def alone() -> list[list[int]]:
        with Engine.from_config(two.config) as engine:
            engine.start()
            given = [{"prompt": [5, 6, seed], "n": 12, "seed": seed} for seed in range(4)]
            ends = [finish(engine.launch(python_source(PROGRAM), input=one)) for one in given]
        return [end.value for end in ends]

    expected = await asyncio.to_thread(alone)
    async with front(two.ports) as (_, url):
        for prefix in prefixes():
            async with connect(f"{url}/?prefix={prefix}") as client:
                assert [await tokens(client, tmp_path, 12, seed) for seed in range(4)] == expected


@scenario
async def test_sessions_of_a_replica_that_is_gone_go_to_the_next(two: Two, tmp_path: Path) -> None:
    first, second = prefixes()
    async with front(two.ports) as (opened, url):
        opened.down(0, "it was lost")
        async with connect(f"{url}/?prefix={first}") as client, connect(f"{url}/?prefix={second}") as other:
            assert len(await tokens(client, tmp_path, 3, 1)) == 3
            assert (await client.stats())["n_connections"] == (await other.stats())["n_connections"] == 2
        assert await get(url, "/readyz") == (200, "ready\nreplica 0: it was lost")
        opened.down(1, "it was lost too")
        assert await get(url, "/readyz") == (503, "replica 0: it was lost\nreplica 1: it was lost too")
        with pytest.raises(PieError) as caught:
            async with connect(url):
                pass
        print(caught.value.message)
        assert "no replica serves now (replica 0: it was lost; replica 1: it was lost too); connect again later" in caught.value.message
        # One that ended and is not known to have.
        opened.up(0, 1)
        opened.up(1, two.ports[1])
        async with connect(f"{url}/?prefix={first}") as client:
            await client.ping()
        opened.up(0, two.ports[0])
        assert await get(url, "/readyz") == (200, "ready")
        assert await get(url, "/healthz") == (200, "ok")


@scenario
async def test_what_is_not_a_session_is_refused(two: Two) -> None:
    async with front(two.ports, replace(OPTIONS, handshake_timeout_s=0.3)) as (_, url):
        assert await get(url, "/?other=1") == (400, "behind the question mark stands prefix=TEXT alone, a text of 1 to 256 characters")
        assert (await get(url, "/", "A: " + "b" * 9000))[0] == 431
        assert (await get(url, "/", "bad"))[0] == 400
        host, _, port = url.removeprefix("ws://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HT")
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\x16")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert b"speaks no TLS; write ws:// in place of wss://" in answer
        writer.close()
        status, body = await get(url, "/", "Upgrade: websocket", "X-Pie-User: alice")
        assert (status, "untrusted-header" in body) == (403, True)
        # Nor by the name that the front uses itself.
        status, _ = await get(url, "/", f"{INNER}: alice")
        assert status == 426


class Taking:
    """A replica that takes connections, answers nothing, and says when one has ended."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.began.set()
        try:
            while await reader.read(1024):
                pass
        except ConnectionResetError:
            pass  # cut off, which is an end too
        self.ended.set()
        writer.close()


@scenario
async def test_a_client_that_is_cut_off_ends_its_connection_to_the_replica() -> None:
    """By an RST, as when its machine is gone: before, the front waited for the replica, and that for the client."""
    taking = Taking()
    server = await asyncio.start_server(taking, "127.0.0.1", 0)
    async with front([server.sockets[0].getsockname()[1]]) as (opened, url):
        host, _, port = url.removeprefix("ws://").rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n")
        await taking.began.wait()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        await asyncio.wait_for(taking.ended.wait(), 30)
        while opened._tasks:
            await asyncio.wait(opened._tasks)
        assert opened._n_open == 0
    server.close()


@scenario
async def test_a_client_that_is_gone_before_it_is_looked_at_is_nobody() -> None:
    class Gone(asyncio.StreamWriter):
        def __init__(self) -> None:
            self.is_closed = False

        def get_extra_info(self, name: str, default: object = None) -> object:
            return None

        def close(self) -> None:
            self.is_closed = True

        async def wait_closed(self) -> None:
            pass

        def __del__(self) -> None:
            pass

    opened, gone = Front(1, OPTIONS), Gone()
    await opened._connected(asyncio.StreamReader(), gone)
    assert (gone.is_closed, opened._n_open) == (True, 0)


@scenario
async def test_one_connection_too_many_is_told_so(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the client has sent what nobody read: the system would cut it off before it has the answer."""
    monkeypatch.setattr(fronts, "_MORE_OPEN", 0)
    monkeypatch.setattr(fronts, "_MORE_REFUSED", 1)
    monkeypatch.setattr(fronts, "_LINGER_S", 600.0)
    async with front(two.ports, replace(OPTIONS, max_connections=1, handshake_timeout_s=600.0)) as (opened, url):
        host, _, port = url.removeprefix("ws://").rpartition(":")
        _, idle = await asyncio.open_connection(host, int(port))
        reader, second = await asyncio.open_connection(host, int(port))
        # Its answer has come, so that it is the one that is told; it does not end meanwhile.
        head = await reader.readuntil(b"\r\n\r\n")
        cut_off, third = await asyncio.open_connection(host, int(port))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await cut_off.readexactly(1)
        second.write(b"y" * 4000)
        body = json.loads(await reader.read())
        print(body)
        assert head.startswith(b"HTTP/1.1 503 ")
        assert body["error"]["code"] == "limit-connections"
        assert "1 connections are open, and server.max_connections allows no more" in body["error"]["message"]
        for writer in (idle, second, third):
            writer.close()
        while opened._tasks:
            await asyncio.wait(opened._tasks)
        assert await get(url, "/healthz") == (200, "ok")


@scenario
async def test_a_proxy_names_users_and_keys_hold_on_every_replica(tmp_path: Path) -> None:
    """The front passes on what a proxy names; whoever comes by itself needs a key, of the one folder."""
    (tmp_path / "data").mkdir()
    _, key = add_key(str(tmp_path / "data"), "laptop", "alice")
    opened = await asyncio.to_thread(Two, tmp_path, auth="on", trusted_proxies=["127.0.0.1"])
    trusting = replace(OPTIONS, trusted_proxies=("127.0.0.1",))
    try:
        async with front(opened.ports, trusting) as (_, url):
            for prefix in prefixes():
                async with connect(f"{url}/?prefix={prefix}", key=key) as client:
                    assert (await client.stats())["user"] == "alice"
            for fields, status in ((("X-Pie-User: bob",), 101), (("X-Pie-User: bob", "X-Pie-User: eve"), 403)):
                host, _, port = url.removeprefix("ws://").rpartition(":")
                reader, writer = await asyncio.open_connection(host, int(port))
                upgrade = (
                    "Upgrade: websocket",
                    "Connection: Upgrade",
                    "Sec-WebSocket-Version: 13",
                    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
                )
                writer.write("\r\n".join(["GET / HTTP/1.1", f"Host: {host}", *upgrade, *fields, "", ""]).encode())
                assert int((await reader.readuntil(b"\r\n")).split()[1]) == status
                writer.close()
            with pytest.raises(PieError, match="this server has to know who you are"):
                async with connect(url):
                    pass
    finally:
        await asyncio.to_thread(opened.close)


def test_the_address_of_a_client_is_the_last_that_is_not_a_proxy() -> None:
    behind = Front(1, replace(OPTIONS, trusted_proxies=("10.0.0.0/8",)))
    for said, expected in (
        (["192.0.2.7"], "192.0.2.7"),
        (["192.0.2.1, 192.0.2.7, 10.1.1.1"], "192.0.2.7"),
        (["192.0.2.7", "10.0.0.9"], "192.0.2.7"),
        (["nonsense"], "10.0.0.1"),
        ([], "10.0.0.1"),
    ):
        request = Head("GET", "/", "", tuple(("X-Forwarded-For", one) for one in said))
        assert behind._inner(request, "10.0.0.1", is_trusted=True).values("x-forwarded-for") == [expected]
        assert behind._inner(request, "192.0.2.9", is_trusted=False).values("x-forwarded-for") == ["192.0.2.9"]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({}, "off"),
        ({"auth": "on"}, "on"),
        ({"host": "0.0.0.0"}, "on"),
        ({"host": "0.0.0.0", "auth": "off", "allow_anonymous": True}, "off"),
        ({"trusted_proxies": ["10.0.0.7"]}, "on"),
    ],
)
def test_replicas_let_in_whom_the_front_would(tmp_path: Path, server: dict[str, object], expected: str) -> None:
    outer = config(tmp_path, n_replicas=3, **server)
    inner = replica_configs(outer, 8080, INNER)
    assert asks_who(outer) == (expected == "on")
    assert [one.server.auth for one in inner] == [expected] * 3
    assert {one.server.host for one in inner} == {"127.0.0.1"}
    assert len({one.engine.data_dir for one in inner}) == 3
    # The memory of the machine is for all of them.
    one = replica_configs(changed_replicas(outer, 1), 8080, INNER)[0].engine.memory_bytes
    assert all(3 * each.engine.memory_bytes <= one for each in inner)


def changed_replicas(outer: Config, n: int) -> Config:
    return replace(outer, server=changed(outer.server, replicas=n))


class Here:
    """Replicas in this process, in the place of Ray; they end by themselves once they serve."""

    def __init__(self, configs, up, down) -> None:
        self.replicas = [Replica(one) for one in configs]
        self._up = up
        self.calls: list[str] = []
        HERE.append(self)

    def start(self) -> None:
        for index, replica in enumerate(self.replicas):
            self._up(index, replica.open())
        self.calls.append("start")
        raise PieError("driver-lost", "replica 1 was lost while it opened")

    def end(self, drain_s: float) -> None:
        self.calls.append(f"end {drain_s:g}")

    def close(self) -> None:
        for replica in self.replicas:
            replica.end(0.0)
        self.calls.append("close")


HERE: list[Here] = []


def test_what_was_started_ends_where_a_replica_cannot_be_opened(tmp_path: Path) -> None:
    n_threads = threading.active_count()
    with pytest.raises(PieError, match="replica 1 was lost while it opened"):
        serve_replicas(config(tmp_path), Here)
    assert HERE[-1].calls == ["start", "close"]
    assert threading.active_count() <= n_threads + 1


def test_a_port_that_is_taken_and_ray_that_is_missing_are_told(tmp_path: Path, two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PieError) as caught:
        serve_replicas(config(tmp_path, port=two.ports[0]), Here)
    print(f"{caught.value.code}: {caught.value.message}")
    assert caught.value.code == "port-in-use"
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PieError) as caught:
        serve_replicas(config(tmp_path))
    print(f"{caught.value.code}: {caught.value.message}")
    assert (caught.value.code, "pip install 'pie-engine[ray]'" in caught.value.message) == ("invalid-config", True)


def test_replicas_have_devices_of_their_own(tmp_path: Path) -> None:
    model = 'driver = "cuda"\ntensor_parallel = 2'
    assert actors.n_devices(config(tmp_path, model=model).models) == 2
    assert actors.n_devices(config(tmp_path, model=f'{model}\ndevice = "cpu"').models) == 0
    assert actors.n_devices(config(tmp_path).models) == 0


@pytest.mark.parametrize(
    ("sizes", "remedy"),
    [((4, 2, 7), "lower server.replicas to 3"), ((2, 4, 3), "serve fewer models, or lower their tensor_parallel")],
)
def test_too_few_gpus_are_told(sizes: tuple[int, int, int], remedy: str) -> None:
    n_replicas, n_each, n_found = sizes
    with pytest.raises(PieError) as caught:
        actors.check_devices(*sizes)
    print(caught.value.message)
    expected = f"server.replicas is {n_replicas}, each needs {n_each} GPUs of its own, and Ray finds {n_found}; {remedy}"
    assert (caught.value.code, caught.value.message) == ("invalid-config", expected)
    actors.check_devices(n_replicas, n_each, n_replicas * n_each)
    actors.check_devices(n_replicas, 0, 0)
