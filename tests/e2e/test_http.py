"""Programs that ask servers by HTTP: what they get, what is refused, and what a hostile server does to nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pie.config import EngineConfig, ModelConfig, RuntimeConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.programs import Component, Source, load_program
from support.command import pie
from support.engines import started
from support.launching import LANGUAGES, ROOT, Outcome, finish, python_source, typescript_source
from support.web import PATIENCE_S, Web, web

PATHS = {
    "python": ROOT / "tests/e2e/asking/asking.py",
    "typescript": ROOT / "tests/e2e/asking/asking.ts",
    "rust": ROOT / "build/programs/asking.wasm",
    "wstd": ROOT / "build/programs/wasi_client.wasm",
}


def program(language: str) -> Component | Source:
    return load_program(PATHS[language])


@contextmanager
def engine(data: Path, limits: dict[str, Any] | None = None, **settings: Any) -> Iterator[Engine]:
    """An engine that allows what a test says."""
    opened = Engine(EngineConfig(data_dir=data), limits=limits, runtime=RuntimeConfig(**settings))
    opened.add_model(options=ModelConfig(driver="dummy"))
    with started(opened):
        yield opened


@pytest.fixture(scope="module")
def open_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine whose programs may ask this machine by its address."""
    with engine(tmp_path_factory.mktemp("data"), allow_net=("127.0.0.1",)) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[Web]:
    with web() as opened:
        yield opened


def run(opened: Engine, language: str, task: str, *, limits: dict[str, Any] | None = None, **arguments: Any) -> Outcome:
    return finish(opened.launch(program(language), input={"do": task} | arguments, seed=7, username="ada", limits=limits))


@pytest.mark.rows("PY-205 JS-212")
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_answer_is_the_same_in_every_language(open_engine: Engine, server: Web, language: str) -> None:
    outcome = run(open_engine, language, "get", url=f"{server.url}/x/../#part")
    assert outcome.value == [200, "OK", True, f"{server.url}/", False, "ü", "hello ü"], outcome.message
    outcome = run(open_engine, language, "get", url=f"{server.url}/moved")
    assert outcome.value == [200, "OK", True, f"{server.url}/", True, "ü", "hello ü"]


def test_forms_blobs_and_parameters_are_bodies(open_engine: Engine, server: Web) -> None:
    outcome = run(open_engine, "typescript", "forms", url=f"{server.url}/")
    form = (
        '------pie-form-x\r\nContent-Disposition: form-data; name="text"\r\n\r\nü\r\n'
        '------pie-form-x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\na\r\nb\r\n'
        "------pie-form-x--\r\n"
    )
    assert outcome.value == [
        ["multipart/form-data", form],
        ["a/b", "x"],
        ["application/x-www-form-urlencoded", "q=a+b%26c"],
    ], outcome.message


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_request_is_what_the_program_says(open_engine: Engine, server: Web, language: str) -> None:
    value = {"a": [1, None, "ü"]}
    outcome = run(open_engine, language, "echo", url=f"{server.url}/echo?q=1", value=value)
    assert outcome.value == {
        "method": "POST",
        "path": "/echo?q=1",
        "headers": {
            "host": f"127.0.0.1:{server.port}",
            "connection": "close",
            "x-a": "ü",
            "content-type": "application/json",
            "content-length": "19",
        },
        "body": '{"a":[1,null,"ü"]}',
    }, outcome.message


@pytest.mark.parametrize("language", LANGUAGES)
def test_bodies_stream_both_ways(open_engine: Engine, server: Web, language: str) -> None:
    outcome = run(open_engine, language, "stream", url=f"{server.url}/held", go=f"{server.url}/go")
    assert outcome.value == ["one", "two"], outcome.message
    assert run(open_engine, language, "lines", url=f"{server.url}/lines").value == ["data: ü", "data: b", "data: c"]
    assert run(open_engine, language, "upload", url=f"{server.url}/echo").value == "onetwothree"
    limits = {"http_sent_bytes": 1000}
    assert run(open_engine, language, "too_long", url=f"{server.url}/echo", limits=limits).value == "limit-http-bytes"


