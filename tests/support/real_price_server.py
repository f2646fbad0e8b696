"""The tools of `price_server`, with the same answers, on the library that most servers in Python are made with."""

from __future__ import annotations

import asyncio
import json

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from support.price_server import TOOLS, called


async def list_tools(_context: object, _params: object) -> ListToolsResult:
    """The tools."""
    return ListToolsResult(
        tools=[Tool(name=tool["name"], description=tool["description"], input_schema=tool["inputSchema"]) for tool in TOOLS]
    )


async def call_tool(_context: object, params: CallToolRequestParams) -> CallToolResult:
    """What a tool answers."""
    answer = called(params.name, params.arguments or {})
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(answer))], is_error="error" in answer)


async def main() -> None:
    """Answers what comes, until nothing does."""
    server = Server("prices", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
