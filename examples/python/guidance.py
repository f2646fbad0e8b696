"""Classifier-free guidance: what the prompt adds to the logits counts more than once. Input: {"prompt", "scale",
"max_tokens"}.
"""

import array
import asyncio

from inferlet import Context, Logits, Model, chat


async def row_behind(ctx):
    """The logits behind the last token of a context, which is in its buffer."""
    fwd = ctx.forward()
    probe = fwd.probe(len(ctx.buffer()) - 1, Logits())
    return array.array("f", (await fwd.execute()).logits(probe))


async def main(input):
    options = input or {}
    scale = options.get("scale", 1.5)
    model = Model.load("default")
    ends = set(chat.stop_tokens(model))
    with_prompt = Context(model).user(options.get("prompt", "Name an animal.")).cue()
    without = Context(model).cue()
    tokens = []
    while len(tokens) < options.get("max_tokens", 24):
        # Both passes share a batch.
        said, unsaid = await asyncio.gather(row_behind(with_prompt), row_behind(without))
        guided = [other + scale * (one - other) for one, other in zip(said, unsaid, strict=True)]
        token = max(range(len(guided)), key=guided.__getitem__)
        if token in ends:
            break
        tokens.append(token)
        with_prompt.append([token])
        without.append([token])
    return model.tokenizer().decode(tokens)
