"""Marks a text by the tokens that it is written with, and finds the mark again. Input: {"prompt", "key",
"max_tokens"}.
"""

from inferlet import Context, Model, Sampler, brle


def green(previous, key, vocab_size):
    """The half of the vocabulary that may follow a token: those whose hash with it and the key is even."""
    start = (previous * 2_654_435_761 + key * 40_503) % 2**32
    return [token for token in range(vocab_size) if ((start ^ token) * 2_246_822_519 % 2**32) >> 31 == 0]


class Watermark:
    """A constraint that allows green tokens alone."""

    def __init__(self, first, key, vocab_size):
        self.previous, self.key, self.vocab_size = first, key, vocab_size

    def step(self, accepted):
        self.previous = accepted[-1] if accepted else self.previous
        return brle.allowing(green(self.previous, self.key, self.vocab_size), self.vocab_size)


def share_of_green(tokens, first, key, vocab_size):
    """The detector: near 1 for a marked text, near a half for any other."""
    pairs = list(zip([first, *tokens], tokens, strict=False))
    return sum(token in set(green(previous, key, vocab_size)) for previous, token in pairs) / len(pairs)


async def main(input):
    options = input or {}
    key, n = options.get("key", 15), options.get("max_tokens", 32)
    model = Model.load("default")
    vocab_size = model.tokenizer().vocab_size()
    ctx = Context(model).user(options.get("prompt", "Tell me a short story about a fox.")).cue()
    first = ctx.buffer()[-1]
    plain = ctx.fork().generate(Sampler.top_p(1.0, 0.95), max_tokens=n).ignore_eos()
    marked = ctx.generate(Sampler.top_p(1.0, 0.95), max_tokens=n, constrain=Watermark(first, key, vocab_size)).ignore_eos()
    texts = {"plain": await plain.collect_tokens(), "marked": await marked.collect_tokens()}
    found = {name: share_of_green(tokens, first, key, vocab_size) for name, tokens in texts.items()}
    return {"text": model.tokenizer().decode(texts["marked"]), "green": found}
