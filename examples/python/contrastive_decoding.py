"""Prefers what the whole conversation makes likelier than its last words alone do. Input: {"prompt", "weight",
"max_tokens"}.
"""

import asyncio

from inferlet import Context, Distribution, Logprobs, Model, chat

# Only tokens that are at least so many times as likely as the likeliest one are weighed.
PLAUSIBLE = 0.1


async def read(ctx, *probes):
    """What probes read behind the last token of a context, which is in its buffer."""
    fwd, last = ctx.forward(), len(ctx.buffer()) - 1
    handles = [fwd.probe(last, probe) for probe in probes]
    return await fwd.execute(), handles


async def main(input):
    options = input or {}
    weight = options.get("weight", 0.5)
    model = Model.load("default")
    ends = set(chat.stop_tokens(model))
    prompt = options.get("prompt", "Name an animal.")
    expert = Context(model).system("You are a helpful assistant.").user(prompt).cue()
    amateur = Context(model).cue()
    tokens = []
    while len(tokens) < options.get("max_tokens", 24):
        out, (top,) = await read(expert, Distribution(1.0, 16))
        ids, shares = out.distribution(top)
        plausible = [(token, share) for token, share in zip(ids, shares, strict=True) if share >= PLAUSIBLE * shares[0]]
        other, (logs,) = await read(amateur, Logprobs([token for token, _ in plausible]))
        scored = [
            (share / 2.718281828459045 ** (weight * log), -token)
            for (token, share), log in zip(plausible, other.logprobs(logs), strict=True)
        ]
        token = -max(scored)[1]
        if token in ends:
            break
        tokens.append(token)
        expert.append([token])
        amateur.append([token])
        await asyncio.sleep(0)
    return model.tokenizer().decode(tokens)
