"""Vectors of sessions with an MCP server: the one of the tests (`tests/support/mcp_server.py`), as `tests`."""

from __future__ import annotations

from typing import Any

from tests.vectors.ops import Op, op

_ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
}
_FAIL = {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}}
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
    "serverInfo": {"name": "tests", "version": "1"},
}


def _said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def ask(what: str, *args: Any, later: bool = False) -> Op:
    """A question to the session `s`."""
    return op("mcp_ask", session="s", what=what, args=list(args), **({"later": True} if later else {}))


ASKED: list[tuple[Op, Any]] = [
    (op("mcp_servers"), ["tests"]),
    (op("mcp_connect", as_="s", server="tests"), None),
    (ask("server_info"), _HELLO),
    # Two pages of the server are one list.
    (ask("list_tools"), {"tools": [_ADD, _FAIL]}),
    (ask("call_tool", "add", {"a": 1, "b": 2}), _said("3")),
    (ask("call_tool", "add", '{"b": 40,\n "a": 2}'), _said("42")),
    (ask("call_tool", "echo"), _said("{}")),
    (ask("call_tool", "echo", {"ü": [None, True, "\n"]}), _said('{"ü": [null, true, "\\n"]}')),
    # A tool that fails is an answer.
    (ask("call_tool", "fail", {}), _said("it failed") | {"isError": True}),
    (ask("list_resources"), {"resources": [{"uri": "memo://one", "name": "one", "mimeType": "text/plain"}]}),
    (ask("read_resource", "memo://one"), {"contents": [{"uri": "memo://one", "mimeType": "text/plain", "text": "ü one"}]}),
    (
        ask("list_prompts"),
        {"prompts": [{"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}]}]},
    ),
    (ask("get_prompt", "greet", {"who": "Ada"}), {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello, Ada"}}]}),
    (op("mcp_close", session="s"), None),
]
LATER: list[tuple[Op, Any]] = [
    (op("mcp_connect", as_="s", server="tests", later=True), None),
    (ask("list_tools", later=True), {"tools": [_ADD, _FAIL]}),
    (ask("list_resources", later=True), {"resources": [{"uri": "memo://one", "name": "one", "mimeType": "text/plain"}]}),
    (ask("read_resource", "memo://one", later=True), {"contents": [{"uri": "memo://one", "mimeType": "text/plain", "text": "ü one"}]}),
    (
        ask("list_prompts", later=True),
        {"prompts": [{"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}]}]},
    ),
    (
        ask("get_prompt", "greet", {"who": "Bob"}, later=True),
        {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello, Bob"}}]},
    ),
    # The server answers these when both have come.
    (
        op("all", ops=[[ask("call_tool", "together", later=True)], [ask("call_tool", "together", later=True)]]),
        [[_said("together")], [_said("together")]],
    ),
]
REFUSED: list[tuple[Op, Any]] = [
    (op("mcp_connect", as_="s", server="nobody"), {"error": "unknown-mcp-server"}),
    (op("mcp_connect", as_="s", server="tests"), None),
    (ask("call_tool", "nothing", {}), {"error": "mcp-error"}),
    (ask("read_resource", "memo://two"), {"error": "mcp-error"}),
    (ask("call_tool", "add", "[1, 2]"), {"error": "invalid-argument"}),
    (ask("call_tool", "add", "{"), {"error": "invalid-argument"}),
    (ask("get_prompt", "greet", "1"), {"error": "invalid-argument"}),
    (ask("call_tool", "echo", "{}"), _said("{}")),
]


def _vector(rows: list[tuple[Op, Any]]) -> tuple[list[Op], dict[str, Any]]:
    return [row[0] for row in rows], {"expect": [row[1] for row in rows]}


VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    "mcp": _vector(ASKED),
    "mcp_later": _vector(LATER),
    "mcp_refused": _vector(REFUSED),
}
SHOWS = {"mcp": "JS-195..203 PY-186..195 RS-219 RS-221..229 OLD-029"}
DOCS = {
    "mcp": "What an MCP server answers comes as it wrote it; lists come with all their pages.",
    "mcp_later": "The same by the calls that are awaited, which overlap.",
    "mcp_refused": "What cannot be asked, and what the server refuses, has a code; the session goes on.",
}
