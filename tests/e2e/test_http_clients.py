"""Clients that people know, over the engine: `urllib.request`, and `requests` and `httpx` as their wheels have them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.config import EngineConfig, RuntimeConfig
from pie.engine import Engine
from pie.programs import Source
from support.engines import started
from support.launching import Outcome, finish
from support.web import PATIENCE_S, Web, web

PACKAGES = {
    "urllib": (),
    "requests": ("requests", "urllib3", "idna", "certifi", "charset_normalizer"),
    "httpx": ("httpx", "idna", "certifi"),
}


def package_files(name: str) -> Iterator[tuple[str, bytes]]:
    """The files of an installed package that are Python."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, name
    assert spec.origin is not None, name
    folder = Path(spec.origin).parent
    for path in sorted(folder.rglob("*.py")):
        yield f"{name}/{path.relative_to(folder)}", path.read_bytes()


def program(client: str, body: str) -> Source:
    """A program that brings a client along."""
    source = f"import {client if client != 'urllib' else 'urllib.request, urllib.error'}\nfrom inferlet import http\n{body}"
    files = [file for package in PACKAGES[client] for file in package_files(package)]
    return Source("python", (("main.py", source.encode()), *files), "main.py")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine(EngineConfig(data_dir=tmp_path_factory.mktemp("data")), runtime=RuntimeConfig(allow_net=("127.0.0.1",)))
    with started(opened):
        yield opened


@pytest.fixture
def server() -> Iterator[Web]:
    with web() as opened:
        yield opened


def run(engine: Engine, server: Web, client: str, body: str) -> Outcome:
    return finish(engine.launch(program(client, body), input=server.url))


URLLIB = """
def main(url):
    with urllib.request.urlopen(url + "/moved") as response:
        seen = [response.status, response.url, response.headers["x-own"], response.read().decode()]
    request = urllib.request.Request(url + "/echo", data=b"body", headers={"X-A": "1"}, method="PUT")
    with urllib.request.urlopen(request, timeout=20) as response:
        echoed = __import__("json").load(response)
    codes = []
    for path in ("/status/404", "/nonsense"):
        try:
            urllib.request.urlopen(url + path)
        except urllib.error.HTTPError as error:
            codes.append(error.code)
        except urllib.error.URLError as error:
            codes.append(error.reason.code)
    try:
        urllib.request.urlopen("https://169.254.169.254/")
    except urllib.error.URLError as error:
        codes.append(error.reason.code)
    return [seen, echoed["method"], echoed["body"], echoed["headers"]["x-a"], codes]
"""

REQUESTS = """
def main(url):
    session = requests.Session()
    moved = session.get(url + "/moved")
    seen = [moved.status_code, moved.url, [one.status_code for one in moved.history], moved.text]
    echoed = session.post(url + "/echo", json={"a": 1}, params={"q": "x"}, headers={"X-A": "1"}, timeout=(5, 20)).json()
    with requests.get(url + "/lines", stream=True) as response:
        lines = [line.decode() for line in response.iter_lines()]
    codes = [requests.get(url + "/status/404").status_code]
    for target in (url + "/nonsense", "http://169.254.169.254/"):
        try:
            requests.get(target)
        except requests.ConnectionError:
            codes.append(http.refusal().code)
    try:
        requests.get(url + "/hang", timeout=0.1)
    except requests.Timeout as error:
        codes.append(http.refusal().code)
    return [seen, echoed["method"], echoed["path"], echoed["body"], echoed["headers"]["x-a"], lines, codes]
"""

HTTPX = """
import asyncio

async def main(url):
    with httpx.Client() as client:
        moved = client.get(url + "/moved", follow_redirects=True)
        seen = [moved.status_code, str(moved.url), [one.status_code for one in moved.history], moved.text]
    async with httpx.AsyncClient(timeout=20) as client:
        echoed = (await client.post(url + "/echo", json={"a": 1}, params={"q": "x"}, headers={"X-A": "1"})).json()
        async with client.stream("GET", url + "/lines") as response:
            lines = [line async for line in response.aiter_lines()]
        four = await asyncio.gather(*(client.get(url + "/together") for _ in range(4)))
        codes = [(await client.get(url + "/status/404")).status_code, sum(one.status_code for one in four)]
        for target in (url + "/nonsense", "http://169.254.169.254/"):
            try:
                await client.get(target)
            except httpx.TransportError:
                codes.append(http.refusal().code)
        try:
            await client.get(url + "/hang", timeout=0.1)
        except httpx.ReadTimeout:
            codes.append(http.refusal().code)
    return [seen, echoed["method"], echoed["path"], echoed["body"], echoed["headers"]["x-a"], lines, codes]
"""

LINES = ["data: ü", "data: b", "data: c"]


def test_urllib_request(engine: Engine, server: Web) -> None:
    outcome = run(engine, server, "urllib", URLLIB)
    seen = [200, f"{server.url}/", "ü", "hello ü"]
    assert outcome.value == [seen, "PUT", "body", "1", [404, "http-protocol", "net-denied"]], outcome.traceback


def test_requests(engine: Engine, server: Web) -> None:
    outcome = run(engine, server, "requests", REQUESTS)
    seen = [200, f"{server.url}/", [302], "hello ü"]
    codes = [404, "http-protocol", "net-denied", "limit-http-time"]
    assert outcome.value == [seen, "POST", "/echo?q=x", '{"a": 1}', "1", LINES, codes], outcome.traceback
    assert server.gone.acquire(timeout=PATIENCE_S)


def test_httpx(engine: Engine, server: Web) -> None:
    outcome = run(engine, server, "httpx", HTTPX)
    seen = [200, f"{server.url}/", [302], "hello ü"]
    codes = [404, 800, "http-protocol", "net-denied", "limit-http-time"]
    assert outcome.value == [seen, "POST", "/echo?q=x", '{"a":1}', "1", LINES, codes], outcome.traceback
    assert server.gone.acquire(timeout=PATIENCE_S)
