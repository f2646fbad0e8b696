"""Every kind of bad input to what programs have of the world: an error with a code within bounds, and everyone else is
served. The kinds stand in `bad_world.toml`; `pytest -s tests/e2e/test_bad_world.py` prints each with its message.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.test_http_in import PATHS, Door, door
from pie.config import EngineConfig, McpServerConfig, ModelConfig, RuntimeConfig
from pie.engine import Engine
from support.engines import started
from support.launching import ROOT, finish, python_source
from support.web import web

CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "bad_world.toml").read_text(encoding="utf-8"))["case"]
MCP_SERVER = str(ROOT / "tests/support/mcp_server.py")
MOST_SHOWN = 240

# What fails is returned, but for what ends the process; a child returns it to its parent.
PROGRAM = """
from inferlet import InferletError, http, mcp, messaging, runtime


async def fails(input):
    server = input["server"]
{body}


async def main(input):
    try:
        return await fails(input)
    except InferletError as error:
        return {{"code": error.code, "message": error.message}}
"""
HONEST = python_source(
    "from inferlet import Context, Model, Sampler\n\n\nasync def main(input):\n"
    "    with Context(Model.load('default')) as ctx:\n"
    "        return await ctx.user('Hello').generate(Sampler.argmax(), max_tokens=4, ignore_eos=True).collect_tokens()\n"
)


@dataclass
class World:
    """An engine with little room, and a server that it may ask."""

    engine: Engine
    server: str

    def met(self, case: dict[str, Any], body: str) -> tuple[str | None, str]:
        """The code and the message that a program met."""
        lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
        program = python_source(PROGRAM.format(body=lines))
        outcome = finish(self.engine.launch(program, input={"server": self.server}, username="mallory", limits=case.get("limits")))
        if outcome.code is not None:
            return outcome.code, outcome.message or ""
        assert isinstance(outcome.value, dict), f"{case['line']}: nothing failed, and it returned {outcome.value!r}"
        return outcome.value["code"], outcome.value["message"]

    def serves_others(self) -> bool:
        """Whether somebody else is served as ever."""
        outcome = finish(self.engine.launch(HONEST, input=None, username="ada"))
        return outcome.code is None and len(outcome.value) == 4


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Programs may ask whatever is not of an inner network, and the server of the tests."""
    servers = {
        "tests": McpServerConfig(command=(sys.executable, MCP_SERVER)),
        "silent": McpServerConfig(command=(sys.executable, MCP_SERVER, "silent"), start_s=0.5),
    }
    with web() as server:
        runtime = RuntimeConfig(allow_net=("*", f"127.0.0.1:{server.port}"), fs_bytes=100_000, fs_free_bytes=0, mcp_starts_per_minute=100)
        settings = EngineConfig(data_dir=tmp_path_factory.mktemp("bad_world"), bus_queue_messages=1000, bus_push_s=0.05)
        engine = Engine(settings, runtime=runtime, mcp=servers)
        engine.add_model(options=ModelConfig(driver="dummy"))
        with started(engine):
            yield World(engine, server.url)


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with door(tmp_path_factory.mktemp("answering"), PATHS["python"], shared=True) as opened:
        yield opened


def tell(line: str, what: str) -> None:
    """A line of what is printed."""
    shown = what if len(what) <= MOST_SHOWN else f"{what[:MOST_SHOWN]}..."
    print(f"\n{line}\n    {shown}")


def of(kind: str) -> Any:
    """The cases that have a field of that name."""
    cases = [case for case in CASES if kind in case]
    return pytest.mark.parametrize("case", cases, ids=[case["line"] for case in cases])


@of("python")
def test_what_a_program_does_wrong_has_its_code(world: World, case: dict[str, Any]) -> None:
    code, message = world.met(case, case["python"])
    tell(case["line"], f"error[{code}] {message}")
    assert code == case["code"], message
    assert [word for word in case.get("words", []) if word not in message] == []
    assert world.serves_others()


@of("forms")
def test_no_form_of_an_inner_address_is_asked(world: World, case: dict[str, Any]) -> None:
    assert len(case["forms"]) >= 40
    for host in case["forms"]:
        code, message = world.met(case, f"await http.get({f'http://{host}/'!r})")
        tell(f"{case['line']}: {host}", f"error[{code}] {message}")
        # What hides a host behind another is not an address.
        assert code in ({"invalid-argument", case["code"]} if "@" in host else {case["code"]}), (host, message)
    assert world.serves_others()


@of("raw")
def test_what_smuggles_is_refused(answering: Door, case: dict[str, Any]) -> None:
    said = answering.raw(case["raw"])
    tell(case["line"], said.decode("latin-1").partition("\r\n")[0])
    assert said.split(b" ")[1:2] == [str(case["status"]).encode()], said
    # Nothing of it was taken for another request.
    assert said.count(b"HTTP/1.1 ") == 1
    assert answering.ask("/count").status == 200


@of("holds")
def test_what_ends_in_no_error_is_shown_elsewhere(case: dict[str, Any]) -> None:
    path, _, name = case["holds"].partition("::")
    tell(case["line"], f"no error: {case['holds']}")
    assert re.search(rf"\b(?:def|fn) {name}\(", (ROOT / path).read_text(encoding="utf-8"))


def test_each_line_says_how_it_ends() -> None:
    assert len({case["line"] for case in CASES}) == len(CASES)
    for case in CASES:
        assert sum(kind in case for kind in ("python", "forms", "raw", "holds")) == 1, case["line"]
