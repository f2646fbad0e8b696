"""Programs that serve HTTP: what clients get, what is refused, and what becomes of a request whose client goes."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed

from pie import _engine
from pie.config import Config, EngineConfig, ModelConfig, ServerConfig
from pie.engine import Engine, Program
from pie.programs import load_program
from support.asking import Answer, ask, connect, said_to
from support.command import pie, squeezed, start
from support.engines import started
from support.launching import LANGUAGES, PATIENCE_S, ROOT

PATHS = {
    "python": ROOT / "tests/e2e/answering/answering.py",
    "typescript": ROOT / "tests/e2e/answering/answering.ts",
    "rust": ROOT / "build/programs/answering.wasm",
}
MODES = pytest.mark.parametrize("shared", [False, True], ids=["request", "shared"])
PART_BYTES, N_PARTS = 64 << 10, 1024
# What the buffers of the system and of the server hold between a program and a client that does not read: 8 MiB.
MOST_AHEAD = 128
# More tokens than that.
N_LONG_TOKENS = 512


# Makes each token once somebody asks for it, so that whoever has got the one before has got it as it was made.
TOKENS_ON_DEMAND = """
from inferlet import Context, Model, Sampler, messaging
from inferlet.http_server import Response


async def fetch(request):
    if request.path == "/next":
        messaging.push("next", "go")
    if request.path != "/":
        return Response(status=204)

    async def written():
        with Context(Model.load("default")) as ctx:
            ctx.user("Tell me something without an end.")
            async for step in ctx.generate(Sampler.argmax(), max_tokens=64, ignore_eos=True):
                await messaging.pull("next")
                yield f"<{(await step.execute()).tokens[0]}>"

    return Response(written())
"""


# Writes as many bytes for each token as a part of a flood has.
LONG_WINDED = f"""
from inferlet import Context, Model, Sampler
from inferlet.http_server import Response

n_steps = 0


async def fetch(request):
    if request.path == "/steps":
        return Response.json(n_steps)
    if request.path == "/short":
        with Context(Model.load("default")) as ctx:
            g = ctx.user("Hello").generate(Sampler.argmax(), max_tokens=8, ignore_eos=True)
            return Response.json(await g.collect_tokens())

    async def written():
        global n_steps
        with Context(Model.load("default")) as ctx:
            ctx.user("Tell me something without an end.")
            async for step in ctx.generate(Sampler.argmax(), max_tokens={N_LONG_TOKENS}, ignore_eos=True):
                token = (await step.execute()).tokens[0]
                n_steps += 1
                yield f"<{{token}}>".ljust({PART_BYTES})

    return Response(written())
"""


@dataclass
class Door:
    """A program that serves, and where."""

    server: _engine.Server
    engine: Engine

    @property
    def port(self) -> int:
        return int(self.server.address.rpartition(":")[2])

    def connect(self) -> HTTPConnection:
        return connect(self.port)

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answer:
        """One request over a connection of its own."""
        return ask(self.port, path, method, body, **headers)

    def begin(self, path: str) -> tuple[HTTPConnection, HTTPResponse]:
        """A request whose answer is left to be read."""
        connection = self.connect()
        connection.request("GET", path)
        return connection, connection.getresponse()

    def raw(self, text: str) -> bytes:
        """What comes back for bytes, until the server ends the connection."""
        return said_to(self.port, text)

    def pages(self) -> int:
        return self.engine.models[0].stats()["n_pages_used"]


@contextmanager
def door(folder: Path, path: Path, *, shared: bool, options: dict[str, Any] | None = None, **settings: Any) -> Iterator[Door]:
    """A program that serves on a free port while the body runs; at the end it holds no pages."""
    program: Program = load_program(path)
    config = replace(Config(), server=changed(ServerConfig(), **settings))
    opened = Engine(EngineConfig(data_dir=folder / "data"))
    opened.add_model(options=ModelConfig(driver="dummy"))
    with started(opened):
        place = {"label": "answering", "port": 0, "data_dir": folder, "shared": shared}
        server = opened.serve_program(program, config, **place, **(options or {}))
        try:
            yield Door(server, opened)
        finally:
            server.stop()


@pytest.fixture(scope="module", params=[(language, shared) for language in LANGUAGES for shared in (False, True)])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A program of each language, with an instance for each request and with one for all."""
    language, shared = request.param
    with door(tmp_path_factory.mktemp("serving"), PATHS[language], shared=shared) as opened:
        yield opened


