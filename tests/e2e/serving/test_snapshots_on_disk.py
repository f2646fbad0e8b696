"""Snapshots on disk under a server: it is killed, comes back, and has them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

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


def keeping(folder: Path) -> AbstractContextManager[Served]:
    """A server that keeps snapshots on disk, and is killed at the end."""
    return serving(folder, snapshots__durability="disk", snapshots__free_bytes=0)


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
            assert (await refused(client.delete_snapshot(MODEL, "hello"))).code == "snapshot-missing"
            assert await (await client.launch("open", input="hello")).result() is None
    with keeping(tmp_path) as served:
        async with client_of(served) as client:
            assert await client.snapshots() == listed[:1]
