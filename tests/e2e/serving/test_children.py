"""Children in a server: installed programs, whose processes they are, and what outlives what."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from pie.client import Client, Event, PieError
from support.command import pie
from support.serving import Served, client_of, collect, ended, exit_of, install_source, pages_in_use, refused, scenario, serving

COUNT = """
def main(input):
    return len(input["text"].split())
"""
PARENT = """
from inferlet import InferletError, runtime

async def main(input):
    try:
        return await runtime.spawn(input["program"], input["input"])
    except InferletError as error:
        return error.code
"""
DETACHING = """
from inferlet import messaging, runtime, session

async def main(input):
    if input == "child":
        session.send("waiting")
        return await messaging.pull("go on")
    return runtime.spawn(".", "child", detached=True).pid
"""
HOLDING = """
from inferlet import Context, Model, InferletError, messaging, runtime, session

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(list(range(5, 105)))
    await ctx.flush()
    if input == "child":
        messaging.push("ready", "")
        await messaging.pull("never")
    children = []
    try:
        for _ in range(input):
            children.append(runtime.spawn(".", "child"))
    except InferletError as error:
        session.send(error.code)
    for _ in children:
        await messaging.pull("ready")
    session.send("ready")
    await messaging.pull("never")
"""


@pytest.mark.rows("OLD-084")
@scenario
async def test_installed_programs_are_started_by_name_and_version(server: Served, tmp_path: Path) -> None:
    async with client_of(server, "spawner") as client, client_of(server, "other") as other:
        await install_source(client, tmp_path, COUNT, "count")
        await install_source(client, tmp_path, PARENT, "parent")
        await install_source(other, tmp_path / "other", PARENT, "parent")
        for name in ("count", "count@0.1.0"):
            process = await client.launch("parent", input={"program": name, "input": {"text": "a b c"}})
            assert await process.result() == 3
        for name in ("count@9.9.9", "nobody", "a/b"):
            process = await client.launch("parent", input={"program": name, "input": None})
            assert await process.result() == "unknown-program"
        # What is another user's is not there.
        process = await other.launch("parent", input={"program": "count", "input": None})
        assert await process.result() == "unknown-program"


@scenario
async def test_a_launch_names_programs_that_it_and_its_children_can_start(server: Served, tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(COUNT)
    nested = {"program": "again", "input": {"program": "mine", "input": {"text": "a b c"}}}
    async with client_of(server, "namer") as client:
        await install_source(client, tmp_path / "parent", PARENT, "parent")
        digest = await client.upload(tmp_path / "count.py")
        programs = {"mine": digest, "again": "parent@0.1.0"}
        assert await (await client.launch("parent", input=nested, programs=programs)).result() == 3
        # Another launch knows nothing of them.
        assert await (await client.launch("parent", input={"program": "mine", "input": None})).result() == "unknown-program"
        for name, program, code in (("mine", "nobody", "unknown-program"), ("a/b", digest, "invalid-name")):
            assert (await refused(client.launch("parent", programs={name: program}))).code == code


def test_the_command_uploads_programs(server: Served, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "from inferlet import runtime\nasync def main(input):\n    return await runtime.spawn('count', {'text': 'a b'})\n"
    )
    (tmp_path / "count.py").write_text(COUNT)
    done = pie("run", "main.py", "--program", "count=count.py", "--server", server.url, "--seed", "1", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


@scenario
async def test_a_detached_child_outlives_its_parent_and_is_listed(server: Served, tmp_path: Path) -> None:
    async with client_of(server, "detaching") as client:
        await install_source(client, tmp_path, DETACHING, "detaching")
        pid = int(await (await client.launch("detaching", input="parent")).result())
        [listed] = [entry for entry in await client.list() if entry.pid == pid]
        assert (listed.state, listed.detached) == ("running", True)
        process = await client.attach(pid)
        assert await anext(process.events()) == Event.Stdout("waiting")
        await client.terminate(pid)
        assert [event.code for event in await collect(process) if isinstance(event, Event.Error)] == ["cancelled"]
        assert await exit_of(client, pid) == "cancelled"


@scenario
async def test_children_of_a_process_that_is_killed_leave_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "server", server__grace_s=0.001) as server:
        async with client_of(server) as client:
            await install_source(client, tmp_path, HOLDING, "holding")
            process = await client.launch("holding", input=5)
            assert await anext(process.events()) == Event.Stdout("ready")
            assert await pages_in_use(client) > 0
            await client.terminate(process.pid)
            await collect(process)
            assert await pages_in_use(client) == 0
            # So it is where the client goes away.
            process = await client.launch("holding", input=5)
            assert await anext(process.events()) == Event.Stdout("ready")
        async with client_of(server) as client:
            await ended(client, process.pid)
            assert await pages_in_use(client) == 0
            assert [entry for entry in await client.list() if entry.state == "running"] == []


@scenario
async def test_children_count_among_the_processes_of_their_user(tmp_path: Path) -> None:
    with serving(tmp_path / "server", server__max_processes_per_user=4) as server:
        async with client_of(server) as client:
            await install_source(client, tmp_path, HOLDING, "holding")
            process = await client.launch("holding", input=10)
            events = process.events()
            assert [await anext(events), await anext(events)] == [Event.Stdout("limit-processes"), Event.Stdout("ready")]
            assert (await refused(client.launch("holding", input=0))).code == "limit-processes"
            await client.terminate(process.pid)
            await collect(process)
            again = await client.launch("holding", input=0)
            assert await anext(again.events()) == Event.Stdout("ready")


async def launch_and_end(client: Client) -> None:
    """Launches and ends processes until one is refused."""
    while True:
        await client.terminate((await client.launch("late")).pid)


@scenario
async def test_a_server_that_is_about_to_end_lets_families_finish(tmp_path: Path) -> None:
    text = """
from inferlet import messaging, runtime, session

async def main(input):
    if input == "child":
        return "done"
    session.send("ready")
    await session.receive()
    return await runtime.spawn(".", "child")
"""
    with serving(tmp_path / "server") as server:
        async with client_of(server) as client:
            await install_source(client, tmp_path, text, "late")
            process = await client.launch("late")
            events = process.events()
            assert await anext(events) == Event.Stdout("ready")
            server.signal(signal.SIGTERM)
            # A launch that was before the signal is still taken.
            with pytest.raises(PieError) as refusal:
                await launch_and_end(client)
            assert refusal.value.code == "server-draining"
            await process.send("go on")
            assert [event async for event in events] == [Event.Return('"done"')]
        assert await asyncio.to_thread(server.wait) == 0
