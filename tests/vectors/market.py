"""Vectors of the market for pages: what programs bid and have where pages are not short. No token follows from it."""

from __future__ import annotations

from typing import Any

from tests.vectors.children import failed, spawn, wait
from tests.vectors.ops import ARGMAX, WARM, Op, answers, collected, generate, op, prompt

SCRIPT = list[tuple[Op, Any]]
PAGE = 16
"""Tokens of a page of the dummy driver."""
CREDITS = 1000
"""What a process begins with where nobody says how much."""


def market() -> SCRIPT:
    """A program begins with the credits of the configuration, and pays one for each page that it fills. Nobody pays
    rent where pages are not short. A bid is a number of credits from 0 on, and changes no token.
    """
    words = list(range(201, 201 + PAGE + 3))
    made = prompt("x", *words)
    tokens = answers([*made, generate("x", "x", WARM, n=6, seed=3)], op("collect_tokens", gen="x"))
    script: SCRIPT = [
        (op("price"), 1),
        (op("balance"), CREDITS),
        (op("dividend"), 0),
        *((one, None) for one in prompt("c", *words)),
        (op("rent", ctx="c"), 0),
        (op("latency", ctx="c"), True),
        (op("set_bid", ctx="c", bid=2.5), None),
        (op("set_bid", ctx="c", bid=0), None),
        *((op("set_bid", ctx="c", bid=bid), failed("invalid-argument")) for bid in (-1, -1e-9, 1e10, 2**63)),
        (generate("c", "g", WARM, n=6, seed=3), None),
        (op("idle", ctx="c", within=[op("collect_tokens", gen="g"), op("balance")]), [tokens, CREDITS - 1]),
        (op("balance"), CREDITS - 1),
        (op("rent", ctx="c"), 0),
    ]
    # A copy shares its pages, and pays for none.
    script += [(op("fork", ctx="c", as_="d"), None), (op("flush", ctx="d"), None), (op("balance"), CREDITS - 1)]
    # In a generation a bid holds for a step or for all: no token says which.
    for name, rebids in (("e", True), ("f", False)):
        script += [(one, None) for one in prompt(name, *words)]
        script += [(op("set_bid", ctx=name, bid=1.5), None), (generate(name, name, WARM, n=6, seed=3), None)]
        script += [(op("rebid_each_step", gen=name, value=rebids), None), (op("collect_tokens", gen=name), tokens)]
    plain = answers([*made, generate("x", "x", ARGMAX)], op("collect_tokens", gen="x"))
    script += [(one, None) for one in prompt("i", *words)]
    said, asked = collected("i", "i", ARGMAX, rebid_each_step=False)
    return [
        *script,
        (said, None),
        (asked, plain),
        (op("release", ctx="i"), None),
        (op("set_bid", ctx="i", bid=1), failed("context-released")),
        (op("idle", ctx="i", within=[]), failed("context-released")),
    ]


def endowments() -> SCRIPT:
    """What a child begins with comes from its parent, and what is left returns: half of what there is where nobody says
    how much, and never more than there is.
    """
    fill = [op("context", as_="c"), op("append", ctx="c", tokens=list(range(1, 2 * PAGE + 1))), op("flush", ctx="c")]
    return [
        (spawn("a", [op("balance")], credits=100), None),
        (wait("a"), [100]),
        (op("balance"), CREDITS),
        (spawn("b", [op("balance"), *fill, op("balance")]), None),
        (wait("b"), [CREDITS / 2, None, None, None, CREDITS / 2 - 2]),
        (op("balance"), CREDITS - 2),
        (spawn("c", [op("balance")], credits=10 * CREDITS), None),
        (wait("c"), [CREDITS - 2]),
        (spawn("d", [op("balance"), spawn("e", [op("balance")], credits=3.5), wait("e")], credits=0), None),
        (wait("d"), [0, None, [0]]),
        (spawn("f", [], credits=-1), failed("invalid-argument")),
        (spawn("f", [], credits=2**63), failed("invalid-argument")),
        (op("balance"), CREDITS - 2),
    ]


MAKERS = (market, endowments)
SCRIPTS = {make.__name__: make() for make in MAKERS}
VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    name: ([op for op, _ in script], {"expect": [expected for _, expected in script]}) for name, script in SCRIPTS.items()
}
SHOWS = {
    "market": "JS-204..210 PY-196..202 RS-191 RS-194..199",
    "endowments": "JS-205 PY-197 RS-199",
}
DOCS = {make.__name__: " ".join((make.__doc__ or "").split()) for make in MAKERS}
