"""Messages between programs, as one program sees them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .errors import RefusedError

MAX_TOPIC_BYTES = 256
SUBSCRIPTION_MESSAGES = 1024


class MessageOps:
    """Queues and subscriptions, by their names."""

    def __init__(self) -> None:
        self.queues: defaultdict[str, list[str]] = defaultdict(list)
        self.subscriptions: dict[str, dict[str, Any]] = {}

    def op_push(self, op: dict[str, Any]) -> None:
        self.queues[checked(op["topic"])].append(op["message"])

    def op_pull(self, op: dict[str, Any]) -> str:
        return self.queues[checked(op["topic"])].pop(0)

    def op_broadcast(self, op: dict[str, Any]) -> None:
        topic = checked(op["topic"])
        for subscription in self.subscriptions.values():
            if subscription["topic"] == topic and subscription["open"]:
                held = subscription["held"] + [op["message"]] * op.get("n", 1)
                subscription["held"] = held[-SUBSCRIPTION_MESSAGES:]
                subscription["lagged"] += len(held) - len(subscription["held"])

    def op_subscribe(self, op: dict[str, Any]) -> None:
        self.subscriptions[op["as"]] = {"topic": checked(op["topic"]), "open": True, "held": [], "lagged": 0}

    def op_next(self, op: dict[str, Any]) -> str | None:
        """The vectors have it wait for nothing."""
        return self.op_get(op)

    def op_get(self, op: dict[str, Any]) -> str | None:
        held = self.subscriptions[op["sub"]]["held"]
        return held.pop(0) if held else None

    def op_lagged(self, op: dict[str, Any]) -> int:
        lagged: int = self.subscriptions[op["sub"]]["lagged"]
        return lagged

    def op_unsubscribe(self, op: dict[str, Any]) -> None:
        self.subscriptions[op["sub"]] |= {"open": False, "held": []}


def checked(topic: str) -> str:
    """The topic, where it is a name."""
    if not 1 <= len(topic.encode()) <= MAX_TOPIC_BYTES or any(ord(character) < 32 for character in topic):
        raise RefusedError("invalid-argument")
    return topic
