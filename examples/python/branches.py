"""Continues one conversation in several ways at once. Input: {"prompt", "branches", "max_tokens"}."""

import asyncio

from inferlet import Context, Model, Sampler


async def main(input):
    options = input or {}
    ctx = Context(Model.load("default"))
    ctx.system("You are a helpful assistant.")
    ctx.user(options.get("prompt", "Name an animal."))
    # What the branches share is computed once.
    await ctx.flush()

    async def branch():
        with ctx.fork() as fork:
            g = fork.generate(Sampler.top_p(1.0, 0.95), max_tokens=options.get("max_tokens", 32))
            return await g.collect_text()

    return await asyncio.gather(*(branch() for _ in range(options.get("branches", 4))))
