"""Vectors of children. A child runs the same interpreter, and returns the transcript of its own operations."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.vectors.ops import SEED, Op, op

SCRIPT = list[tuple[Op, Any]]
DEPTH = 4
"""Generations below a launch, `limits.child_depth`."""


def child_seed(parent: int, n_before: int) -> int:
    """The launch seed of a child: of its parent's, and of how many children that had before."""
    digest = hashlib.sha256(b"child" + parent.to_bytes(8, "little") + n_before.to_bytes(8, "little")).digest()
    return int.from_bytes(digest[:8], "little")


def spawn(name: str, ops: list[Op], **options: Any) -> Op:
    """A child that runs these operations."""
    return op("spawn", as_=name, program=".", input={"ops": ops}, **options)


def wait(name: str) -> Op:
    """Waits for a child."""
    return op("wait", child=name)


def failed(code: str) -> Any:
    """The entry of an operation that fails."""
    return {"error": code}


def children() -> SCRIPT:
    """A child gives what it returned, as often as it is asked. It talks to its parent by topics, and has no client:
    what its client would send never comes. Its launch seed follows from that of its parent, or is given. Unless it is
    asked for, its output is nowhere to be seen.
    """
    told = [op("push", topic="t", message="hello"), op("receive"), op("receive_file"), op("send", text="unseen")]
    return [
        (spawn("a", told), None),
        (wait("a"), [None, failed("session-closed"), failed("session-closed"), None]),
        (wait("a"), [None, failed("session-closed"), failed("session-closed"), None]),
        (op("pull", topic="t"), "hello"),
        (op("pid", child="a"), True),
        (spawn("b", [op("hash_of_seed")]), None),
        (wait("b"), [hash_of(child_seed(SEED, 1))]),
        (spawn("c", [op("hash_of_seed")], seed=5), None),
        (wait("c"), [hash_of(5)]),
        (spawn("d", [op("send", text="seen"), op("send_file", data=[1, 2])], output=True), None),
        (wait("d"), [None, None]),
        (spawn("e", [op("pull", topic="u")]), None),
        (op("push", topic="u", message="from the parent"), None),
        (wait("e"), ["from the parent"]),
    ]


def hash_of(seed: int) -> str:
    """A launch seed as the vectors show it: JSON carries not all of its bits to JavaScript."""
    return f"{seed:016x}"


def cancelled_children() -> SCRIPT:
    """A child that is cancelled ends with an error; cancelling again, or after the end, changes nothing."""
    return [
        (spawn("a", [op("pull", topic="never")]), None),
        (op("cancel", child="a"), None),
        (op("cancel", child="a"), None),
        (wait("a"), failed("cancelled")),
        (op("cancel", child="a"), None),
        (wait("a"), failed("cancelled")),
        (spawn("b", [op("models")]), None),
        (wait("b"), [["pie-tiny"]]),
        (op("cancel", child="b"), None),
        (wait("b"), [["pie-tiny"]]),
    ]


def refused_children() -> SCRIPT:
    """What cannot be started is an error, and changes nothing: the program goes on."""
    names = ("nobody", "nobody@1.0.0", "../other.py", "/etc/passwd", "", "x" * 100_000, "a\u0000b")
    refused: SCRIPT = [(op("spawn", as_="x", program=name, input=None), failed("unknown-program")) for name in names]
    return [
        *refused,
        (spawn("d", [], detached=True), failed("unsupported")),
        (op("spawn", as_="f", program=".", input={"ops": [{"op": "nonsense"}]}), None),
        (op("waits_in_vain", child="f"), True),
        (spawn("a", [op("models")]), None),
        (wait("a"), [["pie-tiny"]]),
    ]


def nested_children() -> SCRIPT:
    """A child may start others, as many generations below the launch as the limit allows."""
    ops, expected = [spawn("a", [])], [failed("limit-child-depth")]
    for _ in range(DEPTH):
        ops, expected = [spawn("a", ops), wait("a")], [None, expected]
    return list(zip(ops, expected, strict=True))


def budgets() -> SCRIPT:
    """What enters the contexts of a child is taken from its own budget, and what enters those of its children too."""
    fill = [op("context", as_="c"), op("append", ctx="c", tokens=[5, 6, 7]), op("append", ctx="c", tokens=[5, 6])]
    within = [spawn("b", fill, token_budget=100), wait("b"), *fill]
    return [
        (spawn("a", fill, token_budget=4), None),
        (wait("a"), [None, None, failed("token-budget")]),
        (spawn("a", within, token_budget=7), None),
        (wait("a"), [None, [None, None, None], None, failed("token-budget"), None]),
    ]


MAKERS = (children, cancelled_children, refused_children, nested_children, budgets)
SCRIPTS = {make.__name__: make() for make in MAKERS}
EXTRA: dict[str, dict[str, Any]] = {"children": {"events": ["seen", [1, 2]]}}
VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    name: ([op for op, _ in script], {"expect": [expected for _, expected in script]} | EXTRA.get(name, {}))
    for name, script in SCRIPTS.items()
}
SHOWS = {"children": "OLD-027 OLD-084"}
DOCS = {make.__name__: " ".join((make.__doc__ or "").split()) for make in MAKERS}