@pytest.mark.parametrize("language", LANGUAGES)
def test_requests_overlap(open_engine: Engine, server: Web, language: str) -> None:
    assert run(open_engine, language, "together", url=f"{server.url}/together", n=4).value == 800


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_says_what_becomes_of_redirects(open_engine: Engine, server: Web, language: str) -> None:
    assert run(open_engine, language, "redirects", url=f"{server.url}/moved").value == [302, "/", "http-redirects"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_has_its_code(open_engine: Engine, server: Web, language: str) -> None:
    urls = {
        f"{server.url}/": None,
        f"{server.url}/status/500": None,
        f"http://localhost:{server.port}/": "net-denied",
        "http://169.254.169.254/latest/meta-data": "net-denied",
        f"{server.url}/inwards": "net-denied",
        "http://127.0.0.1:1/": "net-unreachable",
        f"https://127.0.0.1:{server.port}/": "net-unreachable",
        f"{server.url}/circle": "http-redirects",
        f"{server.url}/short": "http-protocol",
        f"{server.url}/nonsense": "http-protocol",
        f"{server.url}/two_lengths": "http-protocol",
        f"{server.url}/head10mb": "limit-http-headers",
        f"{server.url}/endless": "limit-http-bytes",
        "ftp://127.0.0.1/": "invalid-argument",
        "no url": "invalid-argument",
    }
    outcome = run(open_engine, language, "codes", urls=list(urls), limits={"http_received_bytes": 1 << 20})
    assert dict(zip(urls, outcome.value or (), strict=True)) == urls, outcome.message


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_server_that_hangs_or_drips_is_given_up(open_engine: Engine, server: Web, language: str) -> None:
    limits = {"http_first_byte_s": 0.1, "http_s": 0.3}
    outcome = run(open_engine, language, "codes", urls=[f"{server.url}/hang", f"{server.url}/drip"], limits=limits)
    assert outcome.value == ["limit-http-time", "limit-http-time"], outcome.message
    assert run(open_engine, language, "in_time", url=f"{server.url}/hang").value == "limit-http-time"
    assert [server.gone.acquire(timeout=PATIENCE_S) for _ in range(2)] == [True, True]


def test_a_request_that_nothing_awaits_is_told_in_javascript(open_engine: Engine, server: Web) -> None:
    lines = {
        "fetch(url);": "program-error",
        "(async () => { await (await fetch(url)).text(); })();": "program-error",
        "fetch(url).catch(() => {});": None,
        "await Promise.race([fetch(url), Promise.resolve()]);": None,
    }
    for line, code in lines.items():
        source = typescript_source(f"export async function main({{ url }}: {{ url: string }}) {{\n  {line}\n}}\n")
        outcome = finish(open_engine.launch(source, input={"url": f"{server.url}/hang"}))
        assert outcome.code == code, (line, outcome.message)
        if code is not None:
            assert "nothing awaited that; write `await` before its call" in str(outcome.message)
            assert "main.ts:2:" in "".join(outcome.stderr)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_request_that_is_given_up_frees_its_connection(open_engine: Engine, server: Web, language: str) -> None:
    outcome = run(open_engine, language, "give_up", url=server.url)
    assert outcome.value == "gave up", outcome.message
    assert [server.gone.acquire(timeout=PATIENCE_S) for _ in range(2)] == [True, True]


@pytest.mark.parametrize("language", [*LANGUAGES, "wstd"])
def test_nothing_is_asked_unless_the_operator_allows_it(tmp_path: Path, server: Web, language: str) -> None:
    with engine(tmp_path) as opened:
        if language == "wstd":
            outcome = finish(opened.launch(program(language), input={"method": "GET", "url": server.url, "body": ""}))
        else:
            outcome = run(opened, language, "uncaught", url=f"{server.url}/")
    assert outcome.code == "net-denied", outcome.message
    assert f"127.0.0.1:{server.port}" in outcome.message
    assert f"pie run --allow-net 127.0.0.1:{server.port}" in outcome.message
    assert f'allow_net = ["127.0.0.1:{server.port}"] in [runtime]' in outcome.message
    assert server.requests == []


def test_a_port_is_part_of_what_is_allowed(tmp_path: Path, server: Web) -> None:
    with web() as other, engine(tmp_path, allow_net=(f"127.0.0.1:{server.port}", f"localhost:{other.port}")) as opened:
        urls = [server.url, other.url, f"http://localhost:{other.port}/", f"http://localhost:{server.port}/"]
        assert run(opened, "python", "codes", urls=urls).value == [None, "net-denied", None, "net-denied"]


def test_what_is_no_list_of_servers_is_refused(tmp_path: Path) -> None:
    for entry in ("http://a.example/", "a b", "", "a:0", "1.2.3.4/64"):
        with pytest.raises(PieError, match="allow_net") as refused, engine(tmp_path, allow_net=(entry,)):
            pass
        assert refused.value.code == "invalid-config"
    with pytest.raises(PieError, match="net_ca_file"), engine(tmp_path, net_ca_file=str(tmp_path / "none.pem")):
        pass


def test_the_command_allows_servers_by_name(server: Web) -> None:
    given = json.dumps({"do": "uncaught", "url": f"{server.url}/"})
    allowed = pie("run", str(PATHS["python"]), "--dummy", "--allow-net", f"127.0.0.1:{server.port}", "--input", given)
    assert (allowed.returncode, allowed.stdout.strip()) == (0, "hello ü"), allowed.stderr
    denied = pie("run", str(PATHS["python"]), "--dummy", "--allow-net", "*", "--input", given)
    assert denied.returncode == 1
    assert "net-denied" in denied.stderr
    assert f"pie run --allow-net 127.0.0.1:{server.port}" in denied.stderr.replace("\n", " ")
    wrong = pie("run", str(PATHS["python"]), "--dummy", "--allow-net", "http://a.example", "--input", given)
    assert wrong.returncode != 0
    assert "allow" in wrong.stderr
    remote = pie("run", str(PATHS["python"]), "--server", "127.0.0.1:1", "--allow-net", "a.example")
    assert (remote.returncode, "allow_net in" in remote.stderr) == (2, True), remote.stderr


@pytest.mark.parametrize("how", ["GET", "POST"])
def test_a_client_of_its_own_goes_the_same_way(open_engine: Engine, server: Web, how: str) -> None:
    ask = program("wstd")

    def asked(path: str, body: str = "", **more: Any) -> Outcome:
        return finish(
            open_engine.launch(ask, input={"method": how, "url": server.url + path, "body": body} | more, limits={"http_s": 20.0})
        )

    outcome = asked("/echo?q=1", "ü" * 100_000 if how == "POST" else "")
    assert outcome.code is None, outcome.message
    status, location, _ = outcome.value
    assert (status, location) == (200, None)
    assert server.requests == [f"{how} /echo?q=1"]
    # What sends the request on is an answer: nothing is followed behind the back of such a client.
    assert asked("/moved").value[:2] == [302, "/"]
    for path, code in (("/short", "http-protocol"), ("/head10mb", "limit-http-headers"), ("/nonsense", "http-protocol")):
        assert asked(path).code == code
    denied = finish(open_engine.launch(ask, input={"method": how, "url": "http://169.254.169.254/", "body": ""}))
    assert denied.code == "net-denied"
    # Heads that are kept are charged, and end with their handles.
    assert asked("/", n=20).code is None


def test_a_program_has_a_number_of_requests_at_once_and_so_has_a_user(tmp_path: Path, server: Web) -> None:
    source = python_source("""
import asyncio
from inferlet import InferletError, http

async def main(input):
    asking = [asyncio.ensure_future(http.get(input["url"] + "/hang")) for _ in range(input["n"])]
    done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_EXCEPTION)
    return done.pop().exception().code
""")
    with engine(tmp_path, {"http_requests": 4}, allow_net=("127.0.0.1",), net_user_requests=3) as opened:
        outcome = finish(opened.launch(source, input={"url": server.url, "n": 4}, username="ada"))
        assert outcome.value == "limit-http-requests"
        # What the process held has ended with it.
        outcome = finish(opened.launch(source, input={"url": server.url, "n": 4}, username="ada"))
        assert outcome.value == "limit-http-requests", outcome.message


def test_others_are_served_while_servers_are_hostile(open_engine: Engine, server: Web) -> None:
    urls = [f"{server.url}/{name}" for name in ("head10mb", "endless", "nonsense", "short", "circle", "two_lengths")] * 3
    limits = {"http_received_bytes": 1 << 20}
    attackers = [
        open_engine.launch(program("python"), input={"do": "codes", "urls": urls}, username=f"mallory{n}", limits=limits) for n in range(4)
    ]
    for _ in range(3):
        assert run(open_engine, "python", "get", url=server.url).value[0] == 200
    for attacker in attackers:
        assert None not in finish(attacker).value


def test_a_process_that_ends_ends_its_requests(open_engine: Engine, server: Web) -> None:
    source = python_source("""
from inferlet import _exchange, http

def main(input):
    kept = [_exchange.Exchange("GET", input + "/hang", (), None) for _ in range(3)]
    with http.stream("GET", input):
        return len(kept)
""")
    assert finish(open_engine.launch(source, input=server.url)).value == 3
    for _ in range(sum(request.endswith("/hang") for request in server.requests)):
        assert server.gone.acquire(timeout=PATIENCE_S)


def test_python_outside_of_a_loop_blocks(open_engine: Engine, server: Web) -> None:
    server.go.set()
    outcome = finish(
        open_engine.launch(
            python_source("""
from inferlet import http

def main(url):
    response = http.get(url, params={"q": ["a b", "c"], "none": None})
    assert response.url.endswith("/?q=a+b&q=c"), response.url
    with http.stream("GET", url + "/held") as streamed:
        parts = b"".join(streamed)
    with http.stream("GET", url + "/lines") as streamed:
        lines = list(streamed.lines_now())
    uploaded = http.post(url + "/echo", body=["one", b"two"]).json()["body"]
    try:
        http.get(url + "/status/404").raise_for_status()
    except http.StatusError as error:
        status = error.response.status
    return [response.text, parts.decode(), lines, uploaded, status]
"""),
            input=server.url,
        )
    )
    assert outcome.value == ["hello ü", "onetwo", ["data: ü", "data: b", "data: c"], "onetwo", 404], outcome.traceback


def test_javascript_has_the_parts_of_fetch(open_engine: Engine, server: Web) -> None:
    outcome = finish(
        open_engine.launch(
            typescript_source("""
export async function main(url: string) {
  const request = new Request(`${url}/echo`, { method: 'put', body: 'ü', headers: [['a', '1'], ['A', '2']] });
  const copy = request.clone();
  const response = await fetch(request);
  const again = response.clone();
  const seen = (await response.json()) as { method: string; headers: Record<string, string>; body: string };
  const bytes = await again.bytes();
  const made = Response.json({ a: 1 }, { status: 201 });
  const used = await response.text().catch((error: unknown) => (error as Error).name);
  const aborted = await fetch(url, { signal: AbortSignal.abort('no') }).catch((error: unknown) => error);
  const head = await fetch(url, { method: 'HEAD' });
  return [seen.method, seen.headers['a'], seen.body, seen.headers['content-type'], await copy.text(), bytes.length > 0, made.status,
    made.headers.get('content-type'), await made.json(), response.bodyUsed, used, aborted, [...new Headers({ B: '1', a: '2' })],
    await head.text()];
}
"""),
            input=server.url,
        )
    )
    assert outcome.value == [
        *("PUT", "1, 2", "ü", "text/plain;charset=UTF-8", "ü", True, 201, "application/json", {"a": 1}, True, "TypeError", "no"),
        [["a", "2"], ["b", "1"]],
        "",
    ], outcome.message
