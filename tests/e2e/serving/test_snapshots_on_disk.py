"""Snapshots on disk under a server: it is killed, comes back, and has them; and its disk is full, or read-only."""

from __future__ import annotations

import resource
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pie.client import Event, Process
from pie.snapshots import folder_name
from support.bad_lines import tell
from support.serving import MODEL, Served, client_of, install_source, refused, scenario, serving

SAVE = """
from inferlet import Context, Model


async def main(input):
    ctx = Context(Model.load("default")).user(input)
    await ctx.flush()
    ctx.save(input)
"""

OPEN = """
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context.open(Model.load("default"), input)
    if ctx is None:
        return None
    return await ctx.user("And now?").generate(Sampler.argmax(), max_tokens=5).collect_tokens()
"""


# Carries out what it is asked for, each with one answer.
KEEPS = """
from inferlet import Context, InferletError, Model, session

model = Model.load("default")


def carry_out(asked, contexts):
    if asked == "delete":
        Context.delete(model, "kept")
    elif asked == "open":
        with Context.open(model, "kept") as ctx:
            return str(ctx.seq_len)
    else:
        contexts[asked].save("kept")
    return "done"


async def main(input):
    contexts = {"small": Context(model).append([1] * 1000), "large": Context(model).append([2] * 2000)}
    for ctx in contexts.values():
        await ctx.flush()
    session.send("ready")
    while True:
        try:
            asked = await session.receive()
        except session.SessionClosed:
            return None
        try:
            session.send(carry_out(asked, contexts))
        except InferletError as error:
            session.send(f"error[{error.code}] {error.message}")
"""
ROOM_BYTES = 6000
"""Of a file: for a snapshot of 1000 tokens, and not for one of 2000."""


def keeping(folder: Path, *, without_privileges: bool = False) -> AbstractContextManager[Served]:
    """A server that keeps snapshots on disk, and is killed at the end."""
    return serving(folder, without_privileges=without_privileges, snapshots__durability="disk", snapshots__free_bytes=0)


@dataclass
class Keeper:
    """A program that keeps what it is asked for."""

    process: Process

    async def told(self) -> str:
        """What it says next."""
        event = await self.process.next_event()
        assert isinstance(event, Event.Stdout), event
        return event.text

    async def asked(self, what: str) -> str:
        """What it answers."""
        await self.process.send(what)
        return await self.told()


@asynccontextmanager
async def keeper(served: Served, folder: Path, user: str) -> AsyncIterator[Keeper]:
    """A program of a user, which has computed what it is to keep."""
    async with client_of(served, user) as client:
        await install_source(client, folder, KEEPS, "keeps")
        process = await client.launch("keeps")
        opened = Keeper(process)
        assert await opened.told() == "ready"
        yield opened
        await process.close_input()
        assert await process.result() is None


@scenario
async def test_a_server_that_was_killed_comes_back_with_what_was_saved(tmp_path: Path) -> None:
    with keeping(tmp_path) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, SAVE, "save")
            await install_source(client, tmp_path, OPEN, "open")
            for name in ("hello", "again"):
                await (await client.launch("save", input=name)).result()
            expected = await (await client.launch("open", input="hello")).result()
            listed = await client.snapshots()
            assert [(one.model, one.name) for one in listed] == [(MODEL, "again"), (MODEL, "hello")]
        async with client_of(served, "bob") as client:
            assert await client.snapshots() == []
            assert (await refused(client.delete_snapshot(MODEL, "hello"))).code == "snapshot-missing"
    with keeping(tmp_path) as served:
        async with client_of(served) as client:
            assert await client.snapshots() == listed
            assert await (await client.launch("open", input="hello")).result() == expected
            await client.delete_snapshot(MODEL, "hello")
            gone = await refused(client.delete_snapshot(MODEL, "hello"))
            assert gone.code == "snapshot-missing"
            assert gone.message == 'there is no snapshot "hello" to delete; the snapshots of this user are "again"'
            assert await (await client.launch("open", input="hello")).result() is None
    with keeping(tmp_path) as served:
        async with client_of(served) as client:
            assert await client.snapshots() == listed[:1]


@scenario
async def test_a_full_disk_is_told_and_others_save_what_fits(tmp_path: Path) -> None:
    with keeping(tmp_path / "server") as served:
        async with keeper(served, tmp_path, "alice") as alice, keeper(served, tmp_path, "bob") as bob:
            assert await alice.asked("small") == "done"
            # Files of the server cannot grow beyond that: to whoever writes, the disk has no room.
            limits = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, resource.RLIM_INFINITY))
            said = await alice.asked("large")
            tell("a folder of snapshots that is full", said)
            assert said.startswith("error[disk-full] a snapshot cannot be written: the disk has no room for it; ")
            assert said.endswith(
                "delete snapshots, or have whoever runs the engine make room or give it another folder with snapshots.folder"
            )
            assert str(tmp_path) not in said
            # What had the name is there, and whoever needs less is served.
            assert await alice.asked("open") == "1000"
            assert [await bob.asked(what) for what in ("small", "open")] == ["done", "1000"]
            resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, limits)
            assert [await alice.asked(what) for what in ("large", "open")] == ["done", "2000"]
            # Nothing is left of the file that was not written.
            names = [path.name for path in (served.folder / "data/snapshots" / folder_name(MODEL)).iterdir()]
            assert len([name for name in names if name.endswith(".snap")]) == 2
            assert not [name for name in names if name.startswith(".new")]


@scenario
async def test_a_folder_that_is_read_only_is_told_and_keeps_what_it_has(tmp_path: Path) -> None:
    above = tmp_path / "server/data/snapshots"
    above.mkdir(parents=True)
    above.chmod(0o555)
    with keeping(tmp_path / "server", without_privileges=True) as served:
        async with keeper(served, tmp_path, "alice") as alice:
            refusals = [await alice.asked("small")]
            above.chmod(0o755)
            assert await alice.asked("small") == "done"
            of_model = above / folder_name(MODEL)
            of_model.chmod(0o555)
            refusals += [await alice.asked("large"), await alice.asked("delete")]
            for what, said in zip(("used", "written to", "deleted from"), refusals, strict=True):
                tell(f"a folder of snapshots that is read-only, and is to be {what}", said)
                assert said.startswith("error[disk-read-only] ")
                assert said.endswith("have whoever runs the engine give it access, or another folder with snapshots.folder")
                assert str(tmp_path) not in said
            assert await alice.asked("open") == "1000"
            of_model.chmod(0o755)
            assert [await alice.asked(what) for what in ("large", "open", "delete")] == ["done", "2000", "done"]
