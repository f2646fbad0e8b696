"""Answers only where the model is sure of every token of the answer. Input: {"prompt", "least", "max_tokens"}."""

from math import exp

from inferlet import Context, Logprob, Model, Sampler


async def logprobs_of(prompt, tokens):
    """The logarithms of the probabilities of tokens behind a prompt that is not computed yet, in one pass."""
    with prompt.fork() as scored:
        n_before = len(scored.buffer())
        fwd = scored.append(tokens).forward()
        probes = [fwd.probe(n_before - 1 + n, Logprob(token)) for n, token in enumerate(tokens)]
        out = await fwd.execute()
        return [out.logprobs(probe)[0] for probe in probes]


async def main(input):
    options = input or {}
    model = Model.load("default")
    prompt = Context(model).user(options.get("prompt", "How much does a guitar cost?")).cue()
    tokens = await prompt.fork().generate(Sampler.argmax(), max_tokens=options.get("max_tokens", 24)).collect_tokens()
    logs = await logprobs_of(prompt, tokens)
    least = options.get("least", 0.2)
    doubtful = [model.tokenizer().decode([token]) for token, log in zip(tokens, logs, strict=True) if exp(log) < least]
    text = model.tokenizer().decode(tokens[:-1])
    return {"text": text, "sure": not doubtful, "doubtful": doubtful, "mean": exp(sum(logs) / len(logs))}
