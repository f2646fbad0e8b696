"""Summarizes the parts of a text at the same time, each by a child, and then the summaries.

pie run examples/python/map_reduce.py -- --text "A first part. A second part." --parts 2
"""

import asyncio

from inferlet import Context, Model, Sampler, runtime


async def main(input):
    if "part" in input:
        return await summary(input["part"])
    sentences = [sentence.strip() for sentence in input.get("text", "Rain fell. The sun came out.").split(".") if sentence.strip()]
    n_parts = max(1, min(input.get("parts", 2), len(sentences)))
    parts = [". ".join(sentences[index::n_parts]) for index in range(n_parts)]
    # `.` is this program: each child gets one part.
    children = [runtime.spawn(".", {"part": part}) for part in parts]
    summaries = await asyncio.gather(*children)
    return {"parts": summaries, "summary": await summary(" ".join(summaries))}


async def summary(text):
    with Context(Model.load("default")) as ctx:
        ctx.user(f"Say in a few words: {text}")
        return await ctx.generate(Sampler.argmax(), max_tokens=24).collect_text()
