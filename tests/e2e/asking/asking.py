"""Programs that ask servers: one function a task."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from inferlet import InferletError, http


async def main(input: dict[str, Any]) -> Any:
    task = input.pop("do")
    return await TASKS[task](**input)


async def get(url: str) -> list[Any]:
    response = await http.get(url)
    return [response.status, response.reason, response.ok, response.url, response.is_redirected, response.headers["x-own"], response.text]


async def echo(url: str, value: Any) -> Any:
    response = await http.post(url, json=value, headers={"X-A": "ü", "Host": "other.example"})
    return response.json()


async def stream(url: str, go: str) -> list[str]:
    parts = []
    async with http.stream("GET", url) as response:
        async for part in response:
            parts.append(part.decode())
            if len(parts) == 1:
                await http.post(go)
    return parts


async def lines(url: str) -> list[str]:
    async with http.stream("GET", url) as response:
        return [line async for line in response.lines()]


async def upload(url: str) -> str:
    async def parts() -> Any:
        for part in ("one", "two", "three"):
            await asyncio.sleep(0)
            yield part.encode()

    return (await http.post(url, body=parts())).json()["body"]


async def too_long(url: str) -> str | None:
    return await code(http.post(url, body=iter(["x" * 600, "y" * 600])))


async def together(url: str, n: int) -> int:
    responses = await asyncio.gather(*(http.get(url) for _ in range(n)))
    return sum(response.status for response in responses)


async def redirects(url: str) -> list[Any]:
    kept = await http.get(url, redirects="keep")
    return [kept.status, kept.headers["location"], await code(http.get(url, redirects="fail"))]


async def codes(urls: list[str]) -> list[str | None]:
    return [await code(http.get(url)) for url in urls]


async def code(asking: Any) -> str | None:
    try:
        await asking
    except InferletError as error:
        known = http.refusal()
        return error.code if known is not None and known.code == error.code else f"told as {known}"
    return None


async def uncaught(url: str) -> str:
    return (await http.get(url)).text


async def give_up(url: str) -> str:
    """Gives up a request that is not answered, and one whose answer does not end."""
    asking = asyncio.ensure_future(http.get(f"{url}/hang"))
    await asyncio.sleep(0.05)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    async with http.stream("GET", f"{url}/endless") as response:
        async for part in response:
            assert part
            break
    return "gave up"


async def in_time(url: str) -> str | None:
    return await code(http.get(url, timeout_s=0.1))


TASKS = {
    function.__name__: function
    for function in (get, echo, stream, lines, upload, too_long, together, redirects, codes, uncaught, give_up, in_time)
}
