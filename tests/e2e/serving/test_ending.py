"""How a server ends: drained, at once, killed, by Ctrl-C; and one that cannot begin."""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.client import Event, PieError
from support.command import PATIENCE_S, command
from support.serving import (
    ECHO,
    SPIN,
    STREAM,
    Served,
    client_of,
    collect,
    install_source,
    refused,
    scenario,
    server_environment,
    serving,
    streamed,
)

LONG = 64


@scenario
async def test_sigterm_under_load_lets_what_runs_end(tmp_path: Path) -> None:
    with serving(tmp_path, server__drain_s=600) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, STREAM, "stream")
            await install_source(client, tmp_path, ECHO, "echo")
            waiting = await client.launch("echo")
            assert await anext(waiting.events()) == Event.Stdout("ready")
            streams = [await client.launch("stream", input={"prompt": "p", "n": LONG}, seed=1) for _ in range(8)]
            assert isinstance(await anext(streams[0].events()), Event.Stdout)
            served.signal(signal.SIGTERM)
            while (await refused_or_launched(client)) != "server-draining":
                pass
            assert client.is_draining
            assert served.process.poll() is None
            outputs = [streamed(await collect(stream)) for stream in streams]
            assert {len(output.split()) for output in outputs[1:]} == {LONG}
            assert len(set(outputs[1:])) == 1
            await waiting.close_input()
            assert await waiting.result() == 0
            assert (await refused(ping_until_closed(client))).code == "connection-failed"
        assert served.wait() == 0
        assert "Traceback" not in served.stderr


async def refused_or_launched(client) -> str:
    """The code of the error of a launch; one that succeeds is ended."""
    try:
        process = await client.launch("echo")
    except Exception as error:
        return error.code
    await process.close_input()
    await process.result()
    return ""


async def ping_until_closed(client) -> None:
    while True:
        await client.ping()


def test_sigterm_ends_a_server_whose_stderr_nobody_reads_any_more(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(["serve", "--dummy", "--port", "0"]),
        env=server_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any(line.startswith("serving at ") for line in process.stdout)
        process.stderr.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@scenario
async def test_the_time_to_drain_is_bounded_and_the_rest_is_cancelled(tmp_path: Path) -> None:
    with serving(tmp_path, server__drain_s=0.2) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, SPIN, "spin")
            process = await client.launch("spin", detached=True)
            events = process.events()
            assert await anext(events) == Event.Stdout("spinning\n")
            served.signal(signal.SIGTERM)
            last = await anext(events)
            assert isinstance(last, Event.Error)
            assert last.code in {"cancelled", "engine-stopped"}
        assert served.wait() == 0


@scenario
async def test_a_second_sigterm_ends_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, server__drain_s=600) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, SPIN, "spin")
            process = await client.launch("spin")
            assert await anext(process.events()) == Event.Stdout("spinning\n")
            served.signal(signal.SIGTERM)
            while (await refused(client.launch("nothing"))).code != "server-draining":
                pass
            served.signal(signal.SIGTERM)
            assert (await refused(process.result())).code in {"connection-failed", "engine-stopped", "cancelled"}
        assert served.wait() == 143


@scenario
async def test_ctrl_c_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, SPIN, "spin")
            process = await client.launch("spin", detached=True)
            assert await anext(process.events()) == Event.Stdout("spinning\n")
            served.signal(signal.SIGINT)
            assert (await refused(process.result())).code in {"connection-failed", "engine-stopped", "cancelled"}
        assert served.wait() == 130
        assert "Traceback" not in served.stderr
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", served.port), PATIENCE_S)


@scenario
async def test_a_server_that_was_killed_starts_again_at_once_with_its_programs(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, ECHO, "echo")
            process = await client.launch("echo", detached=True)
            assert await anext(process.events()) == Event.Stdout("ready")
            served.signal(signal.SIGKILL)
            assert (await refused(process.result())).code == "connection-failed"
        assert served.wait() == -signal.SIGKILL
    with serving(tmp_path, "--dummy", "--port", str(served.port)) as again:
        assert again.port == served.port
        async with client_of(again) as client:
            assert (await refused(client.attach(process.pid))).code == "unknown-process"
            process = await client.launch("echo@0.1.0")
            await process.close_input()
            assert await collect(process) == [Event.Stdout("ready"), Event.Return("0")]


@scenario
async def test_killed_in_the_middle_of_installs_it_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    users = ("alice", "bob", "carol")
    # Whether the version of a user is installed; none: the server was killed before it said so.
    there: dict[tuple[str, str], bool | None] = {}

    async def change(served: Served, user: str, n_round: int, acknowledged: Iterator[int], kill_at: int) -> None:
        async with client_of(served, user) as client:
            for n in itertools.count():
                version = f"{n_round}.{n}"
                source = tmp_path / f"{user}-{version}.py"
                source.write_text(f'def main(input):\n    return "{user} {version}"\n')
                # Every third one is taken away again.
                for shall_be in (True, False)[: 1 + (n % 3 == 2)]:
                    there[user, version] = None
                    changing = client.install(source, name="p", version=version) if shall_be else client.uninstall("p", version)
                    try:
                        await changing
                    except PieError as error:
                        if error.code != "connection-failed":
                            raise
                        return
                    there[user, version] = shall_be
                    if next(acknowledged) == kill_at:
                        served.signal(signal.SIGKILL)

    folder = tmp_path / "server"
    for n_round, kill_at in enumerate((2, 11, 6)):
        with serving(folder) as served:
            acknowledged = itertools.count(1)
            await asyncio.gather(*(change(served, user, n_round, acknowledged, kill_at) for user in users))
            assert served.wait() == -signal.SIGKILL
        with serving(folder) as again:
            assert list((folder / "data/programs").rglob(".tmp*")) == []
            for user in users:
                async with client_of(again, user) as client:
                    listed = {program.version for program in await client.programs()}
                    own = {version: is_there for (of, version), is_there in there.items() if of == user}
                    assert {version for version, is_there in own.items() if is_there} <= listed
                    assert listed <= {version for version, is_there in own.items() if is_there is not False}
                    there |= {(user, version): version in listed for version in own}
                    for version in listed:
                        process = await client.launch(f"p@{version}")
                        assert await process.result() == f"{user} {version}"


def serve_in_vain(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A server that cannot begin."""
    return subprocess.run(
        command(["serve", "--dummy", *options]),
        env=server_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_port_in_use_is_one_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve_in_vain(tmp_path, "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[port-in-use]")
    assert str(port) in done.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--host", "no host"], "invalid-config"),
        (["--host", "192.0.2.1"], "invalid-config"),
        (["--model", "/no/such/folder"], "invalid-model"),
        (["--config", "/no/such/file.toml"], "invalid-config"),
        (["--limit", "wishes=3"], "invalid-config"),
    ],
)
def test_what_cannot_be_served(tmp_path: Path, options: list[str], code: str) -> None:
    done = serve_in_vain(tmp_path, "--port", "0", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error[{code}]")
    assert "Traceback" not in done.stderr