def test_a_program_answers_what_it_is_asked(served: Door) -> None:
    answer = served.ask("/echo?a=1&b=x", "POST", "hello ü".encode(), X_A="own")
    assert answer.status == 201
    assert answer.headers["x-own"].encode("latin-1") == "ü".encode("latin-1")
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.body) == {"method": "POST", "path": "/echo", "query": {"a": "1", "b": "x"}, "header": "own", "body": "hello ü"}
    assert served.ask("/nowhere").status == 404
    empty = served.ask("/empty")
    assert (empty.status, empty.body) == (204, b"")
    head = served.ask("/echo", "HEAD")
    assert (head.status, head.body) == (201, b"")


def test_the_first_part_comes_before_the_last_is_made(served: Door) -> None:
    connection, response = served.begin("/stream")
    with closing(connection):
        assert response.read1(100) == b"one"
        assert served.ask("/go").body == b"going"
        assert response.read() == b"two"


def test_events_are_sent_as_pages_read_them(served: Door) -> None:
    answer = served.ask("/events")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.body == b'data: {"n":1}\n\nevent: text\ndata: a\ndata: b\n\n'


def test_a_body_comes_part_by_part(served: Door) -> None:
    parts = (b"x" * 50_000 for _ in range(20))
    with closing(served.connect()) as connection:
        connection.request("POST", "/length", body=parts, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        assert json.loads(connection.getresponse().read()) == 1_000_000
        # The connection is there for another request.
        connection.request("POST", "/length", body=b"abc")
        assert json.loads(connection.getresponse().read()) == 3


def test_a_page_whose_name_was_made_to_lead_here_is_refused(served: Door) -> None:
    for host in (f"evil.example:{served.port}", "127.0.0.1.evil.example"):
        answer = served.ask("/count", Host=host)
        assert (answer.status, answer.code) == (403, "forbidden-origin")
        assert b"server.host_names" in answer.body
    # Tunnels have ports of their own.
    assert served.ask("/count", Host="localhost:9").status == 200


def test_what_fails_before_the_answer_is_an_error_without_its_words(served: Door) -> None:
    answer = served.ask("/fail")
    assert (answer.status, answer.code) == (500, "http-no-answer")
    assert b"no answer comes of this" not in answer.body


def test_what_fails_within_the_answer_breaks_it_off(served: Door) -> None:
    connection, response = served.begin("/broken")
    with closing(connection), pytest.raises(IncompleteRead) as broken:
        response.read()
    assert broken.value.partial == b"one"


@MODES
def test_each_request_has_an_instance_or_all_have_one(tmp_path: Path, shared: bool) -> None:
    with door(tmp_path, PATHS["python"], shared=shared) as opened:
        assert [json.loads(opened.ask("/count").body) for _ in range(3)] == ([1, 2, 3] if shared else [1, 1, 1])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_that_goes_ends_the_work_on_its_answer(tmp_path: Path, language: str) -> None:
    with door(tmp_path, PATHS[language], shared=True) as opened:
        connection, response = opened.begin("/tokens")
        assert response.read1(100)
        assert opened.pages() > 0
        connection.close()
        response.close()
        assert opened.ask("/gone").body == b"it has"
        # A batch that runs keeps its pages until it is done, for which each answer gives it time.
        while opened.pages() > 0:
            assert opened.ask("/count").status == 200


@MODES
def test_each_token_comes_as_it_is_made_and_a_cut_frees_its_pages(tmp_path: Path, shared: bool) -> None:
    (tmp_path / "app.py").write_text(TOKENS_ON_DEMAND)
    with door(tmp_path, tmp_path / "app.py", shared=shared) as opened:
        client = socket.create_connection(("127.0.0.1", opened.port), timeout=PATIENCE_S)
        with closing(client):
            client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            received = b""
            for n_tokens in range(1, 9):
                assert opened.ask("/next").status == 204
                while received.count(b">") < n_tokens:
                    part = client.recv(1 << 16)
                    assert part, received
                    received += part
                assert received.count(b">") == n_tokens
            assert received.startswith(b"HTTP/1.1 200 OK\r\n")
            assert opened.pages() > 0
            # Cut off, and not ended.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Each answer gives the server time to see that.
        while opened.pages() > 0:
            assert opened.ask("/still").status == 204


def test_a_client_that_goes_ends_the_instance_of_its_request(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=False, http_program_requests=1, max_processes_per_user=1) as opened:
        connection, response = opened.begin("/tokens")
        assert response.read1(100)
        connection.close()
        response.close()
        # There is one place for a process, which the next request waits for.
        answer = opened.ask("/count")
        while answer.status == 503:
            answer = opened.ask("/count")
        assert json.loads(answer.body) == 1
        assert opened.pages() == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_slow_reader_holds_its_program_up(tmp_path: Path, language: str) -> None:
    with door(tmp_path, PATHS[language], shared=True) as opened, closing(opened.connect()) as connection:
        connection.request("GET", "/flood")
        response = connection.getresponse()
        assert response.read(1) == b"x"
        # Each answer gives the program time to write, of which it makes no use.
        written = [json.loads(opened.ask("/parts").body) for _ in range(100)]
        assert written[-1] <= MOST_AHEAD
        n_bytes = 1
        while part := response.read(1 << 20):
            n_bytes += len(part)
        assert n_bytes == N_PARTS * PART_BYTES


def test_a_slow_reader_stops_the_generation(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LONG_WINDED)
    with door(tmp_path, tmp_path / "app.py", shared=True) as opened, closing(opened.connect()) as connection:
        connection.request("GET", "/")
        response = connection.getresponse()
        assert response.read(1) == b"<"
        seen, n_same = (0, 0), 0
        while n_same < 100:
            # Each answer gives the program time for a step, of which it makes no use once nobody takes what it says.
            found = (opened.ask("/steps").value, opened.engine.models[0].stats()["n_rows"])
            seen, n_same = found, n_same + 1 if found == seen else 0
        n_steps, _ = seen
        assert 1 <= n_steps <= MOST_AHEAD
        # The steps of others go on.
        assert len(opened.ask("/short").value) == 8
        assert opened.ask("/steps").value == n_steps
        body = b"<" + response.read()
        assert (body.count(b"<"), len(body)) == (N_LONG_TOKENS, N_LONG_TOKENS * PART_BYTES)
        assert opened.ask("/steps").value == N_LONG_TOKENS


def test_requests_are_answered_as_the_user_who_is_named(tmp_path: Path) -> None:
    program = tmp_path / "who.py"
    program.write_text(
        "from inferlet import runtime\nfrom inferlet.http_server import Response\n\n\n"
        "async def fetch(request):\n    return Response(runtime.username())\n"
    )
    for user in ("anonymous", "ann"):
        folder = tmp_path / user
        folder.mkdir()
        with door(folder, program, shared=False, options={} if user == "anonymous" else {"username": user}) as opened:
            assert opened.ask("/").body == user.encode()


def test_a_head_is_bounded(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True, http_header_bytes=8192) as opened:
        answer = opened.ask("/echo", X_Long="x" * 9000)
        assert (answer.status, answer.code) == (431, "limit-http-headers")
        assert b"server.http_header_bytes = 8192" in answer.body
        # What is far longer is not read to its end.
        assert opened.raw(f"GET /echo HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 100_000}\r\n").startswith(b"HTTP/1.1 431 ")
        assert opened.ask("/count").status == 200


def test_a_body_is_bounded(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True, http_body_bytes=1000) as opened:
        answer = opened.ask("/length", "POST", b"x" * 1001)
        assert (answer.status, answer.code) == (413, "limit-http-bytes")
        chunked = "POST /length HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + f"1f4\r\n{'x' * 500}\r\n" * 3
        said = opened.raw(chunked)
        assert said.startswith(b"HTTP/1.1 413 ")
        assert b"limit-http-bytes" in said
        assert json.loads(opened.ask("/length", "POST", b"x" * 1000).body) == 1000


def test_requests_at_once_are_bounded(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True, http_program_requests=1) as opened:
        connection, response = opened.begin("/stream")
        with closing(connection):
            assert response.read1(100) == b"one"
            answer = opened.ask("/count")
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "limit-http-requests", "1")
            assert b"server.http_program_requests = 1" in answer.body


