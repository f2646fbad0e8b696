"""Asks a question several times until one answer has won. Input: {"prompt", "samples", "at_once", "max_tokens"}."""

import asyncio
from collections import Counter

from inferlet import Context, Model, Sampler


async def main(input):
    options = input or {}
    n_samples, at_once = options.get("samples", 9), options.get("at_once", 3)
    ctx = Context(Model.load("default")).user(options.get("prompt", "Name an animal."))
    await ctx.flush()

    async def answer():
        with ctx.fork() as fork:
            text = await fork.generate(Sampler.top_p(0.8, 0.95), max_tokens=options.get("max_tokens", 12)).collect_text()
            return text.strip().strip(".").lower()

    votes, n_asked = Counter(), 0
    while n_asked < n_samples:
        n = min(at_once, n_samples - n_asked)
        votes.update(await asyncio.gather(*(answer() for _ in range(n))))
        n_asked += n
        (_, most), *others = votes.most_common(2)
        # Nobody else can catch up any more.
        if most > (others[0][1] if others else 0) + n_samples - n_asked:
            break
    return {"answer": votes.most_common(1)[0][0], "votes": dict(votes), "asked": n_asked}
