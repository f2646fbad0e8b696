"""An MCP server of the tests, which speaks the protocol by hand on its standard input and output.

It imports nothing but the standard library, since it runs as a process of its own.

Arguments change how it starts: `silent` says nothing, `nonsense` answers the hello with what is not one, `dies` ends at
once, `noisy` prints logs between its answers, `stubborn` goes on when its input has ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

TOOLS: list[Json] = [
    {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    },
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
]
RESOURCES: list[Json] = [{"uri": "memo://one", "name": "one", "mimeType": "text/plain"}]
PROMPTS: list[Json] = [{"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}]}]
ARGUMENTS = frozenset(sys.argv[1:])

_INVALID_PARAMS = -32602
_METHOD_NOT_FOUND = -32601


class RefusedError(Exception):
    """What a request is refused for."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Server:
    """One conversation. Calls that are not answered at once wait by what wakes them."""

    def __init__(self) -> None:
        self.n_cancelled = 0
        self.n_hanging = 0
        self.waiting: dict[str, list[int]] = {"hanging": [], "cancelled": [], "together": []}

    def run(self) -> None:
        """Serves until the input ends."""
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message:
                self.answer(message)
            elif message["method"] == "notifications/cancelled":
                self.n_cancelled += 1
            self.wake()

    def answer(self, message: Json) -> None:
        """Answers a request, at once or never."""
        if "noisy" in ARGUMENTS:
            print("a log line", '{"level": "info", "message": "another"}', '{"id": 77, "result": {}}', '{"id":', sep="\n", flush=True)
        try:
            result = self.result(message["id"], message["method"], message.get("params", {}))
        except RefusedError as refused:
            send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": refused.code, "message": str(refused)}})
            return
        if result is not None:
            send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def result(self, request: int, method: str, params: Json) -> Json | None:
        """The result of a request; None: it is not answered now."""
        match method:
            case "initialize":
                return hello()
            case "tools/list":
                # Two pages.
                first = "cursor" not in params
                return {"tools": TOOLS[:1], "nextCursor": "1"} if first else {"tools": TOOLS[1:]}
            case "tools/call":
                return self.call(request, params["name"], params["arguments"])
            case "resources/list":
                return {"resources": RESOURCES}
            case "resources/read":
                if params["uri"] != RESOURCES[0]["uri"]:
                    raise RefusedError(_INVALID_PARAMS, f"there is no resource {params['uri']}")
                return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": "ü one"}]}
            case "prompts/list":
                return {"prompts": PROMPTS}
            case "prompts/get":
                said = f"Hello, {params['arguments'].get('who', 'nobody')}"
                return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
        raise RefusedError(_METHOD_NOT_FOUND, f"there is no method {method}")

    def call(self, request: int, name: str, arguments: Json) -> Json | None:
        """The result of a tool."""
        match name:
            case "add":
                return text(str(arguments["a"] + arguments["b"]))
            case "fail":
                return text("it failed") | {"isError": True}
            case "echo":
                return text(json.dumps(arguments, ensure_ascii=False))
            case "pid":
                return text(str(os.getpid()))
            case "variable":
                return text(os.environ.get(arguments["name"], "none"))
            case "folder":
                return text(os.getcwd())  # noqa: PTH109  # nothing but texts is imported here
            case "crash":
                os._exit(3)
            case "hang":
                self.n_hanging += 1
                return None
            case "foreign":
                send({"jsonrpc": "2.0", "id": request + 1000, "result": text("of another")})
                send({"jsonrpc": "2.0", "id": str(request), "result": text("of another")})
                return None
            case "long":
                return text("x" * arguments["n"])
            case "await_hanging" | "await_cancelled" | "together":
                self.waiting[name.removeprefix("await_")].append(request)
                return None
        raise RefusedError(_INVALID_PARAMS, f"there is no tool {name}")

    def wake(self) -> None:
        """Answers the calls that have waited long enough: two together, or for what they wait for."""
        ready = {"hanging": self.n_hanging > 0, "cancelled": self.n_cancelled > 0, "together": len(self.waiting["together"]) > 1}
        for what, requests in self.waiting.items():
            if ready[what] and requests:
                self.waiting[what] = []
                for request in requests:
                    send({"jsonrpc": "2.0", "id": request, "result": text(what)})


def hello() -> Json | None:
    """What it says first."""
    if "silent" in ARGUMENTS:
        return None
    if "nonsense" in ARGUMENTS:
        return {"protocolVersion": "1.0"}
    info = {"name": "tests", "version": "1"}
    return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}, "prompts": {}}, "serverInfo": info}


def text(said: str) -> Json:
    """A result that says something."""
    return {"content": [{"type": "text", "text": said}]}


def send(message: Json) -> None:
    """Writes a message."""
    sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if "dies" in ARGUMENTS:
        print("something is wrong", file=sys.stderr)
        sys.exit(7)
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8")  # type: ignore[attr-defined]  # as the protocol has it, whatever the locale
    Server().run()
    while "stubborn" in ARGUMENTS:
        signal.pause()
