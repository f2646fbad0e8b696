"""What callers give by mistake: one error that names the argument, its value and what it may be, and nothing is
sent.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from client.fake import Peer, fake_server, scenario
from pie.client import Client, Event, PieError, Process, connect

Call = Callable[[Client, Process], Awaitable[object]]

WHOLE = "give a whole number from"
CYCLE: list[Any] = []
CYCLE.append(CYCLE)

MISTAKES: dict[str, tuple[Call, str, str]] = {
    "negative seed": (lambda c, _: c.launch("a", seed=-1), "seed", f"seed is -1 (int); {WHOLE} 0 to 18446744073709551615"),
    "seed of 65 bits": (lambda c, _: c.launch("a", seed=2**64), "seed", "seed is 18446744073709551616 (int); "),
    "fraction as a seed": (lambda c, _: c.launch("a", seed=1.5), "seed", "seed is 1.5 (float); "),  # type: ignore[arg-type]
    "truth as a seed": (lambda c, _: c.launch("a", seed=True), "seed", "seed is True (bool); "),
    "text as a seed": (lambda c, _: c.launch("a", seed="7"), "seed", "seed is '7' (str); "),  # type: ignore[arg-type]
    "negative budget": (lambda c, _: c.launch("a", token_budget=-5), "token_budget", f"token_budget is -5 (int); {WHOLE} 0"),
    "no number of credits": (lambda c, _: c.launch("a", credits=math.nan), "credits", "credits is nan (float); give a number of credits"),
    "negative credits": (lambda c, _: c.launch("a", credits=-0.5), "credits", "credits is -0.5 (float); "),
    "endless credits": (lambda c, _: c.launch("a", credits=math.inf), "credits", "credits is inf (float); "),
    "credits of 64 bits": (lambda c, _: c.launch("a", credits=2**63), "credits", "from 0 to 1000000000"),
    "truth as credits": (lambda c, _: c.launch("a", credits=True), "credits", "credits is True (bool); "),
    "number as a program": (lambda c, _: c.launch(3), "program", "program is 3 (int); give a str: NAME@VERSION, NAME, or what `upload`"),  # type: ignore[arg-type]
    "path as a program": (lambda c, _: c.launch(Path("a.py")), "program", "(PosixPath); give a str"),  # type: ignore[arg-type]
    "no program": (lambda c, _: c.launch(None), "program", "program is None (NoneType); give a str"),  # type: ignore[arg-type]
    "set in the input": (
        lambda c, _: c.launch("a", input={"x": [{1}]}),
        "a value in input",
        "a value in input is {1} (set); give JSON: None, bool",
    ),
    "bytes as the input": (lambda c, _: c.launch("a", input=b"x"), "input", "input is b'x' (bytes); give JSON"),
    "decimal in the input": (lambda c, _: c.launch("a", input=[Decimal(1)]), "a value in input", "(Decimal); give JSON"),
    "infinity in the input": (
        lambda c, _: c.launch("a", input={"x": float("inf")}),
        "a value in input",
        "is inf (float); give a finite number",
    ),
    "number as a key": (lambda c, _: c.launch("a", input={1: 2}), "a key in input", "a key in input is 1 (int); give a str"),
    "half a character": (lambda c, _: c.launch("a", input="x\ud800"), "input", "without the half of a character that stands at 1"),
    "input that holds itself": (lambda c, _: c.launch("a", input=CYCLE), "", "input nests deeper than 500 levels, or holds itself"),
    "one text as arguments": (lambda c, _: c.launch("a", args="--x"), "args", "args is '--x' (str); give a list of str"),
    "number in arguments": (lambda c, _: c.launch("a", args=["--n", 2]), "args[1]", "args[1] is 2 (int); give a str"),  # type: ignore[list-item]
    "list of limits": (lambda c, _: c.launch("a", limits=["cpu_s"]), "limits", "limits is ['cpu_s'] (list); give a dict"),  # type: ignore[arg-type]
    "text as a limit": (
        lambda c, _: c.launch("a", limits={"cpu_s": "5"}),
        "limits['cpu_s']",
        "limits['cpu_s'] is '5' (str); give a number, or None",
    ),  # type: ignore[dict-item]
    "list of programs": (lambda c, _: c.launch("a", programs=["b"]), "programs", "programs is ['b'] (list); give a dict"),  # type: ignore[arg-type]
    "bytes as a program of a launch": (
        lambda c, _: c.launch("a", programs={"b": b"x"}),
        "programs['b']",
        "programs['b'] is b'x' (bytes); give a str: NAME@VERSION, NAME, or what `upload`",
    ),  # type: ignore[dict-item]
    "number as detached": (lambda c, _: c.launch("a", detached=1), "detached", "detached is 1 (int); give True or False"),  # type: ignore[arg-type]
    "empty window": (lambda c, _: c.launch("a", window_bytes=0), "window_bytes", f"window_bytes is 0 (int); {WHOLE} 1"),
    "text as a pid": (lambda c, _: c.attach("4"), "pid", f"pid is '4' (str); {WHOLE} 1"),  # type: ignore[arg-type]
    "process as a pid": (lambda c, p: c.terminate(p), "pid", "(Process); "),  # type: ignore[arg-type]
    "pid that there cannot be": (lambda c, _: c.outcome(0), "pid", f"pid is 0 (int); {WHOLE} 1"),
    "negative after_seq": (lambda c, _: c.attach(4, after_seq=-1), "after_seq", "after_seq is -1 (int)"),
    "negative tail": (lambda c, _: c.logs(4, tail_bytes=-1), "tail_bytes", "tail_bytes is -1 (int)"),
    "text as follow": (lambda c, _: c.logs(4, follow="yes"), "follow", "follow is 'yes' (str); give True or False"),  # type: ignore[arg-type]
    "number as all": (lambda c, _: c.list(all=1), "all", "all is 1 (int); give True or False"),  # type: ignore[arg-type]
    "number as a path": (
        lambda c, _: c.install(7),
        "program",
        "program is 7 (int); give the path of a program as a str or a Path, or its bytes",
    ),  # type: ignore[arg-type]
    "number as a version": (lambda c, _: c.install(b"x", version=1.0), "version", "version is 1.0 (float); give a str"),  # type: ignore[arg-type]
    "dict as a manifest": (lambda c, _: c.upload(b"x", manifest={}), "manifest", "manifest is {} (dict); give a str"),  # type: ignore[arg-type]
    "no version": (lambda c, _: c.uninstall("a", None), "version", "version is None (NoneType); give a str"),  # type: ignore[arg-type]
    "dict as a message": (lambda _, p: p.send({"a": 1}), "text", "text is {'a': 1} (dict); give a str"),  # type: ignore[arg-type]
    "bytes as a signal": (lambda _, p: p.signal(b"x"), "text", "text is b'x' (bytes); give a str"),  # type: ignore[arg-type]
    "text as a file": (lambda _, p: p.transfer_file("x"), "data", "data is 'x' (str); give bytes"),  # type: ignore[arg-type]
    "a very long text as a number": (lambda c, _: c.terminate("9" * 100_000), "pid", "...999"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISTAKES)
@scenario
async def test_a_mistake_is_named_before_anything_is_sent(name: str) -> None:
    call, argument, words = MISTAKES[name]
    sent = []

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=4, launch_seed=0)
        while True:
            message = await peer.receive()
            sent.append(message["type"])
            await peer.answer(message)

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("chat")
        with pytest.raises(PieError) as caught:
            await call(client, process)
        await client.ping()
    assert caught.value.code == "invalid-argument"
    assert words in caught.value.message
    assert caught.value.details.get("argument", "") == argument
    assert len(caught.value.message) < 400
    assert sent == ["ping"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"address": None}, "address is None (NoneType); give a str, as in 'ws://127.0.0.1:8080'"),
        ({"address": 8080}, "address is 8080 (int); give a str"),
        ({"address": "ws://127.0.0.1:1", "user": 7}, "user is 7 (int); give a str"),
        ({"address": "ws://127.0.0.1:1", "timeout_s": 0}, "timeout_s is 0 (int); give a number of seconds above 0"),
        ({"address": "ws://127.0.0.1:1", "timeout_s": float("nan")}, "timeout_s is nan (float)"),
        ({"address": "ws://127.0.0.1:1", "timeout_s": None}, "timeout_s is None (NoneType)"),
    ],
)
@scenario
async def test_a_connection_that_cannot_be_meant(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(PieError) as caught:
        async with connect(**arguments):
            pass
    assert caught.value.code == "invalid-argument"
    assert words in caught.value.message


class Index:
    """A whole number of another library."""

    def __index__(self) -> int:
        return 7


@scenario
async def test_what_fits_is_sent_as_it_is() -> None:
    seen: list[dict[str, Any]] = []
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    value = {"a": [1, 2.5, None, True, "ü"], "b": ({"c": 10**30},), "": deep}

    async def script(peer: Peer) -> None:
        request = await peer.expect("launch")
        seen.append(request)
        await peer.answer(request, pid=4, launch_seed=7)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        limits, programs = {"cpu_s": 0.5, "wall_s": None}, {"b": "b@1.0.0"}
        options = {"args": ("x", ""), "seed": Index(), "token_budget": 2**64 - 1, "credits": 2, "limits": limits, "programs": programs}
        await client.launch("a", input=value, **options)  # type: ignore[arg-type]
    assert seen[0]["input"] == {"a": [1, 2.5, None, True, "ü"], "b": [{"c": 10**30}], "": deep}
    assert (seen[0]["args"], seen[0]["seed"], seen[0]["token_budget"], seen[0]["limits"]) == (["x", ""], 7, 2**64 - 1, limits)
    assert (seen[0]["programs"], seen[0]["credits"]) == (programs, 2.0)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (None, None),
        ({"kind": "return", "value": '{"n":1}'}, ("return", {"n": 1})),
        ({"kind": "error", "code": "limit-cpu", "message": "m", "error_kind": "k", "traceback": ""}, ("error", "limit-cpu")),
    ],
)
@scenario
async def test_how_a_process_ended(outcome: dict[str, Any] | None, expected: object) -> None:
    async def script(peer: Peer) -> None:
        request = await peer.expect("outcome")
        assert request["pid"] == 4
        await peer.answer(request, outcome=outcome)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        match await client.outcome(4):
            case None:
                assert expected is None
            case Event.Return(value):
                assert expected == ("return", value)
            case Event.Error(code):
                assert expected == ("error", code)


@scenario
async def test_an_outcome_that_is_none_is_the_servers_mistake() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("outcome"), outcome={"kind": "stdout", "text": "x"})

    async with fake_server(script) as address, connect(address) as client:
        with pytest.raises(PieError) as caught:
            await client.outcome(4)
    assert caught.value.code == "protocol-error"
