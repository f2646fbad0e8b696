"""`pie attach`, what `pie logs` says of the end, and numbers of processes that are not given twice, against a real
server.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from pie.client import PieError
from support.command import PATIENCE_S, command, environment, pie, start
from support.serving import ECHO, SPIN, Served, client_of, ended, exit_of, scenario, serving

FAILING = "def main(input):\n    print('begun')\n    raise ValueError('boom')\n"


def launched(served: Served, folder: Path, text: str, user: str, *arguments: str) -> str:
    """The number of a detached process."""
    (folder / "p.py").write_text(text)
    done = pie("run", "p.py", "--detach", *arguments, "--server", served.url, "--user", user, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_detached_process_is_attached_to_and_gets_lines(server: Served, tmp_path: Path) -> None:
    to = ("--server", server.url, "--user", "heidi")
    pid = launched(server, tmp_path, ECHO, "heidi")
    done = pie("attach", pid, *to, stdin="one\nzwei ü")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready<one><zwei ü>\n2\n", "")
    done = pie("attach", pid, *to)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"error[session-closed]: process {pid} has ended and its events were taken; `pie logs {pid} --server {server.url}`"
    )
    assert f"`outcome({pid})`" in done.stderr
    assert pie("logs", pid, *to).stdout == "ready<one><zwei ü>\n2\n"
    assert pie("logs", pid, "--follow", *to).stdout == "ready<one><zwei ü>\n2\n"


def test_ctrl_c_leaves_it_running_for_the_next_to_attach(server: Served, tmp_path: Path) -> None:
    to = ("--server", server.url, "--user", "ivan")
    pid = launched(server, tmp_path, SPIN, "ivan")
    running = start(["attach", pid, "--no-stdin", *to])
    assert running.stdout is not None
    assert running.stdout.readline() == "spinning\n"
    refused = pie("attach", pid, "--no-stdin", *to)
    assert (refused.returncode, refused.stderr.split("]")[0]) == (1, "error[process-attached")
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=PATIENCE_S)
    ends = f"`pie stop {pid} --server {server.url}` ends it"
    assert (running.returncode, stderr) == (130, f"detached from process {pid}, which goes on; {ends}\n")
    with subprocess.Popen(
        command(["attach", pid, "--no-stdin", *to]), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as again:
        assert pie("stop", pid, *to).returncode == 0
        _, stderr = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 1
    assert stderr.startswith("error[cancelled]: ")


def test_stop_waits_until_the_process_has_ended(server: Served, tmp_path: Path) -> None:
    to = ("--server", server.url, "--user", "judy")
    pids = [launched(server, tmp_path, SPIN, "judy") for _ in range(2)]
    assert pie("stop", *pids, *to).returncode == 0
    assert pie("ps", *to).stdout.splitlines()[1:] == []


def test_logs_show_an_error_once(server: Served, tmp_path: Path) -> None:
    to = ("--server", server.url, "--user", "karl")
    pid = launched(server, tmp_path, FAILING, "karl")
    done = pie("logs", pid, "--follow", *to)
    assert (done.returncode, done.stderr) == (0, "error[program-error]: the program ended with the ValueError above\n")
    assert done.stdout.startswith("begun\nTraceback")
    assert done.stdout.endswith("ValueError: boom\n")
    assert (done.stdout + done.stderr).count("Traceback") == 1


@scenario
async def test_how_a_process_ended_is_kept_after_its_events_were_taken(server: Served, tmp_path: Path) -> None:
    async with client_of(server, "leo") as client:
        (tmp_path / "p.py").write_text("def main(input):\n    return [input, None]\n")
        process = await client.launch(await client.upload(tmp_path / "p.py"), input={"a": 1})
        assert await process.result() == [{"a": 1}, None]
        await ended(client, process.pid)
        outcome = await client.outcome(process.pid)
        assert outcome is not None
        assert outcome.value == [{"a": 1}, None]
        assert await exit_of(client, process.pid) == "return"


@scenario
async def test_nobody_attaches_beyond_the_last_event(server: Served, tmp_path: Path) -> None:
    async with client_of(server, "oskar") as client:
        (tmp_path / "p.py").write_text(ECHO)
        process = await client.launch(await client.upload(tmp_path / "p.py"))
        ready = await anext(process.events())
        assert ready.seq == 1
        await process.detach()
        with pytest.raises(PieError, match=f"after_seq = 99 is beyond 1, the number of the last event of process {process.pid}") as caught:
            await client.attach(process.pid, after_seq=99)
        assert caught.value.code == "invalid-argument"
        again = await client.attach(process.pid, after_seq=ready.seq)
        await again.close_input()
        assert await again.result() == 0


def numbers(served: Served, folder: Path, n: int) -> list[int]:
    """Launches programs one after the other; returns their numbers."""
    return [int(launched(served, folder, "def main():\n    pass\n", "mallory")) for _ in range(n)]


def test_a_number_names_no_other_process_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        first = numbers(served, tmp_path, 2)
        served.signal(signal.SIGTERM)
        assert served.wait() == 0
    with serving(tmp_path) as served:
        second = numbers(served, tmp_path, 1)
        served.signal(signal.SIGKILL)
        served.wait()
    with serving(tmp_path) as served:
        third = numbers(served, tmp_path, 1)
        unknown = pie("logs", str(first[0]), "--server", served.url, "--user", "mallory")
    assert len({*first, *second, *third}) == 4
    assert unknown.stderr.startswith("error[unknown-process]: ")


def test_a_damaged_file_of_numbers_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "process-numbers").write_text("many\n")
    done = subprocess.run(
        command(["serve", "--dummy", "--port", "0"]),
        env=environment() | {"PIE_ENGINE__DATA_DIR": str(tmp_path / "data")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[invalid-config]: the file ")
    assert "process-numbers holds no process number; remove it to number from the beginning again" in done.stderr


def test_a_program_that_is_not_installed_is_not_to_be_installed_to_remove_it(server: Served) -> None:
    done = pie("uninstall", "greet@2.1", "--server", server.url, "--user", "nina")
    assert (done.returncode, done.stdout) == (1, "")
    asked = f"`pie programs --user nina --server {server.url}`"
    assert done.stderr == f'error[unknown-program]: "nina" has no program "greet@2.1"; {asked} lists those there are\n'
