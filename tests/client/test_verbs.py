"""Verbs that a client makes of what servers list, names of verbs, and the ways to open and close a connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from client.fake import Peer, fake_server, scenario
from pie.client import Client, Event, PieError, Process, connect


def program(name: str, version: str, digest: str) -> dict[str, Any]:
    return {"name": name, "version": version, "digest": digest, "bytes": 1, "installed": 0.5}


# As servers list them: by name, and the oldest version first.
INSTALLED = [program("a", "1.9", "sha256:1"), program("a", "1.10", "sha256:2"), program("ab", "3", "sha256:3")]


async def lists_programs(peer: Peer) -> None:
    while True:
        await peer.answer(await peer.expect("programs"), programs=INSTALLED)


@scenario
async def test_a_name_means_its_highest_version() -> None:
    async with fake_server(lists_programs) as address, connect(address, user="ada") as client:
        assert await client.resolve_version("a") == "a@1.10"
        assert await client.resolve_version("a@1.9") == "a@1.9"
        for absent in ("b", "a@2", "a@"):
            with pytest.raises(PieError, match=f"'ada' has no program {absent!r}; install it first") as caught:
                await client.resolve_version(absent)
            assert (caught.value.code, caught.value.details) == ("unknown-program", {"program": absent})


@pytest.mark.parametrize(
    ("asked", "digest", "is_there"),
    [
        ("a", None, True),
        ("a@1.9", None, True),
        ("a@1.9", "sha256:1", True),
        ("a@1.9", "sha256:2", False),
        ("a", "sha256:2", True),
        ("a@2", None, False),
        ("b", None, False),
    ],
)
def test_a_program_is_looked_up_by_its_name_version_and_digest(asked: str, digest: str | None, is_there: bool) -> None:
    @scenario
    async def looked_up() -> None:
        async with fake_server(lists_programs) as address, connect(address) as client:
            assert await client.check_program(asked, digest=digest) is is_there

    looked_up()


@scenario
async def test_what_is_no_name_is_refused_before_anything_is_sent() -> None:
    async def script(peer: Peer) -> None:
        message = await peer.receive()
        raise AssertionError(message)

    async with fake_server(script) as address, connect(address) as client:
        calls: list[Any] = [client.resolve_version, client.check_program, lambda digest: client.check_program("a", digest=digest)]
        for call in calls:
            with pytest.raises(PieError, match=r"is 5 .int.; give a str") as caught:
                await call(5)
            assert caught.value.code == "invalid-argument"


def test_longer_names_are_names_of_the_same_methods() -> None:
    for longer, name in (
        ("install_program", "install"),
        ("launch_process", "launch"),
        ("attach_process", "attach"),
        ("list_processes", "list"),
        ("terminate_process", "terminate"),
    ):
        assert getattr(Client, longer) is getattr(Client, name)


def test_who_forgets_to_open_a_connection_is_told_how() -> None:
    with pytest.raises(AttributeError, match="not open has no 'launch'; open it by `async with connect"):
        connect().launch  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(TypeError, match="opened by `async with connect"), connect():  # type: ignore[attr-defined]
        pass


@scenario
async def test_a_connection_that_was_awaited_is_closed_by_its_client_and_every_wait_is_told() -> None:
    pinged = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=7)
        await peer.expect("ping")
        pinged.set()
        await peer.socket.wait_closed()

    async with fake_server(script) as address:
        client = await connect(address)
        process = await client.launch("a")
        waits = [asyncio.ensure_future(wait) for wait in (anext(process.events()), process.result(), client.ping())]
        await pinged.wait()
        await client.close()
        for outcome in await asyncio.gather(*waits, return_exceptions=True):
            assert isinstance(outcome, PieError)
            assert outcome.code == "connection-failed"
        await client.close()
        with pytest.raises(PieError, match="this client has closed the connection"):
            await client.ping()


@scenario
async def test_calls_of_close_at_once_take_back_what_an_unanswered_launch_has_done() -> None:
    asked, closing_begun, taken_back = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        launch = await peer.expect("launch")
        asked.set()
        await closing_begun.wait()
        await peer.answer(launch, pid=6, launch_seed=7)
        terminate = await peer.expect("terminate")
        assert terminate["pid"] == 6
        taken_back.set()
        await peer.answer(terminate)

    async def close(client: Client) -> None:
        closing_begun.set()
        await client.close()
        assert taken_back.is_set()

    async with fake_server(script) as address:
        client = await connect(address)
        launching = asyncio.ensure_future(client.launch("a"))
        await asked.wait()
        await asyncio.gather(close(client), close(client))
        with pytest.raises(PieError, match="this client has closed the connection"):
            await launching


@scenario
async def test_a_result_is_told_of_the_end_of_a_connection_beside_a_loop_that_is_busy_with_an_event() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=7)
        await peer.event(1, "stdout", text="read")
        await peer.expect("ping")
        await peer.socket.close(1001, "the server ends")

    has_begun, goes_on = asyncio.Event(), asyncio.Event()

    async def loop(process: Process) -> None:
        async for _ in process.events():
            has_begun.set()
            await goes_on.wait()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("a")
        looping = asyncio.ensure_future(loop(process))
        await has_begun.wait()
        result = asyncio.ensure_future(process.result())
        for wait in (client.ping(), result):
            with pytest.raises(PieError) as raised:
                await wait
            assert raised.value.code == "connection-failed"
        goes_on.set()
        with pytest.raises(PieError):
            await looping


@scenario
async def test_what_was_sent_is_told_from_what_was_printed() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=7)
        await peer.event(1, "stdout", text='{"n":1}', form="json")
        await peer.event(1, "stdout", text="1", form="text")
        await peer.event(1, "stdout", text="1")
        await peer.event(1, "stdout", text="{", form="json")
        await peer.event(1, "return", value="null")
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        events = [event async for event in (await client.launch("a")).events()]
        sent = [event for event in events if isinstance(event, Event.Stdout)]
        assert [(event.form, event.value) for event in sent[:3]] == [("json", {"n": 1}), ("text", "1"), (None, "1")]
        with pytest.raises(PieError, match="the value that the program sent cannot be held by Python"):
            _ = sent[3].value
