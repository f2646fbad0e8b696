"""The session as the reference documents print it: one function a snippet, with what the document leaves out
completed.
"""

import asyncio


async def main(snippet):
    return await globals()[snippet]()


async def send():
    pdf_bytes = b"%PDF-1.7\n\xff"

    from inferlet import session

    session.send("hello")  # text
    session.send({"event": "tick", "n": 3})  # dict / list → JSON
    session.send_file(pdf_bytes)  # binary


async def forms():
    from inferlet import session

    session.send("text")
    session.send({"n": 3})
    print("printed")
    session.message("beside")
    session.send(7)


async def receive():
    from inferlet import session

    text: str = await session.receive()
    return text


async def stream():
    from inferlet import Context, Model

    model = Model.load("default")
    ctx = Context(model).user("Hello!")

    from inferlet import Sampler, chat, session

    g = ctx.generate(Sampler.top_p(0.6, 0.95), max_tokens=512)
    dec = chat.Decoder(model)
    async for step in g:
        out = await step.execute()
        match dec.feed(out.tokens):
            case chat.Event.Delta(text=t):
                session.send(t)
            case _:
                pass

    return g.tokens_generated


async def structured():
    from inferlet import session

    session.send({"channel": "progress", "step": 3, "of": 10})


async def files():
    from inferlet import session

    def process_pdf(blob):
        """What the document leaves to the reader: here the file goes back."""
        session.send_file(blob)

    blob: bytes = await session.receive_file()
    process_pdf(blob)


async def signals():
    from inferlet import session

    # Client side: await process.signal("stop").
    # Inferlet side: pick the message up via session.receive.
    msg = await session.receive()
    if msg == "stop":
        return "stopped"

    return await session.receive_signal()


async def instance():
    from inferlet import runtime

    return runtime.instance_id()


async def patience():
    """Gives a wait for a file up, and asks again when the client knows of it."""
    from inferlet import session

    given_up = False
    try:
        await asyncio.wait_for(session.receive_file(), 0.005)
    except TimeoutError:
        given_up = True
    session.send("waiting")
    first = list(await session.receive_file())
    try:
        second = list(await session.receive_file())
    except session.SessionClosed:
        second = None
    return [given_up, first, second]
