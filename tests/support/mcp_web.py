"""The MCP server of the tests by HTTP: each message is a request, answered by one message or by a stream of events."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.mcp_server import RefusedError, Server, hello

SESSION = "a-session"


class McpWeb:
    """A server that runs, and what it was asked."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.url = f"http://{address[0]}:{address[1]}/mcp"
        self.streams = False
        """Whether it answers by streams."""
        self.status: int | None = None
        """What it answers to the next call instead."""
        self.seen: list[tuple[str, dict[str, str]]] = []
        """Methods and headers, in their order."""
        self.cancelled = threading.Event()


@contextmanager
def mcp_web() -> Iterator[McpWeb]:
    """A server at an address of this machine, while the body runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    web = server.web = McpWeb(server.server_address[:2])  # type: ignore[attr-defined,arg-type]  # for its handlers
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        web: McpWeb = self.server.web  # type: ignore[attr-defined]
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message["method"]
        web.seen.append((method, {name.lower(): value for name, value in self.headers.items()}))
        status, web.status = (web.status, None) if method != "initialize" else (None, web.status)
        if status is not None:
            self.say(status, b"", "text/plain")
        elif "id" in message:
            self.answer(web, {"jsonrpc": "2.0", "id": message["id"]} | _answered(message))
        else:
            self.say(202, b"", "text/plain")
            if method == "notifications/cancelled":
                web.cancelled.set()

    def answer(self, web: McpWeb, answer: dict[str, Any]) -> None:
        """Answers a call; one that hangs is never answered."""
        if answer.get("result", answer) is None:
            web.cancelled.wait(60)
        elif web.streams:
            noise = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
            events = [": a comment\n\n", *(f"event: message\r\ndata: {json.dumps(one)}\r\n\r\n" for one in (noise, answer))]
            self.say(200, "".join(events).encode(), "text/event-stream")
        else:
            self.say(200, json.dumps(answer).encode(), "application/json")

    def say(self, status: int, body: bytes, kind: str) -> None:
        """Writes an answer."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("mcp-session-id", SESSION)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # as the library calls it
        """Says nothing."""


def _answered(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        return {"result": hello()}
    try:
        return {"result": Server().result(message["id"], message["method"], message.get("params", {}))}
    except RefusedError as refused:
        return {"error": {"code": refused.code, "message": str(refused)}}
