"""What the scripts of the three clients launch: it sends something of each kind, then does what it is told.

Installed as a program that serves HTTP, it says whom it serves.
"""

import json
import sys

from inferlet import InferletError, mcp, runtime, session
from inferlet.http_server import Response


async def fetch(request):
    return Response(f"served for {runtime.username()}")


def tool():
    """What a tool of the client's MCP server says."""
    try:
        with mcp.connect("files") as files:
            return json.loads(files.call_tool("add", {"a": 1, "b": 2}))["content"][0]["text"]
    except InferletError as error:
        return error.code


async def main(input):
    session.send("ready")
    session.send({"input": input})
    print("printed")
    print("to stderr", file=sys.stderr)
    session.message("beside")
    while True:
        try:
            text = await session.receive()
        except session.SessionClosed:
            return {"closed": True}
        match text:
            case "file":
                session.send_file(bytes(reversed(await session.receive_file())))
            case "fail":
                raise KeyError("greeting")
            case "tool":
                session.send(tool())
            case "stop":
                return {"stopped": True, "large": 2**64 - 1}
            case _:
                session.send(f"<{text}>")
