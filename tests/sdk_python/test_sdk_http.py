"""`inferlet.http`: what crosses to the engine, and how answers are read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from componentize_py_types import Err, Ok
from wit_world.imports import http as _http
from wit_world.imports import types

from inferlet import InferletError, http
from inferlet._wait import EventLoop
from sdk_python.fakes import Clock

URL = "https://a.example/x?y=1#z"


class FakeExchange:
    """Answers with parts, and remembers what it was asked."""

    def __init__(self, clock: Clock, request: Any, parts: list[bytes], head: Any) -> None:
        self.clock, self.request, self.parts, self.answer = clock, request, list(parts), head
        self.written: list[bytes] = []
        self.log: list[str] = []

    def head(self) -> Any:
        return self.clock.future("head", 10, self.answer)

    def read(self) -> Any:
        return self.clock.future("part", 1, self.parts.pop(0) if self.parts else None)

    def write_part(self, part: bytes) -> Any:
        self.written.append(part)
        return self.clock.future("written", 1)

    def finish(self) -> None:
        self.log.append("finish")

    def cancel(self) -> None:
        self.log.append("cancel")

    def __exit__(self, *_: object) -> None:
        self.log.append("drop")


def head(**fields: Any) -> Any:
    given: dict[str, Any] = {"status": 200, "status_text": "OK", "url": URL, "is_redirected": False, "headers": []}
    return _http.Head(**given | fields)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[FakeExchange]:
    """The exchanges that were begun."""
    clock, exchanges = Clock(monkeypatch), []
    monkeypatch.setattr(EventLoop, "time", lambda self: clock.now_ns * 1e-9)
    headers = [_http.Header("content-type", "text/plain; charset=latin-1"), _http.Header("x", "1"), _http.Header("X", "2")]

    def start(request: Any) -> FakeExchange:
        exchanges.append(FakeExchange(clock, request, [b"a\xfc\r", b"\nb\rc"], head(headers=headers)))
        return exchanges[-1]

    monkeypatch.setattr(_http.Exchange, "start", start)
    return exchanges


def run(awaited: Any) -> Any:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(awaited)


def test_a_request_crosses_whole_and_is_ended_when_it_was_read(begun: list[FakeExchange]) -> None:
    async def main() -> Any:
        return await http.post(URL, params={"q": ["a b", 2], "none": None}, json={"ü": [1]}, headers={"X-A": "1"}, timeout_s=1.5)

    response = run(main())
    request = begun[0].request
    assert (request.method, request.url) == ("POST", "https://a.example/x?y=1&q=a+b&q=2#z")
    assert [(header.name, header.value) for header in request.headers] == [("X-A", "1"), ("content-type", "application/json")]
    assert request.body == _http.Body_Whole('{"ü":[1]}'.encode())
    assert (request.timeouts.whole_ms, request.timeouts.connect_ms, request.redirects) == (1500, None, _http.Redirects.FOLLOW)
    assert (response.status, response.ok, response.text) == (200, True, "aü\r\nb\rc")
    assert begun[0].log == ["cancel", "drop"]


def test_headers_are_by_names_in_any_case(begun: list[FakeExchange]) -> None:
    headers = http.get(URL).headers
    assert (headers["X"], headers.get_all("x"), "CONTENT-TYPE" in headers, headers.get("none")) == ("1, 2", ["1", "2"], True, None)
    assert (list(headers), len(headers)) == (["content-type", "x"], 2)
    with pytest.raises(KeyError):
        headers["none"]


def test_lines_end_in_any_way_across_parts(begun: list[FakeExchange]) -> None:
    async def main() -> list[str]:
        async with http.stream("GET", URL) as response:
            return [line async for line in response.lines()]

    assert run(main()) == ["aü", "b", "c"]
    with http.stream("GET", URL) as response:
        assert list(response.lines_now()) == ["aü", "b", "c"]
    assert [exchange.log for exchange in begun] == [["cancel", "drop"]] * 2


def test_a_body_goes_out_in_parts(begun: list[FakeExchange]) -> None:
    async def parts() -> Any:
        yield "ü"
        yield bytearray(b"b")

    async def main() -> None:
        await http.put(URL, body=parts())

    run(main())
    http.put(URL, body=iter(["c", memoryview(b"d")]))
    assert [exchange.written for exchange in begun] == [["ü".encode(), b"b"], [b"c", b"d"]]
    assert all(exchange.log[0] == "finish" for exchange in begun)
    assert begun[0].request.body == _http.Body_Streamed()


def test_what_a_body_raises_reaches_the_program(begun: list[FakeExchange]) -> None:
    async def parts() -> Any:
        yield b"a"
        raise RuntimeError("no more")

    async def main() -> None:
        await http.put(URL, body=parts())

    with pytest.raises(RuntimeError, match="no more"):
        run(main())
    assert begun[0].log == ["cancel", "drop"]


def test_a_request_that_is_cancelled_is_ended(begun: list[FakeExchange]) -> None:
    async def main() -> None:
        asking = asyncio.ensure_future(http.get(URL))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    run(main())
    assert begun[0].log == ["cancel", "drop"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"body": 1}, "body"),
        ({"body": b"x", "json": 1}, "body"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"redirects": "never"}, "redirects"),
        ({"headers": {"a": 1}}, "header a"),
        ({"headers": [("a", "\ud800")]}, "header a"),
    ],
)
def test_a_wrong_argument_is_named(begun: list[FakeExchange], options: dict[str, Any], name: str) -> None:
    with pytest.raises(InferletError, match=name) as refused:
        http.get(URL, **options)
    assert refused.value.code == "invalid-argument"
    assert begun == []


def test_refusals_and_statuses_are_errors(monkeypatch: pytest.MonkeyPatch, begun: list[FakeExchange]) -> None:
    monkeypatch.setattr(_http, "refusal", lambda: Ok(None))
    assert http.refusal() is None

    def refused(*_: object) -> None:
        raise Err(types.Error("net-denied", "no", "{}"))

    monkeypatch.setattr(_http, "refusal", refused)
    refusal = http.refusal()
    assert refusal is not None
    assert refusal.code == "net-denied"
    monkeypatch.setattr(_http.Exchange, "start", refused)
    with pytest.raises(InferletError, match="no"):
        http.get(URL)
    answer = http.Response(head(status=404, status_text="Not Found"), b"")
    with pytest.raises(http.StatusError, match="404 Not Found") as failed:
        answer.raise_for_status()
    assert failed.value.response is answer
    http.Response(head(), b"").raise_for_status()
