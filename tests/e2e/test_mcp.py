"""Programs that ask MCP servers: what they get, and what becomes of servers that crash, hang, or say nonsense."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pie.config import EngineConfig, McpServerConfig, ModelConfig, RuntimeConfig
from pie.engine import Engine
from pie.programs import load_program
from support.bad_lines import Others
from support.command import PATIENCE_S, command, environment
from support.engines import started
from support.launching import LANGUAGES, ROOT, Outcome, finish, load_interpreter
from support.mcp_server import TOOLS
from support.mcp_web import SESSION, mcp_web

SERVER = str(ROOT / "tests/support/mcp_server.py")


def config(*arguments: str, **settings: Any) -> McpServerConfig:
    """The server of the tests as a process of the engine."""
    return McpServerConfig(command=(sys.executable, SERVER, *arguments), **settings)


@contextmanager
def engine(data: Path, mcp: dict[str, McpServerConfig] | None = None, **runtime: Any) -> Iterator[Engine]:
    """An engine with these servers, or with one that is called `tests`."""
    servers = {"tests": config()} if mcp is None else mcp
    opened = Engine(EngineConfig(data_dir=data), runtime=RuntimeConfig(**runtime), mcp=servers)
    opened.add_model(options=ModelConfig(driver="dummy"))
    with started(opened):
        yield opened


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Engine]:
    with engine(tmp_path) as one:
        yield one


def ask(what: str, *args: Any, later: bool = False, session: str = "s") -> dict[str, Any]:
    return {"op": "mcp_ask", "session": session, "what": what, "args": list(args), "later": later}


def call(tool: str, later: bool = False, **arguments: Any) -> dict[str, Any]:
    return ask("call_tool", tool, arguments, later=later)


def connect(server: str = "tests", session: str = "s") -> dict[str, Any]:
    return {"op": "mcp_connect", "as": session, "server": server}


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def text_of(answer: Any) -> str:
    (content,) = answer["content"]
    return str(content["text"])


def error(code: str) -> dict[str, str]:
    return {"error": code}


def run(one: Engine, *ops: dict[str, Any], language: str = "python", user: str = "ada", limits: dict[str, Any] | None = None) -> list[Any]:
    outcome = ran(one, *ops, language=language, user=user, limits=limits)
    assert outcome.code is None, outcome.message
    answers: list[Any] = outcome.value
    return answers


def ran(one: Engine, *ops: dict[str, Any], language: str = "python", user: str = "ada", limits: dict[str, Any] | None = None) -> Outcome:
    return finish(one.launch(load_interpreter(language), input={"ops": list(ops)}, seed=7, username=user, limits=limits))


def message_of(one: Engine, server: str, tmp_path: Path) -> str:
    """The message of the error with which a program cannot connect."""
    program = tmp_path / "connecting.py"
    program.write_text("from inferlet import mcp\n\ndef main(server):\n    mcp.connect(server)\n")
    outcome = finish(one.launch(load_program(program), input=server))
    return f"[{outcome.code}] {outcome.message}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_server_prints_beside_its_answers_harms_nothing(tmp_path: Path, language: str) -> None:
    with engine(tmp_path, mcp={"tests": config("noisy")}) as one:
        others = Others(one)
        _, tools, sum_ = run(one, connect(), ask("list_tools"), call("add", a=1, b=2), language=language)
        assert others.serves_others()
    assert (tools, sum_) == ({"tools": TOOLS}, said("3"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tools_of_a_server_are_given_to_the_model_as_they_are(opened: Engine, language: str) -> None:
    schemas = [json.dumps(tool) for tool in TOOLS]
    ops = [{"op": "context", "as": name} for name in "ab"]
    ops += [connect(), {"op": "mcp_equip", "ctx": "a", "session": "s"}, {"op": "equip", "ctx": "b", "schemas": schemas}]
    for name in "ab":
        ops += [{"op": "user", "ctx": name, "text": "What is one and two?"}, {"op": "buffer", "ctx": name}]
    answers = run(opened, *ops, language=language)
    assert answers[-3] == answers[-1]
    assert len(answers[-1]) > 50


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_given_up_is_given_up_at_the_server(opened: Engine, language: str) -> None:
    meanwhile = {"what": "call_tool", "args": ["await_hanging", {}]}
    ops = [connect(), call("hang") | {"op": "mcp_give_up", "meanwhile": meanwhile}, call("await_cancelled"), call("add", a=1, b=1)]
    assert run(opened, *ops, language=language)[1:] == [said("hanging"), said("cancelled"), said("2")]


@pytest.mark.rows("RS-230 PY-195")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_session_that_is_closed_leaves_room_for_another(opened: Engine, language: str) -> None:
    close = {"op": "mcp_close", "session": "s"}
    ops = [connect(), connect(session="t"), close, connect(session="t"), ask("list_resources", session="t")]
    answers = run(opened, *ops, language=language, limits={"mcp_sessions": 1})
    assert answers[1] == error("limit-mcp-calls")
    assert answers[3] is None
    assert "resources" in answers[4]


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_closed_session_answers_nothing(opened: Engine, language: str) -> None:
    ops = [connect(), {"op": "mcp_close", "session": "s"}, call("add", a=1, b=2), ask("list_tools", later=True)]
    answers = run(opened, *ops, language=language)
    assert answers[2:] == [error("mcp-closed")] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_server_that_crashes_is_started_again(opened: Engine, language: str) -> None:
    _, first, crashed, second = run(opened, connect(), call("pid"), call("crash"), call("pid"), language=language)
    assert crashed == error("mcp-unavailable")
    assert text_of(first) != text_of(second)


def test_a_server_is_started_so_often_a_minute(tmp_path: Path) -> None:
    with engine(tmp_path, mcp_starts_per_minute=2) as one:
        answers = run(one, connect(), call("crash"), call("crash"), call("pid"))
        assert answers[1:] == [error("mcp-unavailable")] * 3
        assert "runtime.mcp_starts_per_minute" in message_of(one, "tests", tmp_path)


@pytest.mark.parametrize("tool", ["hang", "foreign"])
def test_a_server_that_does_not_answer_is_given_up_in_time(opened: Engine, tool: str) -> None:
    answers = run(opened, connect(), call(tool), call("add", a=1, b=2), limits={"mcp_call_s": 0.5})
    assert answers[1:] == [error("limit-mcp-time"), said("3")]


def test_a_call_that_hangs_holds_up_nobody_else(opened: Engine) -> None:
    hanging = opened.launch(load_interpreter("python"), input={"ops": [connect(), call("hang")]}, username="bob")
    assert run(opened, connect(), call("await_hanging"), call("add", a=1, b=2))[1:] == [said("hanging"), said("3")]
    hanging.cancel()
    assert finish(hanging).code == "cancelled"
    assert run(opened, connect(), call("await_cancelled"))[1] == said("cancelled")


def test_an_answer_that_is_too_long_is_not_held(opened: Engine) -> None:
    ops = [connect(), call("pid"), call("long", n=100_000_000), call("long", n=1000), call("pid")]
    _, first, long, short, second = run(opened, *ops)
    assert (long, short, first) == (error("limit-mcp-bytes"), said("x" * 1000), second)
    assert run(opened, connect(), call("long", n=2000), limits={"mcp_answer_bytes": 1024})[1] == error("limit-mcp-bytes")
    assert run(opened, connect(), call("echo", text="x" * 2000), limits={"mcp_sent_bytes": 1024})[1] == error("limit-mcp-bytes")
    assert all(sum(held.values()) < 1 << 20 for held in opened.memory().values())


def test_calls_are_counted(opened: Engine) -> None:
    together = {"op": "all", "ops": [[call("together", later=True)] for _ in range(3)]}
    answers = run(opened, connect(), together, limits={"mcp_calls": 2})
    assert sorted(answers[1], key=str) == [[said("together")], [said("together")], [error("limit-mcp-calls")]]


@pytest.mark.parametrize(
    ("server", "parts"),
    [
        (config("silent", start_s=0.5), ("[limit-mcp-time]", "mcp.bad.start_s = 0.5 s")),
        (config("nonsense"), ("[mcp-protocol]", '"1.0"')),
        (config("dies"), ("[mcp-unavailable]", "7")),
        (McpServerConfig(command=("/nowhere/at/all",)), ("[mcp-unavailable]", "cannot be started")),
        (McpServerConfig(url="http://127.0.0.1:1/mcp"), ("[mcp-unavailable]", "cannot be reached")),
    ],
)
def test_a_server_that_does_not_start_says_why(tmp_path: Path, server: McpServerConfig, parts: tuple[str, str]) -> None:
    with engine(tmp_path, mcp={"bad": server, "good": config()}) as one:
        message = message_of(one, "bad", tmp_path)
        assert all(part in message for part in parts), message
        assert "something is wrong" not in message
        assert run(one, connect("good"), call("add", a=1, b=2))[1] == said("3")


def test_only_those_whom_it_is_for_find_a_server(tmp_path: Path) -> None:
    with engine(tmp_path, mcp={"all": config(), "adas": config(users=("ada",))}) as one:
        assert run(one, {"op": "mcp_servers"}) == [["adas", "all"]]
        assert run(one, {"op": "mcp_servers"}, connect("adas"), user="bob") == [["all"], error("unknown-mcp-server")]


def test_a_server_has_its_variables_and_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ("PIE_KEY", "PIE_CLIENT__KEY", "PIE_client__key")
    for key in keys:
        monkeypatch.setenv(key, "secret")
    folder = tmp_path / "there"
    folder.mkdir()
    with engine(tmp_path / "data", mcp={"tests": config(env=("OWN=a=b",), cwd=str(folder))}) as one:
        variables = [call("variable", name=name) for name in ("OWN", *keys)]
        answers = run(one, connect(), *variables, call("folder"))
    assert [text_of(answer) for answer in answers[1:]] == ["a=b", "none", "none", "none", str(folder)]


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # One that has ended and that nobody has waited for is as good as gone.
    return "Z" not in stat.rpartition(")")[2].split()[0]


def test_a_server_ends_with_its_engine(tmp_path: Path) -> None:
    with engine(tmp_path) as one:
        pid = int(text_of(run(one, connect(), call("pid"))[1]))
        descriptor = os.pidfd_open(pid)
    try:
        assert select.select([descriptor], [], [], 60)[0], "the server of an engine that has stopped runs on"
        assert not is_alive(pid)
    finally:
        os.close(descriptor)


TELLS_AND_WAITS = """
import json
from inferlet import mcp, session


