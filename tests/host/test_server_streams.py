"""Fifty clients that stream at once, some of which vanish in the middle."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from host.programs import PATIENCE_S, TINY, VOCAB_SIZE
from pie import _engine
from pie.client import Client, Event, connect

N_CLIENTS = 50
VANISHING = frozenset(range(0, N_CLIENTS, 10))
N_TOKENS = 64

STREAM = f"""
from inferlet import Context, Model, Sampler, session

async def answer(n):
    ctx = Context(Model.load("default"))
    ctx.append([1, 2, n])
    tokens = []
    async for step in ctx.generate(Sampler.top_p(1.0, 0.95), max_tokens={N_TOKENS}, stop=[], auto_flush=False):
        out = await step.execute()
        tokens.extend(out.tokens)
        session.send(str(out.tokens[0]))
    ctx.release()
    return tokens

async def main(input):
    # An endless program generates until it is cancelled, however late the engine learns that its client has gone.
    while True:
        tokens = await answer(input["n"])
        if not input["endless"]:
            return tokens
"""


def test_clients_that_vanish_change_nothing_for_the_others(engine: _engine.Engine, tmp_path: Path) -> None:
    model = engine.add_model("tiny", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 2048, "n_pages": 512})
    model.run_dummy()
    server = engine.serve(tmp_path, {"port": 0, "grace_s": 0.01})
    asyncio.run(asyncio.wait_for(_stream(f"ws://{server.address}"), PATIENCE_S))
    assert server.n_live == 0
    assert model.stats()["n_pages_used"] == 0
    server.stop()
    model.check()


async def _stream(address: str) -> None:
    async with connect(address, user="alice") as alice:
        program = await alice.install(_engine.pack_program("python", {"main.py": STREAM.encode()}, "main.py"), name="stream", version="1")
        alone = [await _streamed(alice, program, n) for n in range(N_CLIENTS)]
        together = await asyncio.gather(*(_client(address, program, n) for n in range(N_CLIENTS)))
        for n in set(range(N_CLIENTS)) - VANISHING:
            assert together[n] == alone[n]
        assert all(len(tokens) == N_TOKENS for tokens in alone)
        assert len({tuple(tokens) for tokens in alone}) == N_CLIENTS
        # The processes of those that vanished end after their grace.
        async with asyncio.timeout(PATIENCE_S):
            while (await alice.stats())["n_live"] > 0:
                pass
        exits = [process.exit for process in await alice.list(all=True)]
        assert exits.count("cancelled") == len(VANISHING)
        assert exits.count("return") == 2 * N_CLIENTS - len(VANISHING)


async def _client(address: str, program: str, n: int) -> Any:
    async with connect(address, user="alice") as client:
        return await _streamed(client, program, n, vanish=n in VANISHING)


async def _streamed(client: Client, program: str, n: int, *, vanish: bool = False) -> Any:
    """What a program streams and then returns; with `vanish`, it never returns, and its client goes in the middle."""
    process = await client.launch(program, input={"n": n, "endless": vanish}, seed=n)
    said = []
    async for event in process.events():
        match event:
            case Event.Stdout():
                said.append(int(event.text))
                if vanish and len(said) == N_TOKENS // 2:
                    return None
            case Event.Return():
                assert event.value == said
            case _:
                raise AssertionError(event)
    return said
