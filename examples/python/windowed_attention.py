"""Writes far beyond a window: each token sees the first few tokens and the newest ones alone. Input: {"prompt",
"window", "sinks", "max_tokens"}.
"""

from inferlet import Context, Model, Sampler, brle


async def main(input):
    options = input or {}
    window, sinks = options.get("window", 32), options.get("sinks", 4)
    model = Model.load("default")
    ctx = Context(model).user(options.get("prompt", "Tell me a short story about a fox.")).cue()
    prompt = ctx.buffer()
    tokens, given = [], prompt
    # The context is made anew, so that its prompt too is computed with the window.
    ctx = Context(model)
    while len(tokens) < options.get("max_tokens", 96):
        fwd = ctx.forward()
        fwd.input(given).attention_mask(brle.window(fwd.start_position(), len(given), window, sinks))
        drawn = fwd.sample([len(given) - 1], Sampler.argmax())
        given = [(await fwd.execute()).token(drawn)]
        tokens += given
    return {"text": model.tokenizer().decode(tokens), "seen": min(ctx.seq_len, window + sinks), "length": ctx.seq_len}
