"""Every kind of bad input to what programs have of the world: an error with a code within bounds, and everyone else is
served. The kinds stand in `bad_world.toml`; `pytest -s tests/e2e/test_bad_world.py` prints each with its message.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.test_http_in import PATHS, Door, door
from pie.config import EngineConfig, McpServerConfig, ModelConfig, RuntimeConfig
from pie.engine import Engine
from support.bad_lines import Case, World, check_held, check_lines, check_met, check_refused, of, read_cases, tell
from support.engines import started
from support.launching import ROOT
from support.web import web

CASES = read_cases(Path(__file__).parent / "bad_world.toml")
MCP_SERVER = str(ROOT / "tests/support/mcp_server.py")

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
        return {"code": error.code, "message": error.message}
"""


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
            yield World(engine, PROGRAM, {"server": server.url})


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with door(tmp_path_factory.mktemp("answering"), PATHS["python"], shared=True) as opened:
        yield opened


@of(CASES, "python")
def test_what_a_program_does_wrong_has_its_code(world: World, case: Case) -> None:
    check_met(case, *world.met(case))
    assert world.serves_others()


@of(CASES, "forms")
def test_no_form_of_an_inner_address_is_asked(world: World, case: Case) -> None:
    assert len(case["forms"]) >= 40
    for host in case["forms"]:
        code, message = world.met_by(case, f"await http.get({f'http://{host}/'!r})")
        tell(f"{case['line']}: {host}", f"error[{code}] {message}")
        # What hides a host behind another is not an address.
        assert code in ({"invalid-argument", case["code"]} if "@" in host else {case["code"]}), (host, message)
    assert world.serves_others()


@of(CASES, "raw")
def test_what_smuggles_is_refused(answering: Door, case: Case) -> None:
    before = answering.ask("/count").value
    check_refused(case, answering.raw(case["raw"]))
    n_between = answering.ask("/count").value - before - 1
    assert n_between <= (1 if case.get("begun") else 0)


@of(CASES, "holds")
def test_what_ends_in_no_error_is_shown_elsewhere(case: Case) -> None:
    check_held(case, "serves_others(")


def test_each_line_says_how_it_ends() -> None:
    check_lines(CASES, "python", "forms", "raw", "holds")
