"""The client without asyncio: it has every verb of the other, waits on any thread, and lets Ctrl-C through."""

from __future__ import annotations

import asyncio
import errno
import gc
import inspect
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pie.client
from client.fake import PATIENCE_S, Peer, fake_server, scenario
from pie.client import Event, PieError, connect, sync
from support.serving import ECHO, SPIN, Served, refused, serving


@contextmanager
def faked(script: Callable[[Peer], Awaitable[None]]) -> Iterator[str]:
    """The address of a server that runs the script, on a thread of its own."""
    found: list[str] = []
    failures: list[BaseException] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with fake_server(script) as address:
            found.append(address)
            ready.set()
            await asyncio.to_thread(over.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(PATIENCE_S)
        yield found[0]
    finally:
        over.set()
        thread.join(PATIENCE_S)
    assert failures == []


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("server")) as opened:
        yield opened


def public(kind: type) -> set[str]:
    """The public names of a class."""
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("awaited", "waiting"), [(pie.client.Client, sync.Client), (pie.client.Process, sync.Process)], ids=["client", "process"]
)
def test_it_has_every_name_of_the_other_with_the_same_arguments(awaited: type, waiting: type) -> None:
    assert public(waiting) == public(awaited)
    for name in public(awaited):
        there, here = getattr(awaited, name), getattr(waiting, name)
        if isinstance(there, property):
            assert isinstance(here, property), name
            continue
        assert not inspect.iscoroutinefunction(here), name
        if inspect.iscoroutinefunction(there):
            assert inspect.signature(here).parameters.keys() == inspect.signature(there).parameters.keys(), name
            assert inspect.getdoc(here), name


def test_connect_takes_the_same_arguments() -> None:
    there, here = inspect.signature(connect), inspect.signature(sync.connect)
    assert here.parameters == there.parameters


