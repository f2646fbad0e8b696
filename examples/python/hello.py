"""The simplest program: one message, one answer. Input: {"name": text}."""

from inferlet import Context, Model, Sampler


async def main(input):
    name = input.get("name") if input else None
    ctx = Context(Model.load("default"))
    ctx.user(f"Hello! My name is {name}." if name else "Hello!")
    return await ctx.generate(Sampler.top_p(0.6, 0.95), max_tokens=64).collect_text()
