"""Honest users: each generates text with seeds of its own, over and over, and compares with what it got alone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from pie.client import Client, PieError, connect
from tools.siege.programs import packed

N_USERS = 10
_N_SEEDS = 8
_PAUSE_S = 0.2

_PROGRAM = b"""
from inferlet import Context, Model, Sampler

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.user("tell me of the sea")
    return await ctx.generate(Sampler.top_p(0.8, 0.95), max_tokens=12, stop=[]).collect_tokens()
"""

_FILLING = b"""
import random
from inferlet import Context, Model

async def main(input):
    model = Model.load("default")
    for _ in range(8):
        await Context(model).append([random.randrange(300, 3000) for _ in range(1900)]).flush()
"""


@dataclass
class Seen:
    """What honest users met."""

    right: int = 0
    wrong: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """Answers that were errors, by code."""
    times_s: list[float] = field(default_factory=list)

    def at(self, part: float) -> float:
        """The time within which that part of the answers came, in seconds."""
        times = sorted(self.times_s)
        return times[min(int(part * len(times)), len(times) - 1)] if times else float("nan")

    def shown(self) -> str:
        """One line."""
        errors = ", ".join(f"{n} {code}" for code, n in sorted(self.refused.items())) or "none"
        return (
            f"{self.right} right, {self.wrong} wrong, errors: {errors}; "
            f"p50 {self.at(0.5):.3f} s, p95 {self.at(0.95):.3f} s, slowest {self.at(1):.3f} s"
        )


Expected = dict[int, list[int]]


async def expected(url: str) -> Expected:
    """What each seed gives."""
    async with connect(url, user="honest") as client:
        digest = await client.upload(packed("main.py", _PROGRAM))
        return {seed: await (await client.launch(digest, seed=seed)).result() for seed in range(_N_SEEDS)}


async def fill(url: str) -> None:
    """Has every page of the pools of the models written once.

    The engine sets a pool aside when it starts, and the system gives it memory as it is written: what is measured later
    is what users make the server take beyond that.
    """
    async with connect(url, user="honest", timeout_s=60) as client:
        digest = await client.upload(packed("main.py", _FILLING))
        n_free, n_were_free = await _free_pages(client), None
        while n_free and n_free != n_were_free:
            await (await client.launch(digest)).result()
            n_free, n_were_free = await _free_pages(client), n_free


async def _free_pages(client: Client) -> int:
    stats: Any = await client.stats()
    return sum(model["n_pages_free"] for model in stats.get("server", stats)["models"].values())


async def live(url: str, tokens: Expected, until: float) -> Seen:
    """Ten users who generate until a time of the monotonic clock."""
    seen = Seen()
    await asyncio.gather(*(_user(url, f"honest-{n}", tokens, until, seen) for n in range(N_USERS)))
    return seen


async def _user(url: str, name: str, tokens: Expected, until: float, seen: Seen) -> None:
    turn = 0
    while time.monotonic() < until:
        try:
            async with connect(url, user=name, timeout_s=60) as client:
                digest = await client.upload(packed("main.py", _PROGRAM))
                while time.monotonic() < until:
                    turn += 1
                    await _ask(client, digest, turn % _N_SEEDS, tokens, seen)
                    await asyncio.sleep(_PAUSE_S)
        except PieError as error:
            seen.refused[error.code] = seen.refused.get(error.code, 0) + 1
            await asyncio.sleep(_PAUSE_S)


async def _ask(client: Client, digest: str, seed: int, tokens: Expected, seen: Seen) -> None:
    started = time.monotonic()
    process = await client.launch(digest, seed=seed)
    got = await process.result()
    seen.times_s.append(time.monotonic() - started)
    if got == tokens[seed]:
        seen.right += 1
    else:
        seen.wrong += 1