def test_a_program_is_run_in_one_call_and_by_hand(served: Served, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    (tmp_path / "double.py").write_text("def main(input):\n    print(input)\n    return input * 2\n")
    with sync.connect(served.url, user="sync") as client:
        assert client.user == "sync"
        client.ping()
        events: list[pie.client.AnyEvent] = []
        assert client.run(tmp_path / "double.py", 21, on_event=events.append) == 42
        assert events == [Event.Stdout("21\n"), Event.Return("42")]
        assert client.run(str(tmp_path / "echo.py")) == 0
        assert client.install(tmp_path / "echo.py", name="echo", version="1.0") == "echo@1.0"
        assert [program.name for program in client.programs()] == ["echo"]
        process = client.launch("echo", seed=7)
        assert (process.launch_seed, process.has_ended) == (7, False)
        assert next(process.events()) == Event.Stdout("ready")
        process.send("a")
        assert process.next_event() == Event.Stdout("<a>")
        process.close_input()
        assert process.result() == 1
        assert list(process.events()) == []
        assert process.has_ended
        assert client.outcome(process.pid) == Event.Return("1")
        left = client.launch("echo")
        left.detach()
        again = client.attach(left.pid)
        assert again.launch_seed is None
        again.terminate()
    client.close()
    with pytest.raises(PieError, match="this client has closed the connection") as caught:
        client.ping()
    assert caught.value.code == "connection-failed"


def test_errors_are_those_of_the_other(served: Served) -> None:
    with sync.connect(served.url, user="sync") as client:
        with pytest.raises(PieError, match="seed is 'x'") as caught:
            client.launch("echo", seed="x")  # type: ignore[arg-type]
        assert caught.value.code == "invalid-argument"
        with pytest.raises(PieError) as caught:
            client.attach(10**6)
        assert caught.value.code == "unknown-process"
    with pytest.raises(PieError, match="start the server") as caught:
        sync.connect("ws://127.0.0.1:9")
    assert caught.value.code == "connection-failed"


def test_several_threads_and_a_running_loop_may_call(served: Served) -> None:
    with sync.connect(served.url, user="threads") as client:
        answers: list[int] = []

        def ask(number: int) -> None:
            client.ping()
            answers.append(number)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert sorted(answers) == list(range(8))

        async def cell_of_a_notebook() -> None:
            client.ping()

        asyncio.run(cell_of_a_notebook())


def test_a_call_that_waits_is_told_when_another_thread_closes() -> None:
    asked = threading.Event()

    async def script(peer: Peer) -> None:
        await peer.expect("stats")
        asked.set()
        await peer.socket.wait_closed()

    outcome: list[PieError] = []

    def wait(client: sync.Client) -> None:
        try:
            client.stats()
        except PieError as error:
            outcome.append(error)

    with faked(script) as address:
        client = sync.connect(address)
        waiting = threading.Thread(target=wait, args=(client,))
        waiting.start()
        assert asked.wait(PATIENCE_S)
        client.close()
        waiting.join(PATIENCE_S)
    assert [error.code for error in outcome] == ["connection-failed"]


def test_the_first_loop_keeps_all_events_and_a_second_is_told_so() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.event(1, "stdout", text="0")
        await peer.answer(await peer.expect("ping"))
        await peer.event(1, "stdout", text="1")
        await peer.event(1, "return", value="1")
        await peer.serve_forever()

    begun, goes_on = threading.Event(), threading.Event()
    texts: list[str] = []

    def read(process: sync.Process) -> None:
        for event in process.events():
            assert isinstance(event, Event.Stdout | Event.Return)
            texts.append(event.text)
            begun.set()
            assert goes_on.wait(PATIENCE_S)

    with faked(script) as address, sync.connect(address) as client:
        process = client.launch("a")
        made_before = process.events()
        reading = threading.Thread(target=read, args=(process,))
        reading.start()
        assert begun.wait(PATIENCE_S)
        for call in (lambda: next(made_before), process.events):
            with pytest.raises(PieError, match="the events of process 1 are read already") as caught:
                call()
            assert caught.value.code == "future-taken"
        client.ping()
        goes_on.set()
        reading.join(PATIENCE_S)
        assert texts == ["0", "1", "1"]
        assert list(process.events()) == []


def test_ctrl_c_ends_the_call_and_leaves_the_connection() -> None:
    taken_back = threading.Event()

    async def script(peer: Peer) -> None:
        launch = await peer.expect("launch")
        os.kill(os.getpid(), signal.SIGINT)
        # It is answered when nobody waits any more, and is taken back.
        ping = await peer.expect("ping")
        await peer.answer(ping)
        await peer.answer(launch, pid=6, launch_seed=7)
        terminate = await peer.expect("terminate")
        assert terminate["pid"] == 6
        await peer.answer(terminate)
        taken_back.set()
        await peer.socket.wait_closed()

    with faked(script) as address, sync.connect(address) as client:
        with pytest.raises(KeyboardInterrupt):
            client.launch("a")
        client.ping()
        assert taken_back.wait(PATIENCE_S)


def test_who_forgets_to_close_leaves_no_thread(served: Served) -> None:
    client = sync.connect(served.url)
    thread = client._loop._thread
    assert thread.is_alive()
    del client
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_connection_lives_as_long_as_a_process_of_it_is_held(served: Served, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)

    def begun() -> sync.Process:
        client = sync.connect(served.url, user="held")
        return client.launch(client.upload(tmp_path / "echo.py"))

    process = begun()
    gc.collect()
    thread = process._loop._thread
    assert process.next_event() == Event.Stdout("ready")
    process.close_input()
    assert process.result() == 0
    del process
    gc.collect()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_where_no_loop_can_be_opened_the_call_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(coroutine: Coroutine[Any, Any, None]) -> None:
        coroutine.close()
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(sync.asyncio, "run", refuse)
        with pytest.raises(PieError, match="Too many open files") as caught:
            sync.connect("ws://127.0.0.1:9")
    assert caught.value.code == "connection-failed"


def test_a_function_that_gets_events_cannot_wait_for_the_client(served: Served, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    with sync.connect(served.url, user="nested") as client:
        with pytest.raises(PieError, match="on the thread of its connection") as caught:
            client.run(tmp_path / "echo.py", on_event=lambda _: client.ping())
        assert caught.value.code == "invalid-argument"
        client.ping()


@scenario
async def test_a_name_that_looks_like_a_path_is_told_of_uploading() -> None:
    refusals = ['"ada" has no program; install it first', '"ada" has no program; install it first; did you mean "tale"?']

    async def script(peer: Peer) -> None:
        while True:
            for refusal in refusals:
                await peer.refuse(await peer.expect("launch"), "unknown-program", refusal)

    remedy = "it looks like a path: `run(path, input)` uploads and launches it, and `upload(path)` returns what can be launched"
    async with fake_server(script) as address, connect(address, user="ada") as client:
        for name, is_told in (("story.py", True), ("./story", True), ("story", False), ("story@1.0", False), (f"./{'x' * 200}", True)):
            shown = name if len(name) < 80 else f"./{'x' * 78}..."
            for refusal, hint in zip(refusals, ("", '; did you mean "tale"?'), strict=True):
                error = await refused(client.launch(name))
                assert error.message == (f"'ada' has no program {shown!r}; {remedy}{hint}" if is_told else refusal)
                assert error.code == "unknown-program"


@scenario
async def test_run_uploads_paths_and_launches_names(tmp_path: Path) -> None:
    (tmp_path / "story.py").write_text("def main(input): return input\n")
    launched: list[dict[str, Any]] = []

    async def script(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            match message["type"]:
                case "launch":
                    launched.append(message)
                    await peer.answer(message, pid=len(launched), launch_seed=7)
                    await peer.event(len(launched), "return", value="5")
                case _:
                    await peer.answer(message)

    async with fake_server(script) as address, connect(address, user="ada") as client:
        for program in (str(tmp_path / "story.py"), tmp_path / "story.py", "story@1.0", "story"):
            await client.run(program, {"a": 1}, seed=3)
        with pytest.raises(PieError, match="manifest is 'x'") as caught:
            await client.run("story", manifest="x")
        assert caught.value.code == "invalid-argument"
        with pytest.raises(PieError, match=r"on_event is 5 \(int\); give a function that takes an event"):
            await client.run("story", on_event=5)  # type: ignore[arg-type]
        with pytest.raises(PieError, match=r"program is 5 \(int\)"):
            await client.run(5)  # type: ignore[arg-type]
    assert [message["program"].partition(":")[0] for message in launched] == ["sha256", "sha256", "story@1.0", "story"]
    assert all(message["input"] == {"a": 1} and message["seed"] == 3 for message in launched)


def test_who_gives_up_a_run_ends_the_program(served: Served, tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(SPIN)

    class GivenUpError(Exception):
        pass

    def give_up(_event: pie.client.AnyEvent) -> None:
        raise GivenUpError

    with sync.connect(served.url, user="spin") as client:
        with pytest.raises(GivenUpError):
            client.run(tmp_path / "spin.py", on_event=give_up)
        (process,) = client.list(all=True)
        after = 0
        while client.outcome(process.pid) is None:
            after = client.logs(process.pid, after=after, follow=True).next
        outcome = client.outcome(process.pid)
        assert isinstance(outcome, Event.Error)
        assert outcome.code == "cancelled"
