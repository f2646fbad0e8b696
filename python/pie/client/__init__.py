"""The client of `pie serve`: asyncio, for any program that is not itself run by the engine.

`pie.client.sync` is the same without asyncio.

async with pie.client.connect("ws://127.0.0.1:8080") as client:
    process = await client.launch("chat@1.0", input={"prompt": "Hello!"})
    async for event in process.events():
        match event:
            case Event.Stdout(text):
                print(text, end="")
    value = await process.result()
"""

from pie.client import sync
from pie.client.client import Client, Connecting, connect
from pie.client.info import AdapterInfo, ConnectionInfo, Logs, ProcessInfo, ProgramInfo, ServerStats, SnapshotInfo, TopicInfo
from pie.client.process import Events, Process
from pie.client.signing import PrivateKey
from pie.errors import PieError
from pie.events import AnyEvent, Event, LastEvent

__all__ = [
    "AdapterInfo",
    "AnyEvent",
    "Client",
    "Connecting",
    "ConnectionInfo",
    "Event",
    "Events",
    "LastEvent",
    "Logs",
    "PieError",
    "PrivateKey",
    "Process",
    "ProcessInfo",
    "ProgramInfo",
    "ServerStats",
    "SnapshotInfo",
    "TopicInfo",
    "connect",
    "sync",
]
