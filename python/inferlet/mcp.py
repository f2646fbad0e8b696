"""Servers of MCP, the Model Context Protocol: their tools, resources and prompts.

There are those that the operator has configured, and those that the client has registered that launched the program.

```python
import json

from inferlet import Context, Model, mcp

with mcp.connect("files") as files:
    context = Context(Model.load("default"))
    context.equip(json.loads(files.list_tools())["tools"])
    answer = files.call_tool("read", {"path": "notes.txt"})
```

Every method returns the server's own JSON text and blocks the whole program meanwhile; the one that ends in `_async` is
awaited, and lets other tasks run. What fails has a code: `unknown-mcp-server`, `mcp-unavailable`, `mcp-protocol`,
`mcp-error`, `mcp-closed`, `limit-mcp-calls`, `limit-mcp-bytes` or `limit-mcp-time`. A tool that fails says so in its
result, by `isError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from wit_world.imports import client as _client

from inferlet import _arguments, _json
from inferlet._wait import block_on, resolve
from inferlet.errors import ErrorCode, host

__all__ = ["McpSession", "available_servers", "connect", "connect_async"]


def available_servers() -> list[str]:
    """The names of the servers that this program can connect to, sorted."""
    return list(_client.available_servers())


def connect(name: str) -> McpSession:
    """Opens a session with a server, which is started where it does not run.

    Raises `InferletError` with the code `unknown-mcp-server`, `mcp-unavailable`, `mcp-protocol`, `limit-mcp-calls` or
    `limit-mcp-time`.
    """
    session = McpSession(host(_client.connect, _arguments.text("name", name)))
    try:
        session._greet()
    except BaseException:
        session.close()
        raise
    return session


async def connect_async(name: str) -> McpSession:
    """As `connect`, and lets other tasks run meanwhile."""
    session = McpSession(host(_client.connect, _arguments.text("name", name)))
    try:
        await session._greet_async()
    except BaseException:
        session.close()
        raise
    return session


class McpSession:
    """A session with a server; `connect` opens one. Leaving its `with` closes it, as does dropping it."""

    def __init__(self, raw: _client.McpSession) -> None:
        self._raw = raw
        self._server_info = "{}"

    def _greet(self) -> None:
        """Waits until the server is there."""
        self._server_info = block_on(self._raw.hello())

    async def _greet_async(self) -> None:
        """As `_greet`, awaited."""
        self._server_info = await resolve(self._raw.hello(), self)

    @property
    def server_info(self) -> str:
        """What the server said of itself, `{"protocolVersion", "capabilities", "serverInfo", ...}`."""
        return self._server_info

    def list_tools(self) -> str:
        """The tools of the server, `{"tools": [...]}`. `equip` takes each of them as it is."""
        return block_on(self._raw.list_tools())

    async def list_tools_async(self) -> str:
        """As `list_tools`, awaited."""
        return await resolve(self._raw.list_tools(), self)

    def call_tool(self, name: str, args: str | Mapping[str, object] | None = None) -> str:
        """Calls a tool with its arguments, a JSON text of an object or a dict.

        The answer is `{"content": [...], "isError"?: bool}`.
        """
        return block_on(self._raw.call_tool(_arguments.text("name", name), _object(args)))

    async def call_tool_async(self, name: str, args: str | Mapping[str, object] | None = None) -> str:
        """As `call_tool`, awaited. Cancelling the task gives the call up at the server too."""
        return await resolve(self._raw.call_tool(_arguments.text("name", name), _object(args)), self)

    def list_resources(self) -> str:
        """The resources of the server, `{"resources": [...]}`."""
        return block_on(self._raw.list_resources())

    async def list_resources_async(self) -> str:
        """As `list_resources`, awaited."""
        return await resolve(self._raw.list_resources(), self)

    def read_resource(self, uri: str) -> str:
        """Reads a resource: `{"contents": [...]}`."""
        return block_on(self._raw.read_resource(_arguments.text("uri", uri)))

    async def read_resource_async(self, uri: str) -> str:
        """As `read_resource`, awaited."""
        return await resolve(self._raw.read_resource(_arguments.text("uri", uri)), self)

    def list_prompts(self) -> str:
        """The prompts of the server, `{"prompts": [...]}`."""
        return block_on(self._raw.list_prompts())

    async def list_prompts_async(self) -> str:
        """As `list_prompts`, awaited."""
        return await resolve(self._raw.list_prompts(), self)

    def get_prompt(self, name: str, args: str | Mapping[str, object] | None = None) -> str:
        """Renders a prompt with its arguments, a JSON text of an object or a dict of texts: `{"messages": [...]}`."""
        return block_on(self._raw.get_prompt(_arguments.text("name", name), _object(args)))

    async def get_prompt_async(self, name: str, args: str | Mapping[str, object] | None = None) -> str:
        """As `get_prompt`, awaited."""
        return await resolve(self._raw.get_prompt(_arguments.text("name", name), _object(args)), self)

    def close(self) -> None:
        """Ends the session; calls that are under way, and later ones, fail with `mcp-closed`. Again it does nothing."""
        self._raw.close()

    def __enter__(self) -> McpSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _object(args: str | Mapping[str, object] | None) -> str:
    """Arguments as a JSON text, which the engine checks to be an object."""
    if args is None:
        return ""
    if isinstance(args, str):
        return _arguments.text("args", args)
    return _json.dumps(dict(args) if isinstance(args, Mapping) else args, "args", ErrorCode.INVALID_ARGUMENT)