def test_whoever_runs_one_program_has_all_places(tmp_path: Path) -> None:
    """There are no other users, for whom some would be kept."""
    most = door(tmp_path, PATHS["python"], shared=True, http_program_requests=8, http_user_requests=8, http_requests=4)
    with most as opened, ExitStack() as held:
        for _ in range(4):
            connection, response = opened.begin("/stream")
            held.enter_context(closing(connection))
            assert response.read1(100) == b"one"
        answer = opened.ask("/count")
        assert (answer.status, answer.code) == (503, "limit-http-requests")
        assert b"4 HTTP requests to all programs are under way, of at most server.http_requests = 4" in answer.body


def test_a_connection_without_a_place_is_refused_before_its_request_is_read(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True, max_address_connections=1) as opened, closing(opened.connect()) as kept:
        kept.request("GET", "/count")
        assert kept.getresponse().read()
        # A head that never ends would hold what no place counts.
        said = opened.raw("GET /count HTTP/1.1\r\nX: ")
        assert said.startswith(b"HTTP/1.1 503 "), said
        assert b"limit-connections" in said


def test_an_answer_has_a_time(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True, http_answer_s=2) as opened:
        answer = opened.ask("/silent")
        assert (answer.status, answer.code) == (504, "limit-http-time")
        assert opened.ask("/count").status == 200


