"""Sessions with MCP servers: what crosses to the engine, what blocks, and when a session is closed."""

import asyncio

import pytest
from componentize_py_types import Err
from wit_world.imports import client as host
from wit_world.imports import types

from inferlet import InferletError, mcp
from inferlet._wait import EventLoop
from sdk_python.fakes import Clock


class Raw:
    """A session of the engine: it answers with what it was asked."""

    def __init__(self, clock, hello_error=None):
        self.clock, self.hello_error, self.asked, self.n_closed = clock, hello_error, [], 0

    def hello(self):
        return self.clock.future("hello", 5, '{"serverInfo": {}}', self.hello_error)

    def _ask(self, name, *args):
        self.asked.append((name, *args))
        return self.clock.future(name, 5, f'"{name}"')

    def __getattr__(self, name):
        return lambda *args: self._ask(name, *args)

    def close(self):
        self.n_closed += 1


@pytest.fixture
def clock(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(EventLoop, "time", lambda self: clock.now_ns * 1e-9)
    return clock


def run(coroutine):
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(coroutine)


def known(monkeypatch, raw):
    monkeypatch.setattr(host, "connect", lambda name: raw)
    return raw


def test_every_method_blocks_until_its_answer_is_there(monkeypatch, clock):
    raw = known(monkeypatch, Raw(clock))
    session = mcp.connect("files")
    assert session.server_info == '{"serverInfo": {}}'
    answers = [session.list_tools(), session.call_tool("a", {"x": [1, "ü"]}), session.call_tool("a", '{"x": 1}'), session.call_tool("a")]
    answers += [
        session.list_resources(),
        session.read_resource("memo://x"),
        session.list_prompts(),
        session.get_prompt("p", {"who": "Ada"}),
    ]
    assert answers == [f'"{name}"' for name, *_ in raw.asked]
    assert raw.asked == [
        ("list_tools",),
        ("call_tool", "a", '{"x":[1,"ü"]}'),
        ("call_tool", "a", '{"x": 1}'),
        ("call_tool", "a", ""),
        ("list_resources",),
        ("read_resource", "memo://x"),
        ("list_prompts",),
        ("get_prompt", "p", '{"who":"Ada"}'),
    ]


def test_what_is_awaited_overlaps(monkeypatch, clock):
    raw = known(monkeypatch, Raw(clock))

    async def main():
        session = await mcp.connect_async("files")
        begun_ns = clock.now_ns
        calls = [session.call_tool_async("a"), session.list_tools_async(), session.list_resources_async()]
        calls += [session.read_resource_async("x"), session.list_prompts_async(), session.get_prompt_async("p")]
        await asyncio.gather(*calls)
        return clock.now_ns - begun_ns

    assert run(main()) == 5_000_000
    assert len(raw.asked) == 6


def test_a_call_that_is_cancelled_is_given_up(monkeypatch, clock):
    known(monkeypatch, Raw(clock))

    async def main():
        session = await mcp.connect_async("files")
        call = asyncio.ensure_future(session.call_tool_async("a"))
        await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    run(main())
    assert "future call_tool" in clock.dropped


@pytest.mark.rows("PY-195")
def test_a_session_is_closed_at_the_end_of_its_block(monkeypatch, clock):
    raw = known(monkeypatch, Raw(clock))

    def fail():
        with mcp.connect("files") as session:
            assert isinstance(session, mcp.McpSession)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert raw.n_closed == 1


def test_a_server_that_does_not_come_leaves_no_session(monkeypatch, clock):
    raw = known(monkeypatch, Raw(clock, "mcp-unavailable"))
    with pytest.raises(InferletError) as raised:
        mcp.connect("files")
    assert (raised.value.code, raw.n_closed) == ("mcp-unavailable", 1)
    with pytest.raises(InferletError):
        run(mcp.connect_async("files"))
    assert raw.n_closed == 2


def test_what_is_wrong_is_refused_before_the_engine_is_asked(monkeypatch, clock):
    raw = known(monkeypatch, Raw(clock))
    session = mcp.connect("files")
    for call in (
        lambda: mcp.connect(1),
        lambda: session.call_tool(1, {}),
        lambda: session.call_tool("a", {"x": float("nan")}),
        lambda: session.call_tool("a", {"x": {1, 2}}),
        lambda: session.call_tool("a", "\ud800"),
        lambda: session.read_resource(None),
    ):
        with pytest.raises(InferletError) as raised:
            call()
        assert raised.value.code == "invalid-argument"
    assert raw.asked == []


def test_an_unknown_server_is_an_error(monkeypatch):
    def refuse(name):
        raise Err(types.Error("unknown-mcp-server", f"there is no MCP server {name}", "{}"))

    monkeypatch.setattr(host, "connect", refuse)
    monkeypatch.setattr(host, "available_servers", lambda: ["a", "b"])
    assert mcp.available_servers() == ["a", "b"]
    with pytest.raises(InferletError) as raised:
        mcp.connect("c")
    assert raised.value.code == "unknown-mcp-server"
