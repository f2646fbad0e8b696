"""Thinks in a tree: several thoughts of each kept one, of which the best are kept. Input: {"prompt", "depth",
"branches", "keep", "max_tokens"}.
"""

import asyncio

from inferlet import Context, Logprobs, Model, Sampler

QUESTION = "Is this a good answer? Say yes or no."


async def main(input):
    options = input or {}
    n_branches, n_kept = options.get("branches", 3), options.get("keep", 2)
    model = Model.load("default")
    yes, no = (model.tokenizer().encode(word)[0] for word in ("Yes", "No"))
    root = Context(model).system("You are a helpful assistant.").user(options.get("prompt", "Tell me a short story about a fox."))
    # The pages of what thoughts have in common are computed once, and shared by all that fork from here.
    await root.flush()

    async def think(ctx, path):
        thought = ctx.fork()
        text = await thought.generate(Sampler.top_p(1.0, 0.95), max_tokens=options.get("max_tokens", 16)).collect_text()
        return thought, [*path, text]

    async def judge(ctx):
        """How much likelier yes is than no, asked of a fork that is dropped."""
        with ctx.fork() as judged:
            judged.user(QUESTION).cue()
            fwd = judged.forward()
            probe = fwd.probe(len(judged.buffer()), Logprobs([yes, no]))
            logs = (await fwd.execute()).logprobs(probe)
            return logs[0] - logs[1]

    kept = [(root, [])]
    for _ in range(options.get("depth", 2)):
        thoughts = await asyncio.gather(*(think(ctx, path) for ctx, path in kept for _ in range(n_branches)))
        scores = await asyncio.gather(*(judge(ctx) for ctx, _ in thoughts))
        order = sorted(range(len(thoughts)), key=lambda n: -scores[n])
        kept = [thoughts[n] for n in order[:n_kept]]
        for ctx, _ in kept:
            ctx.user("Go on.")
    return kept[0][1]
