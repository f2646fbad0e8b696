"""A small server on the library that most servers in Python are made with."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("real", version="1")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.resource("memo://one")
def memo() -> str:
    """A memo."""
    return "ü one"


@server.prompt()
def greet(who: str) -> str:
    """Greets."""
    return f"Hello, {who}"


if __name__ == "__main__":
    server.run("stdio")
