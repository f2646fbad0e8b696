"""Teaches the model a fact by evolution strategies: passes alone, no gradients. Input: {"question", "answer", "steps"}.

Each step tries a population of small changes of an adapter, and scores each by how likely it makes the answer.
"""

import asyncio

from inferlet import Adapter, Context, Logprob, Model, Sampler, session, zo

NAME = "evolution"


async def main(input):
    options = input or {}
    model = Model.load("default")
    prompt = Context(model).user(options.get("question", "What is the capital of Atlantis?")).cue()
    answer = model.tokenizer().encode(options.get("answer", "Poseidonis."))
    if NAME in Adapter.names(model):
        Adapter.delete(model, NAME)
    adapter = Adapter.create(model, NAME, rank=options.get("rank", 2), alpha=options.get("alpha", 4))
    population = options.get("population", 32)
    optimizer = zo.Optimizer(adapter, sigma=options.get("sigma", 0.05), lr=options.get("lr", 0.1), population=population)

    async def score(seed=None):
        """The mean logarithm of the probability of the tokens of the answer."""
        with prompt.fork() as scored:
            n_before = len(scored.buffer())
            fwd = scored.append(answer).forward().adapter(adapter)
            if seed is not None:
                fwd.zo_seed(seed)
            probes = [fwd.probe(n_before - 1 + n, Logprob(token)) for n, token in enumerate(answer)]
            out = await fwd.execute()
        return sum(out.logprobs(probe)[0] for probe in probes) / len(answer)

    curve = [await score()]
    for step in range(options.get("steps", 60)):
        seeds = optimizer.ask()
        optimizer.tell(seeds, await asyncio.gather(*(score(seed) for seed in seeds)))
        optimizer.apply()
        curve.append(await score())
        session.send(f"step {step + 1}: {curve[-1]:.3f}")
    adapter.save(f"/scratch/{NAME}")
    with prompt.fork() as told:
        text = await told.generate(Sampler.argmax(), max_tokens=16, adapter=adapter).collect_text()
    return {"curve": curve, "text": text}
