"""Many clients at once, some of which break off: everyone else gets what they get alone, and nothing stays behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pie.client import AnyEvent, Client, Event, connect
from support.serving import CHAT, STREAM, Served, client_of, collect, ended, install_source, pages_in_use, scenario, streamed

N_CLIENTS = 50
N_BROKEN = 5
N_TOKENS = 64


def question(number: int) -> dict[str, object]:
    return {"prompt": f"question {number} of many", "max_tokens": N_TOKENS}


async def launch_and_collect(client: Client, number: int) -> list[AnyEvent]:
    return await collect(await client.launch("chat", input=question(number), seed=number))


@scenario
async def test_forty_five_of_fifty_clients_equal_their_solo_runs(server: Served, tmp_path: Path) -> None:
    begun = asyncio.Barrier(N_CLIENTS)

    async def stay(number: int) -> list[AnyEvent]:
        async with client_of(server) as client:
            await begun.wait()
            return await launch_and_collect(client, number)

    async def break_off(number: int) -> int:
        async with connect(server.url, user="alice") as client:
            await begun.wait()
            process = await client.launch("stream", input={"prompt": f"question {number}", "n": 10**9})
            assert isinstance(await anext(process.events()), Event.Stdout)
            client._connection._socket.transport.abort()  # the network goes, without a word of the protocol
            return process.pid

    async with client_of(server) as client:
        await client.install(CHAT)
        await install_source(client, tmp_path, STREAM, "stream")
        solo = [await launch_and_collect(client, number) for number in range(N_BROKEN, N_CLIENTS)]
        together = [stay(number) for number in range(N_BROKEN, N_CLIENTS)]
        broken = [break_off(number) for number in range(N_BROKEN)]
        *pids, results = await asyncio.gather(*broken, asyncio.gather(*together))
        for alone, events in zip(solo, results, strict=True):
            assert streamed(events) == streamed(alone) != ""
            assert events[-1] == alone[-1]
        for pid in pids:
            await ended(client, pid)
        exits = {process.pid: process.exit for process in await client.list(all=True)}
        assert {exits[pid] for pid in pids} == {"cancelled"}
        assert await client.list() == []
        assert await pages_in_use(client) == 0


@scenario
async def test_processes_of_one_connection_do_not_hold_each_other_up(server: Served) -> None:
    async with client_of(server) as client:
        await client.install(CHAT)
        unread = [await client.launch("chat", input=question(number), seed=number, window_bytes=64) for number in range(4)]
        alone = [await launch_and_collect(client, number) for number in range(4)]
        for process, events in zip(unread, alone, strict=True):
            assert await collect(process) == events
        assert await pages_in_use(client) == 0
