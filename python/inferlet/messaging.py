"""Messages between the programs of one user that run in one engine.

Each topic has a queue, from which every message is taken once, and broadcasts, of which every subscription gets a copy.
Queues and broadcasts of one name have nothing to do with each other. A name has 1 to 256 bytes and no control
characters.
"""

from __future__ import annotations

from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from wit_world.imports import messaging as _messaging

from inferlet import _arguments, _json
from inferlet._wait import block_on, flush_output, resolve, resolve_or_block
from inferlet.errors import ErrorCode, host

__all__ = ["Subscription", "broadcast", "pull", "push", "subscribe"]


def push(topic: str, message: object) -> None:
    """Adds a message to the queue of a topic: a string verbatim, anything else as compact JSON.

    It waits there until somebody pulls it, also when this program has ended. Where the queue is full the program is
    suspended until there is room, up to the time that the engine allows; then `InferletError` with the code
    `queue-full` is raised.
    """
    text = _text(message)
    flush_output()
    host(_messaging.push, _topic(topic), text)


def pull(topic: str) -> Coroutine[Any, Any, str]:
    """Awaits the next message of the queue of a topic. Messages are taken in the order in which they were pushed.

    It is a text, also where a dict was pushed: `json.loads(await messaging.pull("jobs"))` reads that again.
    Outside of a running event loop it blocks and returns the text itself. Cancelling the wait loses no message.
    """
    return resolve_or_block(_messaging.pull(_topic(topic)), name="messaging.pull(...)")


def broadcast(topic: str, message: object) -> None:
    """Gives a message to every subscription of a topic that there is: a string verbatim, anything else as compact JSON.

    Nobody waits for it: a subscription that holds too much drops its oldest message.
    """
    host(_messaging.broadcast, _topic(topic), _text(message))


def subscribe(topic: str) -> Subscription:
    """Subscribes to what is broadcast from now on.

    Raises `InferletError`: `invalid-argument` for a topic that is not a name, `limit-resources` where there are too
    many subscriptions.
    """
    return Subscription(host(_messaging.subscribe, _topic(topic)))


class Subscription:
    """Holds what was broadcast until it is taken. Leaving its `with` ends it, as does dropping it.

    Iterating blocks the whole program, `async for` lets its other tasks run; both end when the subscription does.
    """

    def __init__(self, raw: _messaging.Subscription) -> None:
        self._raw = raw

    @property
    def lagged(self) -> int:
        """How many messages were dropped because too many waited."""
        return self._raw.lagged()

    def next(self) -> Coroutine[Any, Any, str | None]:
        """Awaits the next message; None when the subscription has ended.

        It is a text, also where a dict was broadcast: `json.loads` reads that again. Outside of a running
        event loop it blocks and returns the text itself. Cancelling the wait loses no message.
        """
        return resolve_or_block(self._raw.next(), self, "subscription.next()")

    def try_next(self) -> str | None:
        """The next message where one is there, and None otherwise."""
        return self._raw.get()

    def unsubscribe(self) -> None:
        """Ends the subscription, with what it holds. Again it does nothing."""
        self._raw.unsubscribe()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.unsubscribe()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> str:
        message = block_on(self._raw.next())
        if message is None:
            raise StopIteration
        return message

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> str:
        message = await resolve(self._raw.next(), self)
        if message is None:
            raise StopAsyncIteration
        return message


def _topic(topic: str) -> str:
    return _arguments.text("topic", topic)


def _text(message: object) -> str:
    if isinstance(message, str):
        return _arguments.text("message", message)
    return _json.dumps(message, "message", ErrorCode.INVALID_ARGUMENT)
