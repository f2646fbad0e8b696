"""The commands that talk to a server, against one that says what a test wants."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from client.fake import Peer, fake_server
from pie._engine import pack_program, read_packed
from support.command import PATIENCE_S, pie, start
from support.registries import index
from support.wheels import wheel

RUNNING = {
    "pid": 4,
    "program": "chat@1.0",
    "state": "running",
    "attached": True,
    "detached": False,
    "started": 1e9,
    "ended": None,
    "cpu_s": 1.25,
    "exit": None,
    "dropped": 0,
}
# A component with one section, of no meaning.
COMPONENT = b"\0asm\x0d\0\x01\0" + b"\0\x05\x04code"
ENDED = RUNNING | {"pid": 5, "state": "ended", "attached": False, "ended": 1e9 + 90, "exit": "limit-cpu", "dropped": 12}


@contextmanager
def serving(script: Callable[[Peer], Awaitable[None]]) -> Iterator[str]:
    """A fake server on a thread of its own; returns its address, and raises what its script raised."""
    addresses: list[str] = []
    up, loop, over = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    failures: list[BaseException] = []

    async def serve() -> None:
        async with fake_server(script) as address:
            addresses.append(address)
            up.set()
            await over.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:  # told to the test
            failures.append(error)
        finally:
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    up.wait(PATIENCE_S)
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
    assert failures == []


def test_ps_prints_a_line_for_each_process() -> None:
    asked = []

    async def script(peer: Peer) -> None:
        request = await peer.expect("processes")
        asked.append(request["all"])
        await peer.answer(request, processes=[RUNNING, ENDED])
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("ps", "--all", "--server", address)
    assert (done.returncode, done.stderr, asked) == (0, "", [True])
    head, first, second = (line.split() for line in done.stdout.splitlines())
    assert head == ["PID", "PROGRAM", "STATE", "CLIENT", "STARTED", "TIME", "CPU", "CREDITS", "BID", "DROPPED"]
    assert first[:4] == ["4", "chat@1.0", "running", "attached"]
    assert second[:4] == ["5", "chat@1.0", "ended", "(limit-cpu)"]
    assert second[5:] == ["d", "ago", "1", "min", "1.2", "s", "12"]


def test_ps_shows_what_a_process_has_and_bids_in_all_models() -> None:
    market = {"credits": {"one": 1000.5, "two": 2.0}, "bids": {"one": 0.001, "two": 0.0123456}}
    ruined = {"credits": {"one": 0.0}, "bids": {"one": 0.0}}

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("processes"), processes=[RUNNING | market, RUNNING | ruined | {"pid": 6}])
        await peer.serve_forever()

    with serving(script) as address:
        _, rich, poor = (line.split() for line in pie("ps", "--server", address).stdout.splitlines())
        listed = json.loads(pie("ps", "--json", "--server", address).stdout)
    # All that it has, and the highest of what it bids.
    assert rich[-2:] == ["1002.5", "0.0123"]
    assert poor[-2:] == ["0", "0"]
    assert [{"credits": one["credits"], "bids": one["bids"]} for one in listed] == [market, ruined]


def test_lists_are_json_for_those_who_read_them_by_program() -> None:
    installed = {"name": "chat", "version": "1.0", "digest": "sha256:" + "0" * 64, "bytes": 7, "installed": 1e9}

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("processes"), processes=[RUNNING, ENDED])
        await peer.serve_forever()

    async def programs(peer: Peer) -> None:
        await peer.answer(await peer.expect("programs"), programs=[installed])
        await peer.serve_forever()

    with serving(script) as address:
        assert json.loads(pie("ps", "--json", "--server", address).stdout) == [RUNNING, ENDED]
    with serving(programs) as address:
        assert json.loads(pie("programs", "--json", "--server", address).stdout) == [installed]


@pytest.mark.parametrize(
    ("name", "said"),
    [("greet", "write one that is installed: greet@2.0, greet@2.1"), ("great", "and no program of that name is installed")],
)
def test_a_program_without_its_version_is_told_the_versions(name: str, said: str) -> None:
    about = {"bytes": 10, "installed": 1e9, "digest": "sha256:00"}
    installed = [{"name": name, "version": version} | about for name, version in (("greet", "2.0"), ("other", "1.0"), ("greet", "2.1"))]

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("programs"), programs=installed)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("uninstall", name, "--server", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error[invalid-name]: '{name}' names no version; {said}")


def test_a_program_of_one_version_is_uninstalled_by_its_name() -> None:
    about = {"bytes": 10, "installed": 1e9, "digest": "sha256:00"}
    listed = [{"name": name, "version": version} | about for name, version in (("greet", "2.0"), ("other", "1.0"), ("greets", "2.1"))]
    removed = []

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("programs"), programs=listed)
        request = await peer.expect("uninstall")
        removed.append((request["name"], request["version"]))
        await peer.answer(request)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("uninstall", "greet", "--server", address)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "greet@2.0 is uninstalled, the only version of 'greet'\n"
    assert removed == [("greet", "2.0")]


@pytest.mark.parametrize(("owner", "of_everybody", "removed"), [("alice", None, ("greet", "2.0")), ("bob", True, ("greet", "3.0"))])
def test_a_program_of_a_user_is_uninstalled_by_its_name(owner: str, of_everybody: bool | None, removed: tuple[str, str]) -> None:
    about = {"bytes": 10, "installed": 1e9, "digest": "sha256:00"}
    own = {"name": "greet", "version": "2.0"} | about
    everybody = [own | {"user": "alice"}, own | {"version": "3.0", "user": "bob"}]
    asked, uninstalled = [], []

    async def script(peer: Peer) -> None:
        request = await peer.expect("programs")
        asked.append(request.get("all_users"))
        await peer.answer(request, programs=everybody if request.get("all_users") else [own])
        request = await peer.expect("uninstall")
        uninstalled.append((request["name"], request["version"], request["user"]))
        await peer.answer(request)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("uninstall", "greet", "--of", owner, "--user", "alice", "--server", address)
    assert done.returncode == 0, done.stderr
    assert (asked, uninstalled) == ([of_everybody], [(*removed, owner)])


@pytest.mark.parametrize(
    ("code", "refused", "told"),
    [
        (
            "not-permitted",
            '"all_users" needs the role "operator", and yours is "user"; ask the operator',
            '`--of` with another user needs the role "operator", and yours is "user"; ask the operator',
        ),
        ("internal", '"all_users" broke it', '"all_users" broke it'),
    ],
)
def test_a_list_that_is_refused_to_an_uninstall_is_told_by_what_was_typed(code: str, refused: str, told: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.refuse(await peer.expect("programs"), code, refused)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("uninstall", "greet", "--of", "bob", "--server", address)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error[{code}]: {told}\n")


def test_a_topic_is_discarded_where_the_list_of_topics_cannot_be_read() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("discard_topic"), dropped=0)
        await peer.refuse(await peer.expect("topics"), "internal", "it broke")
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("topic", "discard", "jobs", "--server", address)
    assert (done.returncode, done.stdout) == (0, "0\n")
    unknown = "the list of topics, by which a name that is not in use would be told of, cannot be read"
    assert done.stderr == f"warning: {unknown} ([internal] it broke)\n"


def test_stop_goes_on_after_a_process_that_cannot_be_stopped() -> None:
    stopped, waited = [], []

    async def script(peer: Peer) -> None:
        for _ in range(3):
            request = await peer.expect("terminate")
            stopped.append(request["pid"])
            if request["pid"] == 8:
                await peer.refuse(request, "unknown-process", "there is no process 8; list them with `pie ps`")
            else:
                await peer.answer(request)
        for _ in range(2):
            request = await peer.expect("logs")
            waited.append((request["pid"], request["follow"]))
            if request["pid"] == 9:
                await peer.refuse(request, "unknown-process", "it is forgotten already")
            else:
                await peer.answer(request, text="", next=0, dropped_bytes=0, ended=True)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("stop", "7", "8", "9", "--server", address)
    assert (done.returncode, stopped, waited) == (1, [7, 8, 9], [(7, True), (9, True)])
    assert done.stderr == f"error[unknown-process]: there is no process 8; list them with `pie ps --server {address}`\n"


def test_logs_follow_to_the_end() -> None:
    async def script(peer: Peer) -> None:
        request = await peer.expect("logs")
        assert (request["pid"], request["tail_bytes"], request["follow"]) == (3, 100, False)
        await peer.answer(request, text="one ", next=4, dropped_bytes=0, ended=False)
        request = await peer.expect("logs")
        assert (request["after"], request["follow"]) == (4, True)
        await peer.answer(request, text="three\n", next=20, dropped_bytes=10, ended=True)
        await peer.answer(await peer.expect("logs"), text="", next=20, dropped_bytes=0, ended=True)
        await peer.answer(await peer.expect("outcome"), outcome={"kind": "return", "value": '{"n":1}'})
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("logs", "3", "--follow", "--tail", "100", "--server", address)
    assert (done.returncode, done.stdout) == (0, 'one three\n{"n":1}\n')
    assert "10 bytes" in done.stderr


TRACEBACK = 'Traceback (most recent call last):\n  File "p.py", line 2, in main\nValueError: boom\n'


@pytest.mark.parametrize(
    ("text", "outcome", "stdout", "stderr"),
    [
        ("out", {"kind": "return", "value": "null"}, "out", ""),
        ("out", {"kind": "return", "value": '"a"'}, "out\na\n", ""),
        ("", {"kind": "return", "value": "[1]"}, "[1]\n", ""),
        (
            TRACEBACK,
            {"kind": "error", "code": "program-error", "message": "boom", "error_kind": "ValueError", "traceback": TRACEBACK},
            TRACEBACK,
            "error[program-error]: the program ended with the ValueError above\n",
        ),
        (
            "o\n",
            {"kind": "error", "code": "limit-cpu", "message": "more than 60 s", "error_kind": "limit-cpu"},
            "o\n",
            "error[limit-cpu]: more than 60 s\n",
        ),
    ],
)
def test_logs_end_with_the_value_or_the_error(text: str, outcome: dict[str, object], stdout: str, stderr: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("logs"), text=text, next=len(text), dropped_bytes=0, ended=True)
        await peer.answer(await peer.expect("outcome"), outcome=outcome)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("logs", "3", "--server", address)
    assert (done.returncode, done.stdout, done.stderr) == (0, stdout, stderr)


def test_logs_of_a_process_that_runs_say_what_is_gone_and_end_without_a_value() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("logs"), text="tail", next=104, dropped_bytes=100, ended=False)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("logs", "3", "--server", address)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tail", "the first 100 bytes are no longer kept\n")


@pytest.mark.parametrize("arguments", [(), ("--no-stdin",)], ids=["stdin", "no stdin"])
def test_attach_prints_what_is_left_and_sends_lines(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    lines = []

    async def script(peer: Peer) -> None:
        request = await peer.expect("attach")
        assert request["pid"] == 4
        await peer.answer(request, pid=4, next_seq=1)
        await peer.event(4, "notice", text="5 events were dropped")
        await peer.event(4, "stdout", text="out")
        await peer.event(4, "file", data=b"abc")
        if not arguments:
            while (message := await peer.receive())["type"] == "send":
                lines.append(message["text"])
                await peer.answer(message)
            assert message["type"] == "close_input"
            await peer.answer(message)
        await peer.event(4, "return", value='"value"')
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("attach", "4", *arguments, "--files", "got", "--server", address, cwd=tmp_path, stdin="a\nb\n")
    assert (done.returncode, done.stdout) == (0, "out\nvalue\n")
    assert done.stderr.splitlines()[0] == "5 events were dropped"
    assert (tmp_path / "got/file-1.bin").read_bytes() == b"abc"
    assert lines == ([] if arguments else ["a", "b"])


@pytest.mark.parametrize(
    ("detached", "becomes"), [(True, "which goes on"), (False, "which ends after server.grace_s unless somebody attaches")]
)
def test_ctrl_c_leaves_an_attached_process_running(detached: bool, becomes: str) -> None:
    asked = []

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("attach"), pid=4, next_seq=1)
        await peer.event(4, "stdout", text="running\n")
        while True:
            message = await peer.receive()
            asked.append(message["type"])
            if message["type"] == "processes":
                await peer.answer(message, processes=[RUNNING | {"detached": detached}])
            else:
                await peer.answer(message)

    with serving(script) as address:
        running = start(["attach", "4", "--no-stdin", "--server", address])
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, stdout, asked) == (130, "", ["detach", "processes"])
    assert stderr == f"detached from process 4, {becomes}; `pie stop 4 --server {address}` ends it\n"


def test_an_attached_program_that_fails_has_its_exit_code() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("attach"), pid=4, next_seq=1)
        await peer.event(4, "error", code="limit-cpu", message="more than 60 s", error_kind="limit-cpu", traceback="")
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("attach", "4", "--no-stdin", "--server", address)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error[limit-cpu]: more than 60 s\n")


@pytest.mark.parametrize(
    "arguments", [("ps",), ("logs", "1"), ("attach", "1"), ("stop", "1"), ("programs",), ("uninstall", "a@1"), ("run", "a")]
)
def test_nobody_at_the_address_is_one_line_with_the_remedy(arguments: tuple[str, ...]) -> None:
    done = pie(*arguments, "--server", "ws://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error[connection-failed]: cannot connect to 'ws://127.0.0.1:1': Connection refused; "
        "check the address, and start the server with `pie serve`\n"
    )


def test_run_sends_a_program_and_prints_as_a_run_here_does(tmp_path: Path) -> None:
    (tmp_path / "p.wasm").write_bytes(COMPONENT)
    lines = []

    async def script(peer: Peer) -> None:
        upload = await peer.expect("upload")
        assert upload["payload"] == COMPONENT
        await peer.answer(upload)
        launch = await peer.expect("launch")
        assert (launch["program"], launch["input"], launch["args"], launch["seed"]) == (upload["digest"], {"n": 2}, ["--n", "2"], 3)
        assert (launch["limits"], launch["token_budget"], launch["credits"]) == ({"cpu_s": 5}, 100, 2.5)
        await peer.answer(launch, pid=1, launch_seed=3)
        is_full = True
        while (message := await peer.receive())["type"] != "close_input":
            if is_full:
                await peer.refuse(message, "limit-queue")
            else:
                lines.append(message["text"])
                await peer.answer(message)
            is_full = False
        await peer.answer(message)
        await peer.event(1, "stdout", text="out")
        await peer.event(1, "stderr", text="err\n")
        await peer.event(1, "notice", text="5 events were dropped")
        await peer.event(1, "file", data=b"abc")
        await peer.event(1, "return", value='"value"')
        await peer.serve_forever()

    with serving(script) as address:
        options = ["--server", address, "--seed", "3", "--limit", "cpu_s=5", "--token-budget", "100", "--credits", "2.5", "--files", "got"]
        done = pie("run", "p.wasm", *options, "--", "--n", "2", cwd=tmp_path, stdin="a\nb\n")
    assert (done.returncode, done.stdout) == (0, "out\nvalue\n")
    assert done.stderr.splitlines()[:2] == ["err", "5 events were dropped"]
    assert (tmp_path / "got/file-1.bin").read_bytes() == b"abc"
    assert lines == ["a", "b"]


def test_run_uploads_the_programs_that_the_launched_one_can_start(tmp_path: Path) -> None:
    (tmp_path / "p.wasm").write_bytes(COMPONENT)
    (tmp_path / "other.py").write_text("def main(input):\n    return 1\n")

    async def script(peer: Peer) -> None:
        uploads = []
        for _ in range(2):
            uploads.append(await peer.expect("upload"))
            await peer.answer(uploads[-1])
        component, source = uploads
        assert component["payload"] == COMPONENT
        assert read_packed(source["payload"])["files"] == {"other.py": b"def main(input):\n    return 1\n"}
        launch = await peer.expect("launch")
        assert launch["program"] == "chat@1.0"
        assert launch["programs"] == {"built": component["digest"], "other": source["digest"]}
        await peer.answer(launch, pid=1, launch_seed=3)
        await peer.answer(await peer.expect("close_input"))
        await peer.event(1, "return", value="null")
        await peer.serve_forever()

    with serving(script) as address:
        named = ("--program", "built=p.wasm", "--program", "other=other.py")
        done = pie("run", "chat@1.0", "--server", address, "--seed", "3", *named, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_run_names_an_installed_program_and_tells_of_its_error() -> None:
    async def script(peer: Peer) -> None:
        launch = await peer.expect("launch")
        assert (launch["program"], launch["detached"]) == ("chat@1.0", False)
        await peer.answer(launch, pid=1, launch_seed=11)
        await peer.event(1, "error", code="program-error", message="'x'", error_kind="KeyError", traceback="main.py:3")
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("run", "chat@1.0", "--server", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "main.py:3",
        "error[program-error]: KeyError: 'x'",
        "launch seed 11 (repeat this run with --seed 11)",
    ]


def test_run_detached_prints_the_number_of_the_process() -> None:
    async def script(peer: Peer) -> None:
        launch = await peer.expect("launch")
        assert launch["detached"]
        await peer.answer(launch, pid=12, launch_seed=0)
        await peer.serve_forever()

    with serving(script) as address:
        done = pie("run", "chat", "--detach", "--server", address)
    assert (done.returncode, done.stdout) == (0, "12\n")


def test_ctrl_c_ends_the_program_and_exits_with_130() -> None:
    terminated = []

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=6, launch_seed=0)
        await peer.event(6, "stdout", text="running\n")
        while True:
            message = await peer.receive()
            if message["type"] == "terminate":
                terminated.append(message["pid"])
            await peer.answer(message)

    with serving(script) as address:
        running = start(["run", "chat", "--server", address])
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, stderr, terminated) == (130, "", [6])


@pytest.mark.parametrize("close_code", [None, 1001])
def test_a_server_that_ends_meanwhile_is_one_clear_error(close_code: int | None) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=6, launch_seed=0)
        await peer.event(6, "stdout", text="begun")
        if close_code is None:
            peer.socket.transport.abort()
        else:
            await peer.socket.close(close_code)

    with serving(script) as address:
        done = pie("run", "chat", "--server", address)
    assert done.returncode == 1
    assert "error[connection-failed]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("ps",), ("programs",), ("logs", "1"), ("stop", "1"), ("run", "x@1"), ("uninstall", "x@1")])
def test_nobody_listens(arguments: tuple[str, ...]) -> None:
    done = pie(*arguments, "--server", "ws://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[connection-failed]: cannot connect to 'ws://127.0.0.1:1': Connection refused")


def test_source_is_packed_with_the_manifest_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/main.py").write_text("import helper\n")
    (tmp_path / "p/helper.py").write_text("x = 1\n")
    (tmp_path / "p/Pie.toml").write_text('[package]\nname = "counter"\nversion = "2.0"\n')
    uploads = []

    async def script(peer: Peer) -> None:
        for _ in range(2):
            upload = await past_lists(peer)
            uploads.append(read_packed(upload["payload"]))
            await peer.answer(upload)
            request = await peer.receive()
            if request["type"] == "install":
                assert (request["name"], request["version"]) == ("counter", "2.0")
                assert "counter" in request["manifest"]
                await peer.answer(request)
                continue
            await peer.answer(request, pid=1, launch_seed=0)
            await peer.event(1, "return", value="null")
            await peer.serve_forever()

    with serving(script) as address:
        assert pie("run", "p", "--server", address, cwd=tmp_path).returncode == 0
    with serving(script) as address:
        assert pie("install", "p", "--server", address, cwd=tmp_path).stdout == "counter@2.0\n"
    run, installed = uploads
    assert run["files"] == installed["files"]
    assert {"main.py": b"import helper\n", "helper.py": b"x = 1\n"}.items() <= run["files"].items()
    assert (run["entry"], run["language"], run["runtime"], "counter" in (run["manifest"] or "")) == ("main.py", "python", None, True)


PARAMETERS = """[package]
name = "teller"
version = "3.1"
[parameters]
word = { type = "string", description = "what to say" }
"""
TELLER = "async def main(input):\n    return input\n"


async def past_lists(peer: Peer) -> dict[str, Any]:
    """The next message but those that ask for the programs, which `pie install` compares; there are none."""
    while (message := await peer.receive())["type"] == "programs":
        await peer.answer(message, programs=[])
    return message


async def take_one(peer: Peer, seen: list[dict[str, Any]]) -> None:
    """Takes one upload, and what is done with it."""
    upload = await past_lists(peer)
    assert upload["type"] == "upload"
    await peer.answer(upload)
    request = await peer.receive()
    seen.append(request | {"upload": upload["payload"]})
    await peer.answer(request, pid=1, launch_seed=0)
    if request["type"] == "launch":
        await peer.event(1, "return", value="null")
    await peer.serve_forever()


def test_a_program_is_built_and_described_as_for_an_engine_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_text(TELLER)
    (tmp_path / "Pie.toml").write_text(PARAMETERS + '[program]\nentry = "src/app.py"\n')
    seen: list[dict[str, Any]] = []
    with serving(lambda peer: take_one(peer, seen)) as address:
        done = pie("run", ".", "--server", address, "--", "--word", "42", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        shown = pie("run", ".", "--server", address, "--", "--help", cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (0, "teller 3.1\n  --word  string  what to say (required)\n")
    (launch,) = seen
    assert launch["input"] == {"word": "42"}
    packed = read_packed(launch["upload"])
    assert packed is not None
    assert (packed["entry"], packed["manifest"]) == ("app.py", (tmp_path / "Pie.toml").read_text())


def test_dependencies_are_bundled_for_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path, "greetings", {"greetings/__init__.py": "x = 1\n"})
    for name, value in index(tmp_path).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "p").mkdir()
    (tmp_path / "p/main.py").write_text(TELLER)
    (tmp_path / "p/requirements.txt").write_text("greetings\n")
    for words in (["run", "p"], ["install", "p"]):
        seen: list[dict[str, Any]] = []
        with serving(partial(take_one, seen=seen)) as address:
            done = pie(*words, "--server", address, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        packed = read_packed(seen[0]["upload"])
        assert packed is not None
        assert sorted(packed["files"]) == ["greetings/__init__.py", "main.py", "requirements.txt"]


def test_a_built_program_is_installed_by_the_manifest_that_it_carries(tmp_path: Path) -> None:
    (tmp_path / "x.wasm").write_bytes(pack_program("python", {"main.py": TELLER.encode()}, "main.py", PARAMETERS))
    seen: list[dict[str, Any]] = []
    with serving(lambda peer: take_one(peer, seen)) as address:
        assert pie("install", "x.wasm", "--server", address, cwd=tmp_path).stdout == "teller@3.1\n"
    assert (seen[0]["name"], seen[0]["version"], seen[0]["manifest"]) == ("teller", "3.1", PARAMETERS)


@pytest.mark.parametrize("is_cut", [False, True], ids=["a list that is refused", "a connection that breaks"])
def test_a_program_is_installed_where_what_it_replaces_cannot_be_told(tmp_path: Path, is_cut: bool) -> None:
    (tmp_path / "teller.py").write_text(TELLER)

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("programs"), programs=[])
        await peer.answer(await peer.expect("upload"))
        await peer.answer(await peer.expect("install"))
        listing = await peer.expect("programs")
        if is_cut:
            await peer.socket.close(1011, "the disk is gone")
        else:
            await peer.refuse(listing, "internal", "the disk is gone")
            await peer.serve_forever()

    with serving(script) as address:
        done = pie("install", "teller.py", "--server", address, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "teller@0.1.0\n"), done.stderr
    assert "warning: teller@0.1.0 is installed; the list of programs" in done.stderr
    assert "the disk is gone" in done.stderr
    assert done.stderr.endswith(f"`pie programs --server {address}` prints it\n")


def test_a_manifest_that_is_given_goes_with_the_program(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(TELLER)
    (tmp_path / "x.wasm").write_bytes(COMPONENT)
    (tmp_path / "other.toml").write_text(PARAMETERS)
    for program in ("main.py", "x.wasm"):
        seen: list[dict[str, Any]] = []
        with serving(partial(take_one, seen=seen)) as address:
            done = pie("run", program, "--manifest", "other.toml", "--server", address, "--", "--word", "1", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        packed = read_packed(seen[0]["upload"])
        assert packed is not None
        assert (packed["manifest"], seen[0]["input"]) == (PARAMETERS, {"word": "1"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("chat", "--model", "pie-tiny"), "--model pie-tiny says what an engine of its own serves"),
        (("chat", "--dummy"), "--dummy says what an engine of its own serves"),
        (("chat@1.0", "--manifest", "x.toml"), "'chat@1.0' is one of the server"),
        (("carries.wasm", "--manifest", "other.toml"), "carries a manifest of its own"),
        (("x" * 300, "--files", "f"), "cannot be the path of a program: File name too long"),
    ],
)
def test_what_a_server_cannot_do_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "carries.wasm").write_bytes(pack_program("python", {"main.py": TELLER.encode()}, "main.py", PARAMETERS))
    (tmp_path / "other.toml").write_text(PARAMETERS.replace("3.1", "3.2"))
    done = pie("run", *arguments, "--server", "ws://127.0.0.1:1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert "output" not in done.stderr
