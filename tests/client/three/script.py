"""The script of verbs in Python: `script.py ADDRESS PROGRAM MCP_SERVER...` writes what each answers as a line of JSON.

`script.mjs` and the example `script` of `rust/client` are the same in the other clients, line by line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from pie.client import AnyEvent, Client, Event, Events, PieError, Process, connect

N_FIRST = 5
EVERY_BYTE = bytes(range(256))
MANIFEST = '[package]\nname = "daemon"\nversion = "2"\n[http]\ninstance = "request"\n'
DETAILS = ("kind", "message", "traceback")


def told(verb: str, **answer: Any) -> None:
    """A line of the transcript."""
    print(json.dumps({"verb": verb, **answer}), flush=True)


async def refused(verb: str, call: Awaitable[object], *, with_message: bool = True) -> None:
    """A line of a call that fails. What the clients themselves say differs in its quotes."""
    try:
        await call
    except PieError as error:
        told(verb, code=error.code, message=error.message if with_message else None)
    else:
        told(verb, code=None, message=None)


def shown(event: AnyEvent) -> dict[str, Any]:
    """An event as it stands in the transcript."""
    match event:
        case Event.Stdout(text):
            return {"type": "stdout", "seq": event.seq, "text": text, "form": event.form}
        case Event.Stderr(text):
            return {"type": "stderr", "seq": event.seq, "text": text}
        case Event.Message(text):
            return {"type": "message", "seq": event.seq, "text": text}
        case Event.Notice(text):
            return {"type": "notice", "seq": event.seq, "text": text}
        case Event.File(data):
            return {"type": "file", "seq": event.seq, "data": list(data)}
        case Event.Return():
            return {"type": "return", "seq": event.seq, "text": event.text}
        case Event.Error(code, message, kind, traceback):
            return {"type": "error", "seq": event.seq, "code": code, "message": message, "kind": kind, "traceback": traceback}


async def read(verb: str, events: Events, n: int) -> None:
    """The next events."""
    told(verb, events=[shown(await anext(events)) for _ in range(n)])


async def read_on(verb: str, events: Events) -> None:
    """The events up to the last."""
    told(verb, events=[shown(event) async for event in events])


async def launched(client: Client, program: str) -> tuple[Process, Events]:
    """A process that has said what it says first."""
    process = await client.launch(program, input={"n": 2**64 - 1, "list": [1.5, None, True, "ü"]}, seed=7)
    events = process.events()
    told("launch", launch_seed=process.launch_seed)
    await read("events", events, N_FIRST)
    return process, events


async def install(client: Client, program: bytes) -> None:
    """Programs: uploads, installs, looks up."""
    told("check_program", answer=await client.check_program("three"))
    for version in ("1.9", "1.10"):
        await client.install(program, name="three", version=version)
    digest = await client.upload(program)
    told("upload", digest=digest)
    told("programs", answer=[[found.name, found.version, found.digest, found.bytes] for found in await client.programs()])
    told("resolve_version", answer=await client.resolve_version("three"))
    await refused("resolve_version", client.resolve_version("other"), with_message=False)
    for name, of in (("three@1.9", None), ("three", digest), ("three@1.9", "sha256:0"), ("three@2", None)):
        told("check_program", answer=await client.check_program(name, digest=of))


async def talk(client: Client) -> int:
    """Messages, signals and files; leaves and comes back; the end."""
    process, events = await launched(client, "three")
    await process.send("hello")
    await process.signal("hi")
    await read("send", events, 2)
    await process.send("file")
    await process.transfer_file(EVERY_BYTE)
    await read("transfer_file", events, 1)
    await process.detach()
    await refused("detach", anext(events), with_message=False)
    await refused("attach", client.attach(process.pid, after_seq=10**9), with_message=False)
    again = await client.attach(process.pid)
    events = again.events()
    told("attach", launch_seed=again.launch_seed)
    await again.send("stop")
    await read_on("stop", events)
    told("result", stopped=(await again.result())["stopped"])
    await refused("send", again.send("late"), with_message=False)
    return process.pid


async def end(client: Client, digest: str) -> list[int]:
    """The other ways in which a process ends."""
    failing, events = await launched(client, "three@1.9")
    await failing.send("fail")
    await read_on("fail", events)
    try:
        await failing.result()
    except PieError as error:
        told("result", code=error.code, message=error.message, details={name: error.details[name] for name in DETAILS})
    closed, events = await launched(client, digest)
    await closed.close_input()
    await read_on("close_input", events)
    stopped, events = await launched(client, "three@1.10")
    await stopped.terminate()
    await read_on("terminate", events)
    other, events = await launched(client, "three")
    await client.terminate(other.pid)
    await read_on("terminate", events)
    return [failing.pid, closed.pid, stopped.pid, other.pid]


async def run_servers(client: Client, command: list[str]) -> int:
    """An MCP server of this client, for programs, which takes the place of one before; two are refused."""
    await client.register_mcp_server("files", "/nowhere/at/all")
    await client.register_mcp_server("files", command[0], command[1:])
    process, events = await launched(client, "three")
    await process.send("tool")
    await read("register_mcp_server", events, 1)
    await client.unregister_mcp_server("files")
    await process.send("tool")
    await read("unregister_mcp_server", events, 1)
    await process.send("stop")
    await read_on("stop", events)
    await refused("unregister_mcp_server", client.unregister_mcp_server("files"))
    await refused("register_mcp_server", client.register_mcp_server("a b", command[0]))
    return process.pid


async def launch_daemon(client: Client, address: str, program: bytes) -> None:
    """A program that serves HTTP."""
    path = await client.launch_daemon(program, name="daemon", public=True)
    asking = build_opener(ProxyHandler({})).open
    with await asyncio.to_thread(asking, address.replace("ws:", "http:") + path) as answer:
        told("launch_daemon", path=path, answer=answer.read().decode().endswith("served for ada"))
    await refused("launch_daemon", client.launch_daemon(program, name="daemon", version="2", manifest=MANIFEST))
    await client.uninstall("daemon", "0.1.0")


async def ended(client: Client, pid: int) -> None:
    """Waits until the server has put the end of a process down."""
    after = 0
    while (logs := await client.logs(pid, after=after, follow=True)).text or not logs.ended:
        after = logs.next


async def look(client: Client, pids: list[int]) -> None:
    """What is told of processes and of the server."""
    for pid in pids:
        await ended(client, pid)
    processes = [process for process in await client.list(all=True) if process.pid in pids]
    told("list", answer=[[process.program, process.state, process.exit, process.detached] for process in processes])
    for pid in pids:
        outcome = await client.outcome(pid)
        told("outcome", answer=None if outcome is None else shown(outcome))
    logs = await client.logs(pids[0])
    told("logs", text=logs.text, next=logs.next, dropped_bytes=logs.dropped_bytes, ended=logs.ended)
    told("logs", text=(await client.logs(pids[0], after=5, tail_bytes=4)).text)
    told("snapshots", answer=[snapshot.name for snapshot in await client.snapshots()])
    told("adapters", answer=[adapter.name for adapter in await client.adapters()])
    told("topics", answer=[topic.topic for topic in await client.topics()])
    told("discard_topic", answer=await client.discard_topic("none"))
    told("stats", answer=sorted(await client.stats()))


async def main() -> None:
    """The whole script."""
    address, path, *server = sys.argv[1:]
    program = Path(path).read_bytes()
    async with connect(address, user="ada") as client:
        told("connect", user=client.user, role=client.role, is_draining=client.is_draining)
        await client.ping()
        await install(client, program)
        digest = await client.upload(program)
        await look(client, [await talk(client), *await end(client, digest), await run_servers(client, server)])
        await launch_daemon(client, address, program)
        await refused("launch", client.launch("absent"))
        await refused("launch", client.launch("three", limits={"riddle": 1}))
        await refused("attach", client.attach(1))
        await refused("delete_snapshot", client.delete_snapshot("default", "absent"))
        await refused("delete_adapter", client.delete_adapter("default", "absent"))
        await refused("connections", client.connections())
        await refused("disconnect", client.disconnect(1))
        for version in ("1.9", "1.10"):
            await client.uninstall("three", version)
        await refused("uninstall", client.uninstall("three", "1.9"))
    await refused("ping", client.ping())


asyncio.run(main())