def test_an_answer_that_nobody_reads_has_a_time(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True, http_program_requests=1, http_s=2, http_idle_s=600) as opened:
        connection, response = opened.begin("/flood")
        with closing(connection):
            assert response.read(1) == b"x"
            # Its place is given back, though the client stays.
            answer = opened.ask("/count")
            while answer.status == 503:
                answer = opened.ask("/count")
            assert answer.status == 200


def test_who_drips_is_given_up(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True, http_idle_s=0.2, handshake_timeout_s=0.2) as opened:
        assert opened.raw("GET /count HTTP/1.1\r\nHost:") == b""
        said = opened.raw("POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"limit-http-time" in said
        # The program is cancelled, or meets the error where it reads: it answers others in any case.
        assert opened.ask("/count").status == 200


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", b"400"),
        ("POST /length HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: x, y\r\n\r\nabcd", b"400"),
        ("GET /count HTTP/1.1\r\nHost : a\r\n\r\n", b"400"),
        ("GET /count\r\n\r\n", b"400"),
        ("\x16\x03\x01", b"400"),  # the beginning of TLS
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"405"),
    ],
)
def test_what_is_not_http_is_refused(served: Door, request_text: str, status: bytes) -> None:
    said = served.raw(request_text)
    assert said.split(b" ")[1:2] == [status], said


def test_a_websocket_is_refused_by_name(served: Door) -> None:
    answer = served.ask("/echo", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version="13", Sec_WebSocket_Key="x" * 24)
    assert (answer.status, answer.code) == (501, "websocket-unsupported")


def test_a_server_that_ends_lets_answers_end(tmp_path: Path) -> None:
    with door(tmp_path, PATHS["python"], shared=True) as opened:
        connection, response = opened.begin("/stream")
        with closing(connection), closing(opened.connect()) as other:
            assert response.read1(100) == b"one"
            other.request("GET", "/go")
            assert other.getresponse().read() == b"going"
            opened.server.begin_drain()
            assert response.read() == b"two"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_command_serves_a_program(language: str) -> None:
    with start(["run", str(PATHS[language]), "--dummy", "--port", "0"]) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving answering at http://127.0.0.1:"), (line, process.stderr)
        port = int(line.strip().strip("/").rpartition(":")[2])
        assert ask(port, "/count").value == 1
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors


