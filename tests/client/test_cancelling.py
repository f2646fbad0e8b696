"""Giving up any call, at any moment, leaves the connection as usable as before and nothing running at the server."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from client.fake import PATIENCE_S, Peer, fake_server, scenario, unpack
from pie.client import Client, Event, PieError, connect, connection

# More turns of the event loop than any of the calls here takes.
TURNS = range(12)


async def give_up_after(turns: int, task: asyncio.Task) -> bool:
    """Cancels a task after that many turns of the event loop; returns whether it ended as cancelled."""
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    return task.cancelled()


@contextmanager
def sending_held(client: Client, held: asyncio.Event, is_last: Callable[[str | bytes], bool]) -> Iterator[None]:
    """Sending never returns from the last frame on, as where the buffers are full and nothing is read at the other
    end.
    """
    opened = client._connection
    sent = opened._send

    async def send_and_wait(frame: str | bytes) -> None:
        await sent(frame)
        if is_last(frame):
            held.set()
            await asyncio.Event().wait()

    opened._send = send_and_wait
    try:
        yield
    finally:
        opened._send = sent


@pytest.mark.parametrize("turns", TURNS)
@scenario
async def test_a_launch_that_is_given_up_is_taken_back(turns: int) -> None:
    terminated = []

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        while True:
            message = await peer.receive()
            if message["type"] == "terminate":
                terminated.append(message["pid"])
            await peer.answer(message, pid=2, launch_seed=0)

    async with fake_server(script) as address, connect(address) as client:
        launching = asyncio.create_task(client.launch("p@1"))
        was_given_up = await give_up_after(turns, launching)
        if turns == 0:  # it never began
            assert (await client.launch("p@1")).pid == 1
            return
        await client.ping()  # answered after the launch
        await client.ping()  # by now what the first answer caused has been sent
        assert terminated == ([1] if was_given_up else [])
        assert (await client.launch("p@1")).pid == 2


@scenario
async def test_a_launch_that_is_given_up_before_it_is_answered_is_taken_back() -> None:
    arrived, taken_back = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        launch = await peer.expect("launch")
        arrived.set()
        await peer.answer(await peer.expect("ping"))
        await peer.answer(launch, pid=9, launch_seed=0)
        assert (await peer.expect("terminate"))["pid"] == 9
        await peer.event(9, "error", code="cancelled", message="no more")
        taken_back.set()
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        launching = asyncio.create_task(client.launch("p@1"))
        await arrived.wait()
        launching.cancel()
        await client.ping()
        await taken_back.wait()
        await client.ping()


@scenario
async def test_an_attachment_that_is_given_up_is_detached() -> None:
    arrived, taken_back = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        attach = await peer.expect("attach")
        arrived.set()
        await peer.answer(await peer.expect("ping"))
        await peer.answer(attach, pid=4, next_seq=1)
        assert (await peer.expect("detach"))["pid"] == 4
        taken_back.set()
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        attaching = asyncio.create_task(client.attach(4))
        await arrived.wait()
        attaching.cancel()
        await client.ping()
        await taken_back.wait()
        await client.ping()


@scenario
async def test_more_calls_that_are_given_up_at_once_than_may_be_open_are_all_taken_back() -> None:
    all_came, all_gone = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        launches = []
        while (message := await peer.receive())["type"] == "launch":
            launches.append(message)
            all_came.set()
        ping, launched = message, set()
        open_ids = {launch["id"] for launch in launches} | {ping["id"]}
        assert len(open_ids) <= 64
        for pid, launch in enumerate(launches, 1):
            open_ids.remove(launch["id"])
            launched.add(pid)
            await peer.answer(launch, pid=pid, launch_seed=0)
        while launched:
            request = await peer.expect("terminate")
            open_ids.add(request["id"])
            assert len(open_ids) <= 64
            launched.remove(request["pid"])
            open_ids.remove(request["id"])
            await peer.answer(request)
        all_gone.set()
        await peer.answer(ping)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        calls = [asyncio.create_task(client.launch("p@1")) for _ in range(55)]
        await all_came.wait()
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        pinging = asyncio.create_task(client.ping())
        await all_gone.wait()
        await pinging


@pytest.mark.parametrize("turns", TURNS)
@scenario
async def test_waiting_for_an_event_that_is_given_up_loses_none(turns: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.expect("ping")
        for number in range(20):
            await peer.event(1, "stdout", text=str(number))
        await peer.event(1, "return", value="0")
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        pinging = asyncio.create_task(client.ping())
        seen = []
        events = process.events()
        while not seen or not isinstance(seen[-1], Event.Return):
            reading = asyncio.ensure_future(anext(events))
            if not await give_up_after(turns, reading):
                seen.append(reading.result())
            elif turns < 2:
                seen.append(await anext(events))
        assert seen == [*(Event.Stdout(str(number)) for number in range(20)), Event.Return("0")]
        pinging.cancel()


@scenario
async def test_an_upload_that_is_given_up_is_ended_early() -> None:
    data = bytes(4 << 20)
    ended = asyncio.Event()
    first_went = asyncio.Event()

    async def script(peer: Peer) -> None:
        part = await peer.expect("upload")
        n_bytes = len(part["payload"])
        assert 0 < n_bytes < len(data)
        part = await peer.expect("upload")
        assert (part["payload"], part["last"], part["bytes"]) == (b"", True, len(data))
        await peer.refuse(part, "upload-damaged")
        ended.set()
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        # Not left to the buffers between both ends: they may hold all of it.
        with sending_held(client, first_went, lambda _: True):
            uploading = asyncio.create_task(client.upload(data))
            await first_went.wait()
        uploading.cancel()
        await ended.wait()
        await client.ping()


@scenario
async def test_an_upload_arrives_whole_and_one_that_is_refused_stops() -> None:
    data = bytes(range(256)) * 8192

    async def script(peer: Peer) -> None:
        received = b""
        while True:
            part = await peer.expect("upload")
            assert part["offset"] == len(received)
            received += part["payload"]
            if part["last"]:
                break
        assert received == data
        await peer.answer(part)
        install = await peer.expect("install")
        assert (install["name"], install["version"], install["digest"]) == ("n", "2", f"sha256:{hashlib.sha256(data).hexdigest()}")
        await peer.answer(install)
        refused = await peer.expect("upload")
        await peer.refuse(refused, "limit-upload")
        ping = last = None
        while ping is None or last is None:  # in either order
            message = await peer.receive()
            if message["type"] == "ping":
                ping = message
            elif message["last"]:
                last = message
        assert (last["id"], last["payload"]) == (refused["id"], b""), "the last part frees the number, and the rest is not sent"
        await peer.answer(ping)

    async with fake_server(script) as address, connect(address) as client:
        assert await client.install(data, manifest='[package]\nname = "n"\nversion = "2"') == "n@2"
        with pytest.raises(PieError) as caught:
            await client.upload(bytes(64 << 20))
        assert caught.value.code == "limit-upload"
        await client.ping()


@pytest.mark.parametrize("turns", TURNS)
@scenario
async def test_a_launch_that_is_given_up_as_the_block_is_left_is_taken_back(turns: int) -> None:
    launched, terminated = [], []

    async def script(peer: Peer) -> None:
        async for frame in peer.socket:
            message = unpack(frame)
            if message["type"] == "launch":
                launched.append(1)
                await peer.answer(message, pid=1, launch_seed=0)
            elif message["type"] == "terminate":
                terminated.append(message["pid"])
                await peer.answer(message)

    async with fake_server(script) as address, connect(address) as client:
        launching = asyncio.create_task(client.launch("p@1"))
        was_given_up = await give_up_after(turns, launching)
    assert terminated == (launched if was_given_up else [])


@scenario
async def test_what_was_given_up_is_taken_back_when_its_answers_come_after_the_block_was_left() -> None:
    n_launches = 40
    all_came, left = asyncio.Event(), asyncio.Event()
    terminated = []

    async def script(peer: Peer) -> None:
        launches = [await peer.expect("launch") for _ in range(n_launches)]
        await peer.expect("ping")
        all_came.set()
        await left.wait()
        for pid, launch in enumerate(launches, 1):
            await peer.answer(launch, pid=pid, launch_seed=0)
        for _ in launches:
            message = await peer.expect("terminate")
            terminated.append(message["pid"])
            await peer.answer(message)

    async with fake_server(script) as address:
        async with connect(address) as client:
            calls = [asyncio.create_task(client.launch("p@1")) for _ in range(n_launches)]
            waiting = asyncio.create_task(client.ping())
            await all_came.wait()
            for call in calls[::2]:  # the others are ended by leaving
                call.cancel()
            asyncio.get_running_loop().call_soon(left.set)
        assert sorted(terminated) == list(range(1, n_launches + 1))
        outcomes = await asyncio.gather(*calls[1::2], waiting, return_exceptions=True)
        assert {outcome.code for outcome in outcomes} == {"connection-failed"}


@scenario
async def test_leaving_does_not_wait_for_a_server_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FLUSH_S", 2 * PATIENCE_S)
    came = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.expect("launch")
        came.set()
        await peer.expect("ping")
        peer.socket.transport.abort()

    async with fake_server(script) as address, connect(address) as client:
        launching = asyncio.create_task(client.launch("p@1"))
        await came.wait()
        launching.cancel()
        pinging = asyncio.create_task(client.ping())
        await asyncio.sleep(0)
    with pytest.raises(PieError):
        await pinging


@pytest.mark.parametrize(("name_bytes", "sent"), [(128, ["story.py", "ä.py", None, ""]), (0, [None] * 4)])
@scenario
async def test_an_upload_has_the_name_of_its_file_where_the_server_keeps_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name_bytes: int, sent: list[str | None]
) -> None:
    monkeypatch.setattr("pie.client.client._launchable", lambda *_: b"packed")
    names = []

    async def script(peer: Peer) -> None:
        for _ in sent:
            part = await peer.expect("upload")
            names.append(part.get("name"))
            await peer.answer(part)
        await peer.serve_forever()

    async with fake_server(script, limits={"name_bytes": name_bytes}) as address, connect(address) as client:
        await client.upload(tmp_path / "story.py")
        await client.upload(b"bytes", name="ä.py")
        await client.upload(b"bytes")
        await client.upload(tmp_path / "story.py", name="")  # which a server refuses
    assert names == sent


@scenario
async def test_an_upload_that_is_given_up_behind_its_last_part_sends_no_other() -> None:
    is_full, seen = asyncio.Event(), []

    async def script(peer: Peer) -> None:
        await is_full.wait()
        while (message := await peer.receive())["type"] == "upload":
            seen.append(message["last"])
            if message["last"]:
                await peer.answer(message)
        await peer.answer(message)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        with sending_held(client, is_full, lambda frame: isinstance(frame, bytes) and b'"last":true' in frame[:400]):
            uploading = asyncio.create_task(client.upload(bytes(1 << 19)))
            await is_full.wait()
        uploading.cancel()
        await asyncio.wait({uploading})
        await client.ping()
        await client.ping()
    assert seen == [False, True]


@pytest.mark.parametrize("turns", TURNS)
@scenario
async def test_detaching_that_is_given_up_leaves_nobody_waiting(turns: int) -> None:
    async def script(peer: Peer) -> None:
        n_detached = 0
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        while True:
            message = await peer.receive()
            n_detached += message["type"] == "detach"
            await peer.answer(message)
            if message["type"] == "ping" and not n_detached:  # still attached
                await peer.event(1, "return", value="1")

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        waiting = asyncio.create_task(process.result())
        await give_up_after(turns, asyncio.create_task(process.detach()))
        await client.ping()
        outcome = (await asyncio.gather(waiting, return_exceptions=True))[0]
        assert outcome == 1 or outcome.code == "session-closed"


@scenario
async def test_leaving_the_block_while_calls_wait_ends_them() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.serve_forever()

    async with fake_server(script) as address:
        async with connect(address) as client:
            process = await client.launch("p@1")
            waiting = asyncio.create_task(process.result())
            await client.ping()
        with pytest.raises(PieError) as caught:
            await waiting
        assert caught.value.code == "connection-failed"
        with pytest.raises(PieError, match="connect again"):
            await client.ping()