async def main(input):
    with mcp.connect("tests") as tests:
        print(json.loads(tests.call_tool("pid", {}))["content"][0]["text"], flush=True)
        await session.receive()
"""


def test_a_server_that_ignores_its_input_ends_with_an_engine_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(TELLS_AND_WAITS)
    (tmp_path / "config.toml").write_text(f"[mcp.tests]\ncommand = {json.dumps([sys.executable, SERVER, 'stubborn'])}\n")
    settings = {"PIE_ENGINE__DATA_DIR": str(tmp_path / "data")}
    running = subprocess.Popen(
        command(["run", "waits.py", "--dummy", "--config", "config.toml"]),
        cwd=tmp_path,
        env=environment() | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with running:
        assert running.stdout is not None
        descriptor = os.pidfd_open(int(running.stdout.readline()))
        try:
            running.kill()
            running.wait()
            assert select.select([descriptor], [], [], PATIENCE_S)[0], "the server of an engine that was killed runs on"
        finally:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)


@pytest.mark.parametrize("streams", [False, True])
def test_a_server_by_http(tmp_path: Path, streams: bool) -> None:
    with mcp_web() as web:
        web.streams = streams
        server = McpServerConfig(url=web.url, headers=("Authorization: Bearer abc",))
        with engine(tmp_path, mcp={"web": server}) as one:
            ops = [connect("web"), ask("list_tools"), call("add", a=1, b=2), call("nothing"), call("long", n=20_000_000)]
            answers = run(one, *ops)
            assert answers[1:] == [{"tools": TOOLS}, said("3"), error("mcp-error"), error("limit-mcp-bytes")]
            web.status = 500
            assert run(one, connect("web"), call("add", a=1, b=2))[1] == error("mcp-unavailable")
            # The server has forgotten the session: the next call begins another one.
            web.status = 404
            assert run(one, connect("web"), call("add", a=1, b=2), call("add", a=2, b=2))[1:] == [error("mcp-unavailable"), said("4")]
            assert run(one, connect("web"), call("hang"), limits={"mcp_call_s": 0.5})[1] == error("limit-mcp-time")
            assert web.cancelled.wait(60)
        methods = [method for method, _ in web.seen]
        assert methods[:2] == ["initialize", "notifications/initialized"]
        assert methods.count("initialize") == 2
        assert all(headers["authorization"] == "Bearer abc" for _, headers in web.seen)
        asked = [headers for method, headers in web.seen if method == "tools/call"]
        assert {(headers["mcp-session-id"], headers["mcp-protocol-version"]) for headers in asked} == {(SESSION, "2025-06-18")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_server_on_the_library_of_others(tmp_path: Path, language: str) -> None:
    real = McpServerConfig(command=(sys.executable, str(ROOT / "tests/support/real_mcp_server.py")))
    with engine(tmp_path, mcp={"real": real}) as one:
        ops = [connect("real"), ask("server_info"), ask("list_tools"), call("add", a=1, b=2), call("add", a="x")]
        ops += [ask("list_resources"), ask("read_resource", "memo://one"), ask("list_prompts"), ask("get_prompt", "greet", {"who": "Ada"})]
        _, info, listed, sum_, wrong, resources, memo, prompts, greeting = run(one, *ops, language=language)
    assert info["serverInfo"]["name"] == "real"
    assert [(tool["name"], sorted(tool["inputSchema"]["properties"])) for tool in listed["tools"]] == [("add", ["a", "b"])]
    assert text_of(sum_) == "3"
    assert wrong.get("isError") or wrong == error("mcp-error")
    assert [resource["uri"] for resource in resources["resources"]] == ["memo://one"]
    assert memo["contents"][0]["text"] == "ü one"
    assert [prompt["name"] for prompt in prompts["prompts"]] == ["greet"]
    assert greeting["messages"][0]["content"]["text"] == "Hello, Ada"
