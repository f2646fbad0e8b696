"""Twenty questions to one context at once, each in a fork of its own."""

import asyncio

from inferlet import Context, Model


async def main(input):
    ctx = Context(Model.load("default")).system("You are a helpful assistant.")
    await ctx.flush()  # What the forks share is computed once.
    asked = [ctx.fork().ask(f"What is {n} + {n}?", max_tokens=16) for n in range(1, 21)]
    return await asyncio.gather(*asked)
