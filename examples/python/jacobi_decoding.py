"""Guesses several tokens at once and corrects them together until they stand. Input: {"prompt", "width",
"max_tokens"}. The text is what one token after the other gives.
"""

from inferlet import Context, Model, Sampler


async def main(input):
    options = input or {}
    width, n = options.get("width", 6), options.get("max_tokens", 24)
    model = Model.load("default")
    ctx = Context(model).user(options.get("prompt", "Tell me a short story about a fox.")).cue()
    last = ctx.buffer()[-1]
    tokens, guess, n_passes = [], [last] * width, 0
    while len(tokens) < n:
        # The newest token waits in the buffer, and the guesses stand behind it. What is wrong is dropped with the fork.
        with ctx.fork() as trial:
            n_before = len(trial.buffer())
            fwd = trial.append(guess).forward()
            drawn = fwd.sample(range(n_before - 1, n_before + width), Sampler.argmax())
            found = (await fwd.execute()).tokens_at(drawn)
        n_passes += 1
        n_right = next((i for i, (one, other) in enumerate(zip(guess, found, strict=False)) if one != other), width)
        # What follows right guesses is right as well.
        kept = found[: min(n_right + 1, n - len(tokens))]
        tokens += kept
        ctx.append(kept)
        guess = (found[len(kept) :] + [found[-1]] * width)[:width]
    return {"text": model.tokenizer().decode(tokens), "tokens": tokens, "passes": n_passes}
