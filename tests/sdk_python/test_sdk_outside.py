"""The SDK in plain Python: it is imported, read and used for what needs no engine; every other call says what to do."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from oracle import masks as oracle
from pie.engine import Engine
from support.command import environment
from support.launching import finish, python_source

ROOT = Path(__file__).resolve().parents[2]


def outside(text: str, cwd: Path | None = None) -> str:
    """What a program of plain Python prints; it has no bindings of the engine."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(text)]
    env = environment() | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_values_and_what_computes_work_as_they_are() -> None:
    printed = outside("""
        import asyncio, dataclasses, json
        import inferlet
        from inferlet import Context, ErrorCode, FinishReason, InferletError, Sampler, brle, chat, tools

        @tools.tool
        def weather(city: str, days: int = 1) -> str:
            "The weather of a city."
            return f"{city}: sun for {days} days"

        @dataclasses.dataclass
        class City:
            name: str

        assert Sampler.argmax() == Sampler.greedy() != Sampler.top_p(0.6, 0.95)
        assert Sampler.top_p(0.6, 0.95, seed=3) == Sampler.top_p(0.6, top_p=0.95, seed=3)
        assert inferlet.Distribution(1.0, 4) == inferlet.Distribution(1.0, 4)
        assert FinishReason.STOP == "stop" and ErrorCode.DEADLOCK == "deadlock"
        assert chat.Event.Delta("a") == chat.Event.Delta("a")
        assert inferlet.JsonSchema({"type": "object"}).schema == {"type": "object"}
        assert brle.from_bools([False, True, True]) == [1, 2] and brle.to_bools([1, 2], 3) == [False, True, True]
        assert weather("Rome") == "Rome: sun for 1 days"
        try:
            Sampler.top_k(0.6, -1)
        except InferletError as error:
            assert error.code == ErrorCode.INVALID_SAMPLER
        else:
            raise AssertionError
        print(inferlet.input)
    """)
    assert printed == "None\n"


def test_help_tells_what_the_docstrings_say() -> None:
    printed = outside("""
        import pydoc
        import inferlet
        for thing in (inferlet, inferlet.Context, inferlet.session, inferlet.Sampler.top_p, inferlet.brle):
            print(pydoc.render_doc(thing, renderer=pydoc.plaintext))
    """)
    assert "Closes an open assistant turn" in printed
    assert "Awaits the next message or signal of the client" in printed
    assert "Draws from the likeliest tokens" in printed


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("Model.load('default')", "Model.load"),
        ("session.send('a')", "session.send"),
        ("session.receive()", "session.receive"),
        ("runtime.launch_seed()", "runtime.launch_seed"),
        ("Grammar.from_regex('a')", "Grammar.from_regex"),
        ("messaging.push('a', 'b')", "messaging.push"),
        ("http.get('http://example.com')", "http.get"),
        ("files.refusal()", "files.refusal"),
        ("mcp.connect('a')", "mcp.connect"),
        ("asyncio.run(main())", "Model.load"),
    ],
)
def test_a_call_that_needs_the_engine_says_what_to_do(call: str, name: str) -> None:
    printed = outside(f"""
        import asyncio
        from inferlet import Context, Grammar, InferletError, Model, files, http, mcp, messaging, runtime, session

        async def main():
            return await Context(Model.load("default")).user("Hello").generate(None).collect_text()

        try:
            {call}
        except InferletError:
            raise AssertionError("a program that catches the engine's errors would go on") from None
        except RuntimeError as error:
            print(error)
    """)
    assert printed.startswith(f"{name} needs the engine, and this is plain Python; ")
    for remedy in ("`pie run FILE`", "`pie.run(FILE, input)`", "`pie.testing`"):
        assert remedy in printed


@pytest.mark.rows("OLD-095")
def test_functions_of_a_program_are_tested_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "poet.py").write_text(
        "from inferlet import Context, Model, Sampler\n\n"
        "def prompt(topic):\n    return f'A verse about {topic}.'\n\n"
        "async def main(input):\n    return await Context(Model.load('default')).user(prompt(input)).generate(Sampler.argmax()).collect_text()\n"
    )
    assert outside("import poet\nprint(poet.prompt('rain'))", tmp_path) == "A verse about rain.\n"


BRLE = """
from inferlet import InferletError, brle

def answer(name, arguments):
    try:
        found = getattr(brle, name)(*[bytes(one["bytes"]) if isinstance(one, dict) else one for one in arguments])
    except InferletError as error:
        return [error.code, error.message]
    return list(found)

def main(calls):
    return [answer(name, arguments) for name, arguments in calls]
"""


def calls() -> list[list[Any]]:
    """Calls of `brle`: right ones and wrong ones."""
    draw = random.Random(5)
    made: list[list[Any]] = []
    for _ in range(150):
        length = draw.randrange(0, 20)
        masks = [[draw.randrange(0, 5) for _ in range(draw.randrange(0, 6))] for _ in range(3)]
        made += [
            ["shortest", [masks[0], length]],
            ["allowed", [masks[0], length]],
            ["pack", [masks[0], length]],
            ["to_bools", [masks[1], length]],
            ["intersection", [masks, length]],
            ["allowing", [[draw.randrange(0, 12) for _ in range(4)], length]],
            ["unpack", [{"bytes": [draw.randrange(256) for _ in range(draw.choice((1, 2)))]}, length]],
            ["from_bools", [[draw.random() < 0.5 for _ in range(length)]]],
            ["window", [draw.randrange(8), draw.randrange(5), draw.randrange(4), draw.randrange(4)]],
            ["causal", [draw.randrange(8), draw.randrange(5)]],
        ]
    return [*made, ["causal", [1 << 24, 1]], ["window", [0, (1 << 20) + 1, 1]], ["shortest", [[], (1 << 24) + 1]]]


@pytest.mark.rows("PY-080..081")
def test_masks_are_what_the_engine_makes_of_them(dummy: Engine, tmp_path: Path) -> None:
    given = calls()
    (tmp_path / "calls.json").write_text(json.dumps(given))
    (tmp_path / "program.py").write_text(BRLE)
    printed = outside(
        """
        import json
        from pathlib import Path
        import program
        print(json.dumps(program.main(json.loads(Path("calls.json").read_text()))))
        """,
        tmp_path,
    )
    process = dummy.launch(python_source(BRLE), input=given)
    process.close_input()
    outcome = finish(process)
    assert outcome.code is None, outcome
    assert json.loads(printed) == outcome.value


@pytest.mark.rows("PY-080..081")
def test_masks_are_what_a_row_of_truth_values_says() -> None:
    draw = random.Random(7)
    rows = [[draw.random() < 0.6 for _ in range(draw.randrange(1, 30))] for _ in range(50)]
    printed = outside(f"import json\nfrom inferlet import brle\nprint(json.dumps([brle.from_bools(row) for row in {rows!r}]))")
    assert json.loads(printed) == [oracle.of_bits(row) for row in rows]
