"""Clients that attack the door of the server: what each can make it hold is bounded, and a neighbour gets the right
tokens meanwhile.

The bounds on memory are those of the budget with room for what the allocator keeps. Sizes are small: without the
bounds, each attack takes several times what its test allows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from hostile.door import BINARY, MIB, PING, TEXT, Growth, Raw, admitted, binary, connected, frame, http, text
from pie.client import PieError, connect
from support.serving import Served, client_of, install_source, scenario, serving

# Beside what is charged: what the allocator keeps, and the threads.
SLACK = 24 * MIB
# How many times as long as alone a neighbour may take beside an attack, at best of a few tries: many times what it is,
# so that a busy machine fails no test. How long it is, benchmarks say.
SLOWER = 30.0
TRIES = 3

SPEAK = """
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default")).user("Say something.")
    return ctx.generate(Sampler.top_p(0.9, 0.95), max_tokens=24, seed=7).tokens()
"""
KEEP = """
from inferlet import session


async def main(input):
    return await session.receive()
"""
FAIL = """
def main(input):
    raise ValueError("\\x01" * 1_200_000)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose users may hold 24 MiB, and 64 MiB together."""
    folder = tmp_path_factory.mktemp("door")
    bounds = {"engine__memory_bytes": 64 * MIB, "engine__user_memory_bytes": 24 * MIB}
    with serving(folder, **bounds, server__frame_timeout_s=3, server__upload_timeout_s=3) as started:
        yield started


@dataclass(frozen=True)
class Alone:
    """What the neighbour says when nobody else is there, and how long it takes at best."""

    tokens: object
    duration_s: float


async def spoken(served: Served) -> tuple[object, float]:
    """What the neighbour says, and how long it takes from connecting to the end, at best of a few tries."""
    said, durations = [], []
    for _ in range(TRIES):
        began = time.monotonic()
        async with connect(served.url, user="neighbour") as client:
            said.append(await (await client.launch("speak", seed=1)).result())
        durations.append(time.monotonic() - began)
    assert said == said[:1] * TRIES
    return said[0], min(durations)


@pytest.fixture(scope="module")
def alone(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """The neighbour when nobody else is there; the memory of what it needs is there from then on."""

    async def speak() -> Alone:
        async with client_of(served, "neighbour") as client:
            await install_source(client, tmp_path_factory.mktemp("speak"), SPEAK, "speak")
            await (await client.launch("speak", seed=1)).result()
        return Alone(*await spoken(served))

    return asyncio.run(speak())


@asynccontextmanager
async def attack(served: Served, alone: Alone, most: int) -> AsyncIterator[Growth]:
    """What the body does leaves the memory of the server within `most` bytes of before, and a neighbour its tokens."""
    growth = Growth(served)
    watching = asyncio.create_task(growth.watch())
    try:
        yield growth
        tokens, duration_s = await spoken(served)
        growth.look()
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    slower = duration_s / alone.duration_s
    print(
        f"at most {growth.most / MIB:.1f} MiB more, {growth.look() / MIB:.1f} MiB in the end; a neighbour took {slower:.2f} times as long"
    )
    assert tokens == alone.tokens
    assert slower < SLOWER
    assert growth.most < most, f"{growth.most / MIB:.1f} MiB"


@scenario
async def test_pings_before_the_hello_are_few(served: Served, alone: Alone) -> None:
    async with attack(served, alone, SLACK), connected(served) as raw:
        pings = frame(PING, b"x" * 125) * 1000
        for _ in range(400):
            if not await raw.send(pings):
                break
        else:
            raise AssertionError("400,000 pings were taken from somebody who has not said hello")
    async with connected(served) as raw:
        await raw.send(frame(PING, b"x") * 5)
        assert await raw.told() == ("protocol-error", 1002)


@scenario
async def test_frames_before_the_hello_are_small(served: Served, alone: Alone) -> None:
    async with attack(served, alone, SLACK), AsyncExitStack() as stack:
        raws = [await stack.enter_async_context(connected(served)) for _ in range(60)]
        await asyncio.gather(*(raw.begin(TEXT, 15 * MIB, 2 * MIB) for raw in raws))
    async with connected(served) as raw:
        await raw.send(frame(TEXT, b" " * 4097))
        assert await raw.told() == ("limit-message", 1009)


@scenario
async def test_frames_that_do_not_end_are_charged_and_end(served: Served, alone: Alone) -> None:
    async with attack(served, alone, 24 * MIB + SLACK), AsyncExitStack() as stack:

        async def told(n: int) -> set[tuple[str | None, int | None]]:
            raws = [await stack.enter_async_context(connected(served, "mallory")) for _ in range(n)]
            # What is held of a frame is up to twice of what came.
            await asyncio.gather(*(raw.begin(BINARY, 15 * MIB, 2 * MIB) for raw in raws))
            return set(await asyncio.gather(*(raw.told() for raw in raws)))

        # There is room for five, which are through once their time is over.
        assert await told(5) == {("limit-frame", 1008)}
        # Of forty that grow side by side some find no room, and none has to. Whoever still sends may miss what it is
        # told.
        crowd = await told(40)
        assert crowd <= {("limit-engine-memory", 1013), ("limit-frame", 1008), (None, None)}
        assert crowd != {("limit-frame", 1008)}


@scenario
async def test_fragments_with_pings_between_them_end(served: Served, alone: Alone) -> None:
    async def drip(raw: Raw) -> None:
        while await raw.send(frame(PING, b""), frame(0, b"x" * 1000, last=False)):
            await asyncio.sleep(0.1)

    async with attack(served, alone, SLACK), AsyncExitStack() as stack:
        raws = [await stack.enter_async_context(connected(served, "mallory")) for _ in range(10)]
        for raw in raws:
            await raw.send(frame(TEXT, b"x" * 100_000, last=False))
        dripping = [asyncio.create_task(drip(raw)) for raw in raws]
        told = await asyncio.gather(*(raw.told() for raw in raws))
        assert {error for error, _ in told} <= {"limit-frame", None}
        assert ("limit-frame", 1008) in told, {one: told.count(one) for one in set(told)}
        await asyncio.gather(*dripping)


@scenario
async def test_a_message_of_many_fields_costs_a_small_multiple_of_itself(served: Served, alone: Alone) -> None:
    fields = ",".join(f'"{n:x}":0' for n in range(700_000))
    message = ('{"id":1,"type":"ping",' + fields + "}").encode()
    assert len(message) > 6 * MIB
    async with attack(served, alone, 24 * MIB + SLACK):
        for _ in range(4):
            async with connected(served, "mallory") as raw:
                assert await admitted(raw)
                await raw.send(frame(TEXT, message))
                assert await raw.told() == ("protocol-error", 1002)


@scenario
async def test_answers_that_nobody_takes_are_bounded(served: Served, alone: Alone, tmp_path: Path) -> None:
    async with client_of(served, "mallory") as client:
        await install_source(client, tmp_path, FAIL, "fail")
        process = await client.launch("fail", detached=True)
        with pytest.raises(PieError, match="ValueError"):
            await process.result()
        pid = process.pid
    async with attack(served, alone, 16 * MIB + SLACK) as growth, connected(served, "mallory") as raw:
        assert await admitted(raw)
        asked = b"".join(text({"id": n, "type": "outcome", "pid": pid}) for n in range(60))
        sending = asyncio.create_task(raw.send(asked * 4))
        # Another connection of the same user is served, and its answer is the last thing that the first one waits for.
        async with connected(served, "mallory") as other:
            assert await admitted(other)
            answer = await other.request({"id": 1, "type": "outcome", "pid": pid})
            assert len(answer["ok"]["outcome"]["message"]) >= 1_200_000
        growth.look()
        # Whoever reads in the end gets every answer.
        for n in range(3):
            assert len((await raw.answer(n))["ok"]["outcome"]["message"]) >= 1_200_000
        sending.cancel()


@scenario
async def test_places_are_shared(tmp_path: Path) -> None:
    bounds = {"server__max_connections": 8, "server__max_user_connections": 3, "server__max_address_connections": 6}
    with serving(tmp_path, **bounds) as served:
        async with AsyncExitStack() as stack:

            async def enter(user: str, host: str = "127.0.0.1") -> tuple[Raw, bool]:
                raw = await stack.enter_async_context(connected(served, user, host=host))
                return raw, await admitted(raw)

            greedy = [await enter("mallory") for _ in range(5)]
            assert [let_in for _, let_in in greedy] == [True] * 3 + [False] * 2
            assert all(let_in for _, let_in in [await enter("mallory2") for _ in range(3)])
            # The address is full, and an honest user of the same address gets in. The youngest of whoever has the most
            # goes.
            alice, let_in = await enter("alice")
            assert let_in
            assert (await enter("bob", "127.0.0.2"))[1]
            assert (await enter("carol", "127.0.0.3"))[1]
            # The server is full, and whoever comes from another address gets in as well.
            assert (await enter("dave", "127.0.0.4"))[1]
            assert (await alice.request({"id": 1, "type": "ping"}))["ok"] == {}
        async with connect(served.url, user="erin") as client:
            assert await client.list() == []


@scenario
async def test_processes_are_shared(tmp_path: Path) -> None:
    with serving(tmp_path, engine__max_processes=8) as served:

        async def launch(user: str) -> int:
            async with connect(served.url, user=user) as client:
                await install_source(client, tmp_path, KEEP, "keep")
                return (await client.launch("keep", detached=True)).pid

        # Four names take every place, and leave.
        kept = {user: {await launch(user), await launch(user)} for user in ("mallory1", "mallory2", "mallory3", "mallory4")}
        async with AsyncExitStack() as stack:
            late = await stack.enter_async_context(client_of(served, "late"))
            await install_source(late, tmp_path, KEEP, "keep")
            for n in range(4):
                client = await stack.enter_async_context(client_of(served, f"honest{n}"))
                await install_source(client, tmp_path, KEEP, "keep")
                process = await client.launch("keep")
                if n == 0:
                    await process.send("done")
                    assert await process.result() == "done"
                    await client.launch("keep")
            # Everybody has one by now, and nobody loses it to somebody who would have as many.
            with pytest.raises(PieError, match="max_processes") as caught:
                await late.launch("keep")
            assert caught.value.code == "limit-processes"
            for user, pids in kept.items():
                async with connect(served.url, user=user) as client:
                    exits = {one.pid: one.exit for one in await client.list(all=True)}
                    assert exits.keys() == pids, user
                    assert set(exits.values()) == {None, "limit-processes"}, user


@scenario
async def test_fresh_names_leave_processes_to_other_addresses(tmp_path: Path) -> None:
    with serving(tmp_path, engine__max_processes=4) as served:
        async with connect(served.url, user="bob") as client:
            await install_source(client, tmp_path, KEEP, "keep")
        # Each name takes one place, so that nobody has more than a newcomer would.
        for n in range(4):
            async with connect(served.url, user=f"mallory{n}") as client:
                await install_source(client, tmp_path, KEEP, "keep")
                await client.launch("keep", detached=True)
        async with connect(served.url, user="bob") as client:
            with pytest.raises(PieError, match="max_processes"):
                await client.launch("keep")
        async with connected(served, "bob", host="127.0.0.2") as bob:
            assert await admitted(bob)
            answer = await bob.request({"id": 1, "type": "launch", "program": "keep", "attach": False})
            assert answer["ok"]["pid"] > 0


@scenario
async def test_uploads_of_one_user_leave_room_for_others(served: Served, alone: Alone) -> None:
    def part(number: int, at: int) -> bytes:
        head = {"id": number, "type": "upload", "digest": f"sha256:{number:064x}", "bytes": 32 * MIB, "offset": at, "last": False}
        return binary(head, b"\0" * MIB)

    async with attack(served, alone, 48 * MIB + SLACK), AsyncExitStack() as stack:
        raws = [await stack.enter_async_context(connected(served, "mallory")) for _ in range(4)]
        for raw in raws:
            assert await admitted(raw)
        sending = [raw.send(*(part(1, at * MIB) for at in range(12))) for raw in raws]
        assert all(await asyncio.gather(*sending))
        data = b"small"
        honest = await stack.enter_async_context(connected(served, "alice"))
        assert await admitted(honest)
        digest = "sha256:" + sha256(data).hexdigest()
        await honest.send(binary({"id": 1, "type": "upload", "digest": digest, "bytes": 5, "offset": 0, "last": True}, data))
        assert (await honest.answer(1))["ok"] == {"digest": digest, "bytes": 5}
        # What found no room was refused, which may be all that asked at the same moment, and what stands still is given
        # up, so that nothing is held for ever.
        codes = {(await raw.answer(1))["error"]["code"] for raw in raws}
        assert "limit-engine-memory" in codes, codes
        assert codes <= {"limit-engine-memory", "upload-damaged"}, codes


@scenario
async def test_who_sends_without_a_pause_holds_nobody_up(served: Served, alone: Alone) -> None:
    acks = text({"type": "ack", "pid": 1, "seq": 1}) * 1000

    async def flood(raw: Raw) -> None:
        while await raw.send(acks):
            pass

    async with attack(served, alone, SLACK), AsyncExitStack() as stack:
        raws = [await stack.enter_async_context(connected(served, "mallory")) for _ in range(2)]
        flooding = [asyncio.create_task(flood(raw)) for raw in raws]
        tokens, duration_s = await spoken(served)
        print(f"beside two floods a neighbour took {duration_s / alone.duration_s:.2f} times as long as alone")
        assert tokens == alone.tokens
        assert duration_s < SLOWER * alone.duration_s
        for task in flooding:
            task.cancel()


@scenario
async def test_probes_are_answered(served: Served) -> None:
    def get(path: str, method: str = "GET") -> bytes:
        return f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()

    assert await http(served, get("/healthz")) == (200, "ok\n")
    assert await http(served, get("/readyz")) == (200, "ready\n")
    assert await http(served, get("/readyz").replace(b"1.1", b"1.0")) == (200, "ready\n")
    assert await http(served, get("/healthz", "HEAD")) == (200, "")
    for request, status in [
        (get("/"), 426),
        (get("/metrics"), 404),
        (get("/healthz", "POST"), 405),
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", 431),
        (get("/").replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\n\r\n"), 400),
    ]:
        got, body = await http(served, request)
        assert got == status, body
        assert body
