"""A server of this machine for programs to ask: well-behaved and hostile answers by path."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.price_server import PRICES

PATIENCE_S = 60.0
OWN = "X-Own: ü\r\n"


class Web(socketserver.ThreadingTCPServer):
    """Answers each connection once. `go` is set by a request to `/go`; `gone` by a client that has left."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.go = threading.Event()
        self.gone = threading.Semaphore(0)
        self.requests: list[str] = []
        self.together = threading.Barrier(4)

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def web() -> Iterator[Web]:
    """A server that is there within the `with`."""
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.go.set()
            server.shutdown()


class _Handler(socketserver.StreamRequestHandler):
    server: Web
    timeout = PATIENCE_S

    def handle(self) -> None:
        # What begins so is a client that wants TLS.
        if self.rfile.peek(1)[:1] == b"\x16":
            return
        line = self.rfile.readline().decode("latin-1").strip()
        headers: dict[str, str] = {}
        while (header := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        if not line:
            return
        method, path, _ = line.split(" ")
        self.server.requests.append(f"{method} {path}")
        name = path.split("?")[0].strip("/").split("/")[0] or "index"
        try:
            getattr(self, f"do_{name}")(method, path, headers)
        except (ConnectionError, TimeoutError):
            self.server.gone.release()

    def body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        parts = []
        while (length := int(self.rfile.readline() or self.left(), 16)) > 0:
            parts.append(self.rfile.read(length))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def left(self) -> bytes:
        """The client has left before its body was complete."""
        raise ConnectionResetError

    def say(self, text: str) -> None:
        self.wfile.write(text.encode("latin-1"))

    def answer(self, body: str | bytes, status: str = "200 OK", headers: str = "") -> None:
        content = body if isinstance(body, bytes) else body.encode()
        self.say(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(content)}\r\n\r\n")
        self.wfile.write(content)

    def wait_until_gone(self) -> None:
        while self.rfile.read(1):
            pass
        self.server.gone.release()

    def do_index(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.answer("hello ü", headers=OWN)

    def do_echo(self, method: str, path: str, headers: dict[str, str]) -> None:
        body = self.body(headers).decode()
        self.answer(
            json.dumps({"method": method, "path": path, "headers": headers, "body": body}), headers="Content-Type: application/json\r\n"
        )

    def do_go(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.server.go.set()
        self.answer("going")

    def do_items(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.do_echo(method, path, headers)

    def do_stream(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.answer("data: one\ndata: two\n", headers="Content-Type: text/event-stream\r\n")

    def do_held(self, method: str, path: str, headers: dict[str, str]) -> None:
        """The second part comes once the client has said that it got the first."""
        self.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        assert self.server.go.wait(PATIENCE_S)
        self.say("3\r\ntwo\r\n0\r\n\r\n")

    def do_lines(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.answer("data: ü\r\ndata: b\rdata: c\n", headers="Content-Type: text/event-stream; charset=utf-8\r\n")

    def do_prices(self, method: str, path: str, headers: dict[str, str]) -> None:
        """The shop of the agent in `examples/`."""
        item = path.rpartition("/")[2]
        known = item in PRICES
        answer = {"price": PRICES[item]} if known else {"error": f"there is no {item}"}
        self.answer(json.dumps(answer), "200 OK" if known else "404 Not Found", "Content-Type: application/json\r\n")

    def do_together(self, method: str, path: str, headers: dict[str, str]) -> None:
        """Answers when four have asked."""
        self.server.together.wait(PATIENCE_S)
        self.answer("")

    def do_moved(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.answer("", "302 Found", "Location: /\r\n")

    def do_inwards(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.answer("", "302 Found", "Location: http://169.254.169.254/latest\r\n")

    def do_circle(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.answer("", "302 Found", "Location: /circle\r\n")

    def do_status(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.answer("", f"{path.rpartition('/')[2]} Whatever")

    def do_hang(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.wait_until_gone()

    def do_endless(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.say("HTTP/1.1 200 OK\r\n\r\n")
        while True:
            self.wfile.write(b"x" * 65536)

    def do_drip(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.say("HTTP/1.1 200 OK\r\n\r\n")
        while not self.server.go.wait(0.02):
            self.wfile.write(b"x")

    def do_short(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

    def do_head10mb(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.say("HTTP/1.1 200 OK\r\nX: " + "a" * (10 << 20) + "\r\n\r\n")

    def do_nonsense(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.say("SSH-2.0-OpenSSH_9\r\n")

    def do_two_lengths(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
