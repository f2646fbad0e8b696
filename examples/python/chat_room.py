"""A chat room: POST /messages says something, GET /events hears everything. Serve it by `pie run --shared --port 8000`.

What begins with "bot," is answered by the model, for all to hear.
"""

import asyncio

from inferlet import Context, Model, Sampler
from inferlet.http_server import Request, Response, ServerEvent

MOST_WAITING = 256
listeners: set[asyncio.Queue[dict[str, str]]] = set()


async def fetch(request: Request) -> Response:
    match request.method, request.path:
        case "GET", "/events":
            return Response.events(heard())
        case "POST", "/messages":
            message = await request.json()
            tell(message["from"], message["text"])
            if message["text"].lower().startswith("bot,"):
                tell("bot", await answer(message["text"][len("bot,") :].strip()))
            return Response(status=204)
    return Response("GET /events, or POST /messages\n", status=404)


def tell(name: str, text: str) -> None:
    for queue in listeners:
        if queue.full():  # who does not listen loses what is oldest
            queue.get_nowait()
        queue.put_nowait({"from": name, "text": text})


async def heard():
    queue: asyncio.Queue[dict[str, str]] = asyncio.Queue(MOST_WAITING)
    listeners.add(queue)
    try:
        yield ServerEvent(len(listeners), event="joined")
        while True:
            yield await queue.get()
    finally:
        listeners.discard(queue)


async def answer(question: str) -> str:
    ctx = Context(Model.load("default"))
    try:
        ctx.user(question)
        return await ctx.generate(Sampler.top_p(0.6, 0.95), max_tokens=48).collect_text()
    finally:
        ctx.release()
