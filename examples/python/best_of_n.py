"""Writes several answers and returns the one that the model finds likeliest. Input: {"prompt", "n", "max_tokens"}."""

import asyncio

from inferlet import Context, Logprob, Model, Sampler


async def main(input):
    options = input or {}
    model = Model.load("default")
    prompt = Context(model).user(options.get("prompt", "Name an animal.")).cue()

    async def attempt():
        with prompt.fork() as fork:
            tokens = await fork.generate(Sampler.top_p(1.0, 0.95), max_tokens=options.get("max_tokens", 16)).collect_tokens()
        # One pass reads the probability of every token of the answer, however it was drawn.
        with prompt.fork() as scored:
            n_before = len(scored.buffer())
            fwd = scored.append(tokens).forward()
            probes = [fwd.probe(n_before - 1 + n, Logprob(token)) for n, token in enumerate(tokens)]
            out = await fwd.execute()
        return sum(out.logprobs(probe)[0] for probe in probes) / len(tokens), tokens

    attempts = await asyncio.gather(*(attempt() for _ in range(options.get("n", 4))))
    score, tokens = max(attempts)
    return {"text": model.tokenizer().decode(tokens[:-1]), "score": score, "scores": sorted(one for one, _ in attempts)}