def test_what_a_handler_raises_is_told_with_the_lines_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text("from inferlet import Context\nasync def fetch(request):\n    Context('no model')\n")
    with start(["run", "failing.py", "--dummy", "--port", "0"], tmp_path) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().strip("/").rpartition(":")[2])
        assert ask(port, "/").status == 500
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert 'File "failing.py", line 3, in fetch' in errors
    assert "invalid-argument" in errors or "it must be a Model" in errors
    assert "http_server.py" not in errors


def test_what_a_handler_throws_that_cannot_be_described_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "failing.js").write_text("export default { fetch() { throw { stack: { toString: 0 } }; } };\n")
    with start(["run", "failing.js", "--dummy", "--port", "0"], tmp_path) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().strip("/").rpartition(":")[2])
        assert [ask(port, "/").status for _ in range(2)] == [500, 500]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert 'the program threw {"stack":{"toString":0}}, which is not an Error' in errors


def test_a_stream_that_fails_is_told_once_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "streaming.py").write_text(
        "from inferlet.http_server import Response\nasync def word(): return 'b'\n"
        "async def words():\n    yield 'a'\n    yield 'a' + word()\n"
        "async def fetch(request):\n    return Response(words())\n"
    )
    with start(["run", "streaming.py", "--dummy", "--port", "0"], tmp_path) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().strip("/").rpartition(":")[2])
        with suppress(IncompleteRead, OSError):
            ask(port, "/")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert "did you forget `await`?" in errors
    assert errors.count("can only concatenate str") == 1, errors


def test_a_program_is_served_beside_a_server_that_keeps_files(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text(
        "from inferlet import files\nfrom inferlet.http_server import Response\n"
        "async def fetch(request):\n    try:\n        open('/scratch/a', 'w')\n    except OSError:\n"
        "        return Response(files.refusal().code)\n    return Response('kept')\n"
    )
    data = {"PIE_ENGINE__DATA_DIR": str(tmp_path / "data")}
    with start(["serve", "--dummy", "--port", "0"], tmp_path, **data) as server:
        assert server.stdout is not None
        while "serving at" not in (line := server.stdout.readline()):
            assert line, server.stderr
        with start(["run", "room.py", "--dummy", "--port", "0"], tmp_path, **data) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("serving room at http://"), line
            port = int(line.strip().strip("/").rpartition(":")[2])
            assert ask(port, "/").body == b"files-off"
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE_S)


