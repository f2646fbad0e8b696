"""Lists of what programs get wrong, a kind a line: each is tried once and printed with what it met, and others are
served as before.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pie._engine import Process
from pie.engine import Engine
from pie.errors import PieError
from support.launching import ROOT, finish, python_source

Case = dict[str, Any]
MOST_SHOWN = 240

HONEST = python_source(
    "from inferlet import Context, Model, Sampler\n\n\nasync def main(input):\n"
    "    with Context(Model.load('default')) as ctx:\n"
    "        return await ctx.user('Hello').generate(Sampler.argmax(), max_tokens=4, ignore_eos=True).collect_tokens()\n"
)


@dataclass
class Others:
    """A running engine, and somebody else who uses it."""

    engine: Engine
    usual: list[int] = field(init=False)
    """What somebody else is told while nothing is wrong."""

    def __post_init__(self) -> None:
        self.usual = finish(self.launch_honest()).value
        assert len(self.usual) == 4

    def launch_honest(self) -> Process:
        """Somebody else's program, which returns what is usual."""
        return self.engine.launch(HONEST, input=None, username="honest")

    def serves_others(self) -> bool:
        """Whether somebody else is served as ever."""
        return finish(self.launch_honest()).value == self.usual


@dataclass
class World(Others):
    """The same, with the program that is given a body which fails."""

    program: str
    """Its text, with `{body}` in it; it returns the code and the message that the body met."""
    given: dict[str, Any]
    """Its input."""

    def met(self, case: Case, username: str = "mallory") -> tuple[str, str]:
        """The code and the message that a program met."""
        return self.met_by(case, case["python"], username)

    def met_by(self, case: Case, body: str, username: str = "mallory") -> tuple[str, str]:
        """The same, of another body."""
        lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
        program = python_source(self.program.replace("{body}", lines))
        try:
            process = self.engine.launch(program, input=self.given, username=username, limits=case.get("limits"), **case.get("launch", {}))
        except PieError as error:
            return error.code, error.message
        outcome = finish(process)
        if outcome.code is not None:
            return outcome.code, outcome.message or ""
        assert isinstance(outcome.value, dict), f"{case['line']}: nothing failed, and it returned {outcome.value!r}"
        return outcome.value["code"], outcome.value["message"]


def read_cases(file: Path) -> list[Case]:
    """The cases of a list."""
    cases: list[Case] = tomllib.loads(file.read_text(encoding="utf-8"))["case"]
    return cases


def of(cases: list[Case], kind: str) -> Any:
    """A test for each of the cases that have a field of that name."""
    wanted = [case for case in cases if kind in case]
    return pytest.mark.parametrize("case", wanted, ids=[case["line"] for case in wanted])


def tell(line: str, what: str) -> None:
    """A line of what is printed."""
    shown = what if len(what) <= MOST_SHOWN else f"{what[:MOST_SHOWN]}..."
    print(f"\n{line}\n    {shown}")


def check_met(case: Case, code: str, message: str) -> None:
    """Tells what a line met, which must be what its case says."""
    tell(case["line"], f"error[{code}] {message}")
    assert code == case["code"], message
    assert [word for word in case.get("words", []) if word not in message] == [], message


def check_refused(case: Case, said: bytes) -> None:
    """The one answer to what smuggles is an error; what follows it was not taken for a request."""
    head, _, body = said.partition(b"\r\n\r\n")
    tell(case["line"], head.decode("latin-1").partition("\r\n")[0] + " " + body.decode("latin-1"))
    assert head.split(b" ")[1:2] == [str(case["status"]).encode()], said
    assert b"connection: close" in head.lower(), said
    assert said.count(b"HTTP/1.1 ") == 1 + body.count(b"as HTTP/1.1 has"), said
    error = json.loads(body)["error"]
    assert error["code"] == case["code"], said
    assert [word for word in case.get("words", []) if word not in error["message"]] == [], said


def check_held(case: Case, *words: str) -> None:
    """The test that shows how a line ends in no error is there, and has these words."""
    path, _, name = case["holds"].partition("::")
    tell(case["line"], f"no error: {case['holds']}")
    found = re.search(rf"\b(?:def|fn) {name}\(.*?(?:\n\n\n|\n}}\n|\Z)", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    assert [word for word in words if word not in found[0]] == []


def check_lines(cases: list[Case], *kinds: str) -> None:
    """Each line stands there once, and has one of the ways to end."""
    assert len({case["line"] for case in cases}) == len(cases)
    for case in cases:
        assert sum(kind in case for kind in kinds) == 1, case["line"]
