"""Vectors of messages between programs, as far as one program can show them."""

from __future__ import annotations

from typing import Any

from tests.vectors.ops import Op, op


def queues() -> list[Op]:
    """A queue gives each message once, in the order of the pushes; each topic has its own."""
    ops = [op("push", topic="a", message="one"), op("push", topic="b", message="other"), op("push", topic="a", message="zwei ü")]
    ops += [op("pull", topic="a"), op("push", topic="a", message=""), op("pull", topic="a"), op("pull", topic="a"), op("pull", topic="b")]
    return ops


def subscriptions() -> list[Op]:
    """Every subscription gets a copy of what is broadcast after it, and holds it until it is taken. Queues of the same
    name know nothing of it. One that has ended gives nothing, however often it is ended.
    """
    ops = [op("broadcast", topic="t", message="nobody"), op("subscribe", topic="t", as_="s"), op("broadcast", topic="t", message="1")]
    ops += [op("subscribe", topic="t", as_="u"), op("push", topic="t", message="queued"), op("broadcast", topic="t", message="2")]
    ops += [op("next", sub="s"), op("get", sub="s"), op("get", sub="s"), op("next", sub="u"), op("get", sub="u"), op("pull", topic="t")]
    ops += [op("broadcast", topic="t", message="3"), op("unsubscribe", sub="s"), op("unsubscribe", sub="s")]
    ops += [op("get", sub="s"), op("next", sub="s"), op("lagged", sub="s"), op("next", sub="u"), op("unsubscribe", sub="u")]
    return ops


def lagging() -> list[Op]:
    """A subscription that holds too many drops the oldest, and counts them."""
    ops = [op("subscribe", topic="t", as_="s"), op("lagged", sub="s")]
    ops += [op("broadcast", topic="t", message="old", n=4), op("broadcast", topic="t", message="new", n=1022)]
    ops += [op("lagged", sub="s"), op("next", sub="s"), op("get", sub="s"), op("get", sub="s"), op("lagged", sub="s")]
    return [*ops, op("unsubscribe", sub="s"), op("lagged", sub="s")]


def bad_topics() -> list[Op]:
    """The name of a topic has 1 to 256 bytes, and no control characters."""
    names = ("", "a\u0000b", "a\nb", "ü" * 129)
    ops = [op(name, topic=topic, message="x") for topic in names for name in ("push", "broadcast")]
    ops += [op(name, topic=topic, as_="s") for topic in names for name in ("pull", "subscribe")]
    return [*ops, op("push", topic="ü" * 128, message="x"), op("pull", topic="ü" * 128)]


TOGETHER: list[Op] = [
    op(
        "all",
        ops=[
            [op("pull", topic="a")],
            [op("pull", topic="a")],
            [op("push", topic="a", message="1"), op("push", topic="a", message="2")],
        ],
    ),
    op("subscribe", topic="t", as_="s"),
    op("all", ops=[[op("next", sub="s")], [op("next", sub="s")], [op("broadcast", topic="t", message="x", n=2)]]),
    op("all", ops=[[op("next", sub="s")], [op("unsubscribe", sub="s")]]),
]
VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    "queues": (queues(), {}),
    "subscriptions": (subscriptions(), {}),
    "lagging": (lagging(), {}),
    "bad_topics": (bad_topics(), {}),
    "waiting_for_messages": (TOGETHER, {"expect": [[["1"], ["2"], [None, None]], None, [["x"], ["x"], [None]], [[None], [None]]]}),
}
SHOWS = {
    "queues": "JS-189..190 PY-181..182 RS-213..214",
    "subscriptions": "JS-187..188 JS-192..193 PY-179..180 PY-183..184 RS-211..212 RS-216..218",
    "waiting_for_messages": "JS-190 JS-192 PY-182..183 RS-214 RS-217",
}
DOCS = {make.__name__: " ".join((make.__doc__ or "").split()) for make in (queues, subscriptions, lagging, bad_topics)} | {
    "waiting_for_messages": "Pulls and subscriptions wait while other tasks of the program go on; their turns come in the order of the calls."
}
