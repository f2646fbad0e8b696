"""Keeps the likeliest few continuations at each step. Input: {"prompt", "beams", "max_tokens"}."""

import asyncio

from inferlet import Context, Distribution, Model, chat


async def main(input):
    options = input or {}
    n_beams = options.get("beams", 3)
    model = Model.load("default")
    ends = set(chat.stop_tokens(model))
    ctx = Context(model).user(options.get("prompt", "Name an animal.")).cue()

    async def choices(beam, score, tokens):
        """The likeliest tokens behind a beam. The last token of the beam is still in its buffer."""
        fwd = beam.forward()
        probe = fwd.probe(len(beam.buffer()) - 1, Distribution(1.0, n_beams))
        ids, shares = (await fwd.execute()).distribution(probe)
        return [(score * share, beam, [*tokens, token]) for token, share in zip(ids, shares, strict=True)]

    beams, done = [(1.0, ctx, [])], []
    for _ in range(options.get("max_tokens", 16)):
        # The passes of all beams share a batch.
        found = await asyncio.gather(*(choices(beam, score, tokens) for score, beam, tokens in beams))
        best = sorted((choice for of_beam in found for choice in of_beam), key=lambda choice: -choice[0])[:n_beams]
        done += [choice for choice in best if choice[2][-1] in ends]
        # A fork shares the pages of the beam that it continues.
        beams = [(score, beam.fork().append(tokens[-1:]), tokens) for score, beam, tokens in best if tokens[-1] not in ends]
        if len(done) >= n_beams or not beams:
            break
    ranked = sorted(done or beams, key=lambda choice: -choice[0])
    return [model.tokenizer().decode([token for token in tokens if token not in ends]) for _, _, tokens in ranked[:n_beams]]
