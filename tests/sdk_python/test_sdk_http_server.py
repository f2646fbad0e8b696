"""`inferlet.http_server`: what crosses to the engine, and what becomes of a request whose client goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from wit_world.imports import http as _http
from wit_world.imports import http_server as _http_server

from inferlet import InferletError
from inferlet._wait import EventLoop
from inferlet.http_server import Request, Response, ServerEvent, is_serving, serve
from sdk_python.fakes import Clock

NEVER_MS = 1_000_000


class FakeIncoming:
    """A request with its parts, whose client goes after a while."""

    def __init__(self, clock: Clock, parts: list[bytes], gone_ms: int) -> None:
        self.clock, self.parts, self.gone_ms = clock, list(parts), gone_ms
        self.log: list[Any] = []

    def head(self) -> Any:
        headers = [_http.Header("x-a", "1")]
        return _http_server.RequestHead(method="POST", url="http://a/b?c=1&c=2&d=", headers=headers, remote_address="192.0.2.1")

    def read(self) -> Any:
        return self.clock.future("part", 1, self.parts.pop(0) if self.parts else None)

    def respond(self, status: int, headers: list[Any]) -> None:
        self.log.append((status, [(header.name, header.value) for header in headers]))

    def write_part(self, part: bytes) -> Any:
        self.log.append(part)
        return self.clock.future("written", 1)

    def finish(self) -> None:
        self.log.append("finish")

    def abandon(self) -> None:
        self.log.append("abandon")

    def gone(self) -> Any:
        return self.clock.future("gone", self.gone_ms)

    def __exit__(self, *_: object) -> None:
        self.log.append("drop")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeIncoming]:
    """Serves one request by a handler, and gives what became of it."""
    clock = Clock(monkeypatch)
    monkeypatch.setattr(EventLoop, "time", lambda self: clock.now_ns * 1e-9)

    def run(handler: Any, *, parts: tuple[bytes, ...] = (), gone_ms: int = NEVER_MS) -> FakeIncoming:
        incoming = FakeIncoming(clock, list(parts), gone_ms)
        waiting = [incoming, None]
        monkeypatch.setattr(_http_server, "next_request", lambda: clock.future("request", 0, waiting.pop(0)))
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            runner.run(serve(handler))
        return incoming

    return run


def test_a_request_is_read_and_answered(served: Callable[..., FakeIncoming]) -> None:
    async def fetch(request: Request) -> Response:
        assert (request.method, request.path, request.query) == ("POST", "/b", {"c": "2", "d": ""})
        assert request.query_pairs == [("c", "1"), ("c", "2"), ("d", "")]
        assert (request.headers["X-A"], request.remote_address) == ("1", "192.0.2.1")
        return Response(await request.text(), status=201, headers={"X-B": "2"})

    incoming = served(fetch, parts=(b"h", b"i"))
    headers = [("X-B", "2"), ("content-type", "text/plain;charset=UTF-8"), ("content-length", "2")]
    assert incoming.log == [(201, headers), b"hi", "finish", "abandon", "drop"]


def test_a_body_is_made_part_by_part(served: Callable[..., FakeIncoming]) -> None:
    def parts() -> Any:
        yield "one"
        yield b"two"

    assert served(lambda _: Response(parts())).log == [(200, []), b"one", b"two", "finish", "abandon", "drop"]
    long = served(lambda _: Response(b"x" * (100 << 10))).log
    assert [len(part) for part in long if isinstance(part, bytes)] == [64 << 10, 36 << 10]
    assert served(lambda _: Response(status=204)).log == [(204, []), "finish", "abandon", "drop"]


def test_a_client_that_goes_cancels_the_work_on_its_answer(served: Callable[..., FakeIncoming]) -> None:
    ended = []

    async def fetch(_: Request) -> Response:
        async def parts() -> Any:
            try:
                yield "one"
                await asyncio.sleep(NEVER_MS)
                yield "two"
            finally:
                ended.append("parts")

        return Response(parts())

    assert served(fetch, gone_ms=5).log == [(200, []), b"one", "abandon", "drop"]
    assert ended == ["parts"]


def test_what_a_handler_raises_is_told_on_stderr_alone(served: Callable[..., FakeIncoming], capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: Request) -> Response:
        raise ValueError("no answer comes of this")

    assert served(fail).log == ["abandon", "drop"]
    assert "ValueError: no answer comes of this" in capsys.readouterr().err
    assert served(lambda _: "a text").log == ["abandon", "drop"]
    assert "it must be an inferlet.http_server.Response: write Response(...) around it" in capsys.readouterr().err
    assert served(lambda _: {"a": 1}).log == ["abandon", "drop"]
    assert "write Response.json(...) around a value of JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (ServerEvent(), "data: \n\n"),
        (ServerEvent("a\r\nb\rc\n"), "data: a\ndata: b\ndata: c\ndata: \n\n"),
        (ServerEvent({"n": 1}, event="text", id="7", retry_ms=1500), 'event: text\nid: 7\nretry: 1500\ndata: {"n":1}\n\n'),
    ],
)
def test_an_event_has_a_line_of_data_for_each_line_of_its_text(event: ServerEvent, text: str) -> None:
    assert event.text() == text


def test_what_cannot_be_an_answer_is_refused() -> None:
    for make in (
        lambda: Response(status=99),
        lambda: Response(5),
        lambda: Response.json(object()),
        lambda: ServerEvent(event="a\nb").text(),
        lambda: ServerEvent(id=7).text(),  # type: ignore[arg-type]
        lambda: ServerEvent(retry_ms=-1).text(),
        lambda: ServerEvent(retry_ms=1.5).text(),  # type: ignore[arg-type]
    ):
        with pytest.raises(InferletError) as error:
            make()
        assert error.value.code == "invalid-argument"


def test_whether_a_program_serves_is_what_the_engine_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http_server, "is_serving", lambda: True)
    assert is_serving()
