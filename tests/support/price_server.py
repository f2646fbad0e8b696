"""An MCP server with the tools of the agent in `examples/`, by hand on standard input and output."""

from __future__ import annotations

import json
import sys
from typing import Any

PRICES = {"guitar": 180, "hammer": 12, "jacket": 59, "violin": 340}


def tool(name: str, description: str, argument: str) -> dict[str, Any]:
    """A tool with one argument, a text."""
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [tool("get_price", "Get the price of an item.", "item"), tool("get_time", "Get the time in a city.", "city")]


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a tool answers."""
    if name == "get_price":
        item = arguments["item"]
        return {"price": PRICES[item]} if item in PRICES else {"error": f"there is no {item}"}
    return {"error": f"there is no clock in {arguments['city']}"}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None where there is no such method."""
    match method:
        case "initialize":
            info = {"name": "prices", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            answer = called(params["name"], params["arguments"])
            return {"content": [{"type": "text", "text": json.dumps(answer)}], "isError": "error" in answer}
    return None


def main() -> None:
    """Answers what comes, until nothing does."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        found = result(message["method"], message.get("params", {}))
        said: dict[str, Any] = {"error": {"code": -32601, "message": "there is no such method"}} if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | said), flush=True)


if __name__ == "__main__":
    main()