def test_a_program_that_serves_says_so_where_nobody_asks(tmp_path: Path) -> None:
    (tmp_path / "serving.py").write_text(
        "from inferlet import http_server\nasync def main():\n    await http_server.serve(lambda _: None)\n"
    )
    done = pie("run", "serving.py", "--dummy", cwd=tmp_path)
    assert done.returncode == 1
    assert "error[not-serving]" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "a.py", "--shared"), "--port"),
        (("run", "a.py", "--port", "0", "--server", "ws://127.0.0.1:1"), "--http"),
        (("install", "a.py", "--public"), "--http"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple[str, ...], said: str) -> None:
    done = pie(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_arguments_that_no_handler_reads_are_refused(tmp_path: Path) -> None:
    (tmp_path / "api.py").write_text(
        "from inferlet.http_server import Request, Response\nasync def fetch(request: Request) -> Response:\n    return Response('hi')\n"
    )
    done = pie("run", "api.py", "--dummy", "--port", "0", "--", "--name", "Ada", cwd=tmp_path)
    assert done.returncode == 2
    said = squeezed(done.stderr)
    assert squeezed("Invalid value for -- --name: `fetch` is not given them") in said, done.stderr
    assert squeezed("leave them out with --port") in said, done.stderr


HANDLER = ROOT / "build/programs/wasi_server.wasm"


@MODES
def test_a_component_that_exports_the_handler_of_wasi_answers(tmp_path: Path, shared: bool) -> None:
    with door(tmp_path, HANDLER, shared=shared) as opened:
        answer = opened.ask("/echo", "POST", "hello ü".encode(), X_A="own")
        assert (answer.status, answer.body.decode()) == (201, "POST own hello ü")
        assert opened.ask("/through", "POST", b"x" * 1_000_000).body == b"x" * 1_000_000
        assert opened.ask("/nowhere").status == 404
        failed = opened.ask("/fail")
        assert (failed.status, failed.code) == (500, "http-no-answer")
        counts = [int(opened.ask("/count").body) for _ in range(2)]
        assert counts == ([5, 6] if shared else [1, 1])


def test_a_component_is_given_up_with_a_client_that_goes(tmp_path: Path) -> None:
    with door(tmp_path, HANDLER, shared=True) as opened:
        with closing(opened.connect()) as connection:
            # It waits for the rest of the body.
            connection.putrequest("POST", "/through")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
            connection.send(b"3\r\none\r\n")
            response = connection.getresponse()
            assert response.read1(100) == b"one"
        response.close()
        assert int(opened.ask("/count").body) == 1


def test_a_handler_is_for_requests_alone(tmp_path: Path) -> None:
    done = pie("run", str(HANDLER), "--dummy")
    assert done.returncode == 1
    assert "error[not-serving]" in done.stderr, done.stderr


EXAMPLES = {
    "chat_room": ROOT / "examples/python/chat_room.py",
    "json_api": ROOT / "examples/typescript/json_api.ts",
    "webhook": ROOT / "build/programs/webhook.wasm",
}


@contextmanager
def example(folder: Path, name: str, *, shared: bool = False, **options: Any) -> Iterator[Door]:
    """An example on the dummy driver."""
    with door(folder, EXAMPLES[name], shared=shared, options=options) as opened:
        yield opened


def test_the_example_of_an_api_takes_and_gives_json(tmp_path: Path) -> None:
    with example(tmp_path, "json_api") as opened:
        answer = opened.ask("/titles", "POST", json.dumps({"text": "A fox met a hen."}))
        assert answer.status == 200
        assert isinstance(json.loads(answer.body)["title"], str)
        for body in ("{", "[]", json.dumps({"text": "x" * 5000})):
            assert opened.ask("/titles", "POST", body).status == 400
        assert opened.ask("/titles").status == 404


def test_the_example_of_a_room_lets_everybody_hear_everybody(tmp_path: Path) -> None:
    with example(tmp_path, "chat_room", shared=True) as opened:
        hearing = [opened.begin("/events") for _ in range(2)]
        heard = [response for _, response in hearing]
        assert [response.readline() for response in heard] == [b"event: joined\n"] * 2
        said = json.dumps({"from": "ada", "text": "hello"})
        assert opened.ask("/messages", "POST", said).status == 204
        for response in heard:
            lines = iter(response.readline, b'data: {"from":"ada","text":"hello"}\n')
            assert all(line != b"" for line in lines)
        assert opened.ask("/messages", "POST", json.dumps({"from": "ada", "text": "bot, hello"})).status == 204
        for connection, response in hearing:
            lines = iter(response.readline, b"")
            assert any(line.startswith(b'data: {"from":"bot"') for line in lines)
            connection.close()
            response.close()


def test_the_example_of_a_webhook_labels_what_comes_with_its_secret(tmp_path: Path) -> None:
    with example(tmp_path, "webhook", input={"secret": "s3cret"}) as opened:
        ticket = json.dumps({"subject": "Help", "text": "The door does not open."})
        answer = opened.ask("/", "POST", ticket, X_Webhook_Secret="s3cret")
        assert answer.status == 200, answer.body
        assert json.loads(answer.body)["label"] in {"question", "fault", "thanks"}
        assert opened.ask("/", "POST", ticket, X_Webhook_Secret="other").status == 401
        assert opened.ask("/", "POST", "{}", X_Webhook_Secret="s3cret").status == 400
        assert opened.ask("/").status == 405


PAGE = (ROOT / "docs/guide/serving-http.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```(python|typescript)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_the_snippets_of_the_guide_answer(tmp_path: Path, number: int) -> None:
    language, text = SNIPPETS[number]
    path = tmp_path / ("page.py" if language == "python" else "page.ts")
    path.write_text(text)
    with door(tmp_path, path, shared=False) as opened:
        answer = opened.ask("/", "POST", json.dumps({"text": "What is a fox?"}))
        assert answer.status == 200, answer.body
        assert answer.headers["content-type"] in {"application/json", "text/event-stream"}
