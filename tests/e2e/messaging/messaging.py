"""Programs that talk to each other: one function a task, and the reference as it is printed."""

import asyncio
import contextlib

from inferlet import InferletError, messaging, session


async def main(input):
    return await globals()[input.pop("do")](**input)


async def reference():
    from inferlet import messaging

    sub = messaging.subscribe("topic")
    messaging.broadcast("topic", "message")
    messaging.push("topic", "message")
    pulled: str = await messaging.pull("topic")
    heard: str | None = await sub.next()
    messaging.broadcast("topic", "another")
    async for msg in sub:
        another = msg
        break
    sub.unsubscribe()
    ended: str | None = await sub.next()
    async for _ in sub:
        raise AssertionError("the subscription has ended")
    return [pulled, heard, another, ended]


async def push(topic, messages):
    for message in messages:
        messaging.push(topic, message)


async def pull(topic, n):
    return [await messaging.pull(topic) for _ in range(n)]


async def forward(topic):
    """Sends everything that it pulls to its client, until it is ended."""
    session.send("ready")
    while True:
        session.send(await messaging.pull(topic))


async def broadcast(topic, messages):
    for message in messages:
        messaging.broadcast(topic, message)


async def listen(topic, n):
    with messaging.subscribe(topic) as sub:
        session.send("ready")
        return [await sub.next() for _ in range(n)]


async def fill(topic, n, size):
    """Pushes until it is refused; answers how often it was not, and why it was."""
    for index in range(n):
        try:
            messaging.push(topic, "x" * size)
        except InferletError as error:
            return [index, error.code, error.message]
    return [n, None, None]


async def give_up(topic):
    """Gives pulls up, and then gets what they did not take."""
    for _ in range(3):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(messaging.pull(topic), 0.001)
    session.send("ready")
    return await messaging.pull(topic)


async def values():
    """What is not a text becomes JSON."""
    messaging.push("values", {"ü": [1, None]})
    sub = messaging.subscribe("values")
    messaging.broadcast("values", [1.5])
    return [await messaging.pull("values"), sub.try_next(), sub.try_next()]
