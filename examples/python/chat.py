"""Streams an answer to the client as it is written. Input: {"prompt", "max_tokens", "temperature", "top_p"}."""

from inferlet import Context, Model, Sampler, chat, runtime, session


async def main(input):
    options = input or {}
    model = Model.load(runtime.models()[0])
    ctx = Context(model)
    ctx.system("You are a helpful assistant.")
    ctx.user(options.get("prompt", "Tell me a short story about a fox."))

    sampler = Sampler.top_p(options.get("temperature", 0.8), options.get("top_p", 0.95))
    g = ctx.generate(sampler, max_tokens=options.get("max_tokens", 128))
    decoder = chat.Decoder(model)
    async for step in g:
        for event in decoder.events(await step.execute()):
            if isinstance(event, chat.Event.Delta):
                session.send(event.text)
    return {"tokens": g.tokens_generated, "finish": g.finish_reason}
