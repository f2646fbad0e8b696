"""Proposes what followed the newest two tokens before: less passes where a text repeats itself. Input: {"prompt",
"max_tokens"}. Speculation changes no token.
"""

from inferlet import Context, Model, Sampler


class NGrams:
    """A speculator that looks the newest two tokens up in what was said."""

    def __init__(self, prompt, width=4):
        self.prompt, self.width = prompt, width
        self.reset()

    def draft(self):
        pair = tuple(self.tokens[-2:])
        start = self.seen.get(pair)
        tokens = [] if start is None else self.tokens[start : start + self.width]
        return tokens, list(range(len(self.tokens), len(self.tokens) + len(tokens)))

    def accept(self, tokens):
        for token in tokens:
            # Where a pair was seen is told once something follows it.
            self.seen[tuple(self.tokens[-2:])] = len(self.tokens)
            self.tokens.append(token)

    def rollback(self, n):
        pass

    def reset(self):
        self.tokens, self.seen = [], {}
        self.accept(self.prompt)


async def main(input):
    options = input or {}
    model, n = Model.load("default"), options.get("max_tokens", 48)
    ctx = Context(model).user(options.get("prompt", "Tell me a short story about a fox.")).cue()
    g = ctx.fork().generate(Sampler.argmax(), max_tokens=n, speculator=NGrams(ctx.buffer())).ignore_eos()
    tokens, drafted, accepted, n_steps = [], 0, 0, 0
    async for step in g:
        out = await step.execute()
        tokens += out.tokens
        drafted += out.raw.speculative.drafted
        accepted += out.raw.speculative.accepted
        n_steps += 1
    plain = await ctx.generate(Sampler.argmax(), max_tokens=n).ignore_eos().collect_tokens()
    text = model.tokenizer().decode(tokens)
    return {"text": text, "same": tokens == plain, "steps": n_steps, "drafted": drafted, "accepted": accepted}
