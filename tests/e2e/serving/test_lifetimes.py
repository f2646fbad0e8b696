"""Processes, their clients, and what waits for whoever attaches."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pie.client import Event, connect
from support.serving import (
    ECHO,
    FLOOD,
    SPIN,
    STREAM,
    Served,
    client_of,
    collect,
    ended,
    exit_of,
    install_source,
    refused,
    scenario,
    serving,
    streamed,
)


@scenario
async def test_a_detached_program_is_collected_by_a_client_that_comes_after_its_end(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        await install_source(client, tmp_path, STREAM, "stream")
        alone = await collect(await client.launch("stream", input={"prompt": "p"}, seed=5))
        pid = (await client.launch("stream", input={"prompt": "p"}, seed=5, detached=True)).pid
    async with client_of(server) as client:
        await ended(client, pid)
        process = await client.attach(pid)
        events = await collect(process)
        assert events == alone
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert isinstance(events[-1], Event.Return)
        assert await process.result() == events[-1].value


@scenario
async def test_a_process_goes_on_where_its_client_left_it(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        await install_source(client, tmp_path, ECHO, "echo")
        process = await client.launch("echo", detached=True)
        events = process.events()
        assert await anext(events) == Event.Stdout("ready")
        await process.send("one")
        assert await anext(events) == Event.Stdout("<one>")
        await process.detach()
        assert (await refused(anext(events))).code == "session-closed"
    async with client_of(server) as client:
        process = await client.attach(process.pid)
        await process.signal("two")
        await process.close_input()
        assert await collect(process) == [Event.Stdout("<two>"), Event.Return("2")]


@pytest.mark.rows("RS-203 SES-011..012 SES-031 SES-035..036 SES-038")
@scenario
async def test_files_and_messages_travel_both_ways_in_order(server: Served, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    async with client_of(server) as client:
        await install_source(client, tmp_path, ECHO, "echo")
        process = await client.launch("echo")
        await process.send("a ü 🦊")
        await process.signal("stop?")
        await process.send("file")
        await process.transfer_file(data)
        await process.close_input()
        assert await collect(process) == [
            Event.Stdout("ready"),
            Event.Stdout("<a ü 🦊>"),
            Event.Stdout("<stop?>"),
            Event.File(data[::-1]),
            Event.Return("3"),
        ]
        assert (await refused(process.send("late"))).code == "session-closed"


@scenario
async def test_one_client_reads_and_others_see_the_logs(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as first, client_of(server) as second:
        await install_source(first, tmp_path, ECHO, "echo")
        process = await first.launch("echo")
        assert await anext(process.events()) == Event.Stdout("ready")
        taken = await refused(second.attach(process.pid))
        assert taken.code == "process-attached"
        assert f"another client is attached to process {process.pid}" in str(taken)
        own = await refused(first.attach(process.pid))
        assert own.code == "process-attached"
        assert f"this connection is attached to process {process.pid} already; use that process, or detach() from it first" in str(own)
        assert (await second.logs(process.pid)).text == "ready"
        [listed] = [entry for entry in await second.list() if entry.pid == process.pid]
        assert (listed.program, listed.state, listed.attached, listed.exit) == ("echo@0.1.0", "running", True, None)
        await second.terminate(process.pid)
        assert [event.code for event in await collect(process) if isinstance(event, Event.Error)] == ["cancelled"]


@scenario
async def test_a_user_sees_nothing_of_another(server: Served, tmp_path: Path) -> None:
    async with client_of(server, "alice") as alice, client_of(server, "bob") as bob:
        await install_source(alice, tmp_path, ECHO, "secret")
        process = await alice.launch("secret")
        assert process.pid not in [entry.pid for entry in await bob.list(all=True)]
        assert "secret" not in [program.name for program in await bob.programs()]
        for call in (bob.attach(process.pid), bob.terminate(process.pid), bob.logs(process.pid)):
            assert (await refused(call)).code == "unknown-process"
        assert (await refused(bob.launch("secret"))).code == "unknown-program"
        await alice.ping()


@scenario
async def test_a_client_that_vanishes_takes_its_process_with_it_unless_it_is_detached(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        await install_source(client, tmp_path, SPIN, "spin")
        async with connect(server.url, user="alice") as vanishing:
            processes = [await vanishing.launch("spin", detached=detached) for detached in (False, True)]
            for process in processes:
                assert await anext(process.events()) == Event.Stdout("spinning\n")
        left, kept = (process.pid for process in processes)
        await ended(client, left)
        assert await exit_of(client, left) == "cancelled"
        assert [entry.pid for entry in await client.list()] == [kept]
        await client.terminate(kept)
        await ended(client, kept)


@scenario
async def test_a_client_that_comes_back_in_time_finds_its_process(tmp_path: Path) -> None:
    with serving(tmp_path, server__grace_s=600) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, ECHO, "echo")
            process = await client.launch("echo")
            await process.send("one")
        async with client_of(served) as client:
            process = await client.attach(process.pid)
            await process.close_input()
            assert streamed(await collect(process)) == "ready<one>"


@scenario
async def test_output_that_nobody_reads_is_bounded_and_counted(tmp_path: Path) -> None:
    with serving(tmp_path, server__kept_bytes=4096, server__log_bytes=2048) as served:
        async with client_of(served) as client:
            await install_source(
                client, tmp_path, "def main(input):\n    for n in range(1000):\n        print(n, 'x' * 100)\n    return n", "loud"
            )
            process = await client.launch("loud", detached=True)
            await process.detach()
            await ended(client, process.pid)
            events = await collect(await client.attach(process.pid))
            assert events[-1] == Event.Return("999")
            assert any(isinstance(event, Event.Notice) and "dropped" in event.text for event in events)
            assert sum(len(event.text) for event in events if isinstance(event, Event.Stdout)) <= 4096
            logs = await client.logs(process.pid)
            assert len(logs.text) <= 2048
            assert logs.text.endswith("999 " + "x" * 100 + "\n")
            [listed] = await client.list(all=True)
            assert listed.dropped > 0


@scenario
async def test_cancelling_a_launch_leaves_no_process(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        await install_source(client, tmp_path, SPIN, "spin")
        before = {entry.pid for entry in await client.list(all=True)}
        launching = [asyncio.create_task(client.launch("spin", detached=True)) for _ in range(8)]
        await client.ping()
        for task in launching:
            task.cancel()
        for outcome in await asyncio.gather(*launching, return_exceptions=True):
            if not isinstance(outcome, BaseException):
                await outcome.terminate()
        await client.ping()
        for entry in await client.list(all=True):
            if entry.pid not in before:
                await ended(client, entry.pid)
                assert await exit_of(client, entry.pid) == "cancelled"


@scenario
async def test_an_installed_program_is_replaced_while_it_runs(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        (tmp_path / "v.py").write_text("from inferlet import session\nasync def main(i):\n    await session.receive()\n    return 'old'\n")
        assert await client.install(tmp_path / "v.py", version="1.0") == "v@1.0"
        running = await client.launch("v@1.0")
        (tmp_path / "v.py").write_text("def main(i):\n    return 'new'\n")
        await client.install(tmp_path / "v.py", version="1.0")
        assert await (await client.launch("v@1.0")).result() == "new"
        await running.send("go")
        assert await running.result() == "old"
        assert [(program.name, program.version) for program in await client.programs() if program.name == "v"] == [("v", "1.0")]
        await client.uninstall("v", "1.0")
        assert (await refused(client.launch("v@1.0"))).code == "unknown-program"


@scenario
async def test_a_launch_may_lower_limits_and_bound_its_tokens(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        await install_source(client, tmp_path, FLOOD, "flood")
        await install_source(client, tmp_path, STREAM, "stream")
        for limits, code in ({"cpu_s": 1}, "limit-cpu"), ({"cpu_s": 1.0, "memory_bytes": 200 << 20}, "limit-cpu"):
            process = await client.launch("flood", limits=limits)
            last = (await collect(process))[-1]
            assert isinstance(last, Event.Error)
            assert last.code == code
        for mistake in ({"cpu_s": 1e9}, {"cpu_s": None}, {"wishes": 3}):
            assert (await refused(client.launch("flood", limits=mistake))).code == "invalid-argument"
        process = await client.launch("stream", input={"prompt": "p"}, token_budget=40)
        assert (await refused(process.result())).code == "token-budget"


@scenario
async def test_a_list_tells_what_processes_have_of_the_market(server: Served, tmp_path: Path) -> None:
    async with client_of(server) as client:
        await install_source(client, tmp_path, ECHO, "echo")
        process = await client.launch("echo", credits=2.5)
        assert await anext(process.events()) == Event.Stdout("ready")
        (running,) = [listed for listed in await client.list() if listed.pid == process.pid]
        assert running.credits is not None
        assert set(running.credits.values()) == {2.5}
        assert running.bids == dict.fromkeys(running.credits, 0.0)
        await process.close_input()
        await process.result()
        await ended(client, process.pid)
        (over,) = [listed for listed in await client.list(all=True) if listed.pid == process.pid]
        assert (over.credits, over.bids) == ({}, {})
