"""A program that serves HTTP: one function a path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from inferlet import Context, Model, Sampler, messaging
from inferlet.http_server import Request, Response, ServerEvent

PART = b"x" * (64 << 10)
N_PARTS = 1024
counts = {"requests": 0, "parts": 0}


async def fetch(request: Request) -> Response:
    counts["requests"] += 1
    task = TASKS.get(request.path.strip("/").split("/")[0])
    if task is None:
        return Response(f"there is no {request.path}", status=404)
    return await task(request)


async def echo(request: Request) -> Response:
    body = await request.text()
    value = {"method": request.method, "path": request.path, "query": request.query, "header": request.headers.get("x-a"), "body": body}
    return Response.json(value, status=201, headers={"X-Own": "ü"})


async def count(request: Request) -> Response:
    return Response.json(counts["requests"])


async def length(request: Request) -> Response:
    return Response.json(len(await request.body()))


async def stream(request: Request) -> Response:
    async def parts() -> AsyncIterator[str]:
        yield "one"
        await messaging.pull("go")
        yield "two"

    return Response(parts())


async def go(request: Request) -> Response:
    messaging.push("go", "on")
    return Response("going")


async def events(request: Request) -> Response:
    async def made() -> AsyncIterator[Any]:
        yield {"n": 1}
        yield ServerEvent("a\nb", event="text")

    return Response.events(made())


async def fail(request: Request) -> Response:
    raise ValueError("no answer comes of this")


async def broken(request: Request) -> Response:
    async def parts() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("the rest is not there")

    return Response(parts())


async def silent(request: Request) -> Response:
    return Response(await messaging.pull("never"))


async def tokens(request: Request) -> Response:
    async def written() -> AsyncIterator[str]:
        ctx = Context(Model.load("default"))
        try:
            ctx.user("Tell me something without an end.")
            while True:
                async for step in ctx.generate(Sampler.argmax(), max_tokens=64, ignore_eos=True):
                    out = await step.execute()
                    yield f"{out.tokens[0]}\n"
        finally:
            ctx.release()
            messaging.push("gone", "it has")

    return Response(written())


async def gone(request: Request) -> Response:
    return Response(await messaging.pull("gone"))


async def flood(request: Request) -> Response:
    def parts() -> Iterator[bytes]:
        for _ in range(N_PARTS):
            counts["parts"] += 1
            yield PART

    return Response(parts())


async def parts(request: Request) -> Response:
    return Response.json(counts["parts"])


async def empty(request: Request) -> Response:
    return Response(status=204)


TASKS = {task.__name__: task for task in (echo, count, length, stream, go, events, fail, broken, silent, tokens, gone, flood, parts, empty)}
