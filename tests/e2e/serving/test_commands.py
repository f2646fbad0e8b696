"""The commands of a client against a real server."""

from __future__ import annotations

import json
import signal
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest

from support.command import PATIENCE_S, command, environment, pie, start
from support.launching import ROOT
from support.serving import ECHO, MODEL, SPIN, Served, client_of, refused, scenario, serving


@pytest.mark.parametrize("path", ["examples/python/chat.py", "examples/typescript/chat.ts", "build/programs/chat.wasm"])
def test_an_example_prints_the_same_here_and_in_a_server(server: Served, path: str) -> None:
    arguments = (str(ROOT / path), "--seed", "7")
    here = pie("run", *arguments, "--dummy", "--", "--max-tokens", "16")
    there = pie("run", *arguments, "--server", server.url, "--", "--max-tokens", "16")
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, "")


def test_a_program_is_installed_listed_run_and_removed(server: Served, tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text("def main(input):\n    return 'hello ' + input['name']\n")
    to = ("--server", server.url, "--user", "carol")
    assert pie("install", "greet.py", "--version", "2.1", *to, cwd=tmp_path).stdout == "greet@2.1\n"
    done = pie("programs", *to)
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["NAME", "VERSION"], ["greet", "2.1"]]
    for name in ("greet", "greet@2.1"):
        assert pie("run", name, *to, "--", "--name", "you").stdout == "hello you\n"
        listed = pie("ps", "--all", *to).stdout.splitlines()
        told = pie("run", name, *to, "--", "--help")
        assert len(pie("ps", "--all", *to).stdout.splitlines()) == len(listed)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.startswith("greet@2.1\nA server does not tell what its programs take: `pie run PATH -- --help` does")
    assert pie("uninstall", "greet@2.1", *to).returncode == 0
    done = pie("run", "greet", *to)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[unknown-program]")
    assert f"`pie programs --user carol --server {server.url}`" in done.stderr
    told = pie("run", "greet", *to, "--", "--help")
    assert (told.returncode, told.stdout, told.stderr.split("]")[0]) == (1, "", "error[unknown-program")


def test_a_detached_program_is_listed_logged_and_stopped(server: Served, tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(SPIN)
    to = ("--server", server.url, "--user", "dave")
    done = pie("run", "spin.py", "--detach", *to, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pid = done.stdout.strip()
    with subprocess.Popen(command(["logs", pid, "--follow", *to]), env=environment(), stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "spinning\n"
        [_, line] = pie("ps", *to).stdout.splitlines()
        assert line.split()[0] == pid
        assert "running" in line
        assert pie("stop", pid, *to).returncode == 0
        assert following.wait(PATIENCE_S) == 0
    assert len(pie("ps", *to).stdout.splitlines()) == 1
    assert "ended (cancelled)" in pie("ps", "--all", *to).stdout
    assert pie("logs", pid, *to).stdout == "spinning\n"
    done = pie("stop", "999999", *to)
    assert (done.returncode, done.stderr.split("]")[0]) == (1, "error[unknown-process")


def test_lines_on_stdin_reach_a_program_in_a_server(server: Served, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    done = pie("run", "echo.py", "--server", server.url, cwd=tmp_path, stdin="one\nzwei ü\n\nlast")
    assert (done.returncode, done.stdout) == (0, "ready<one><zwei ü><><last>\n4\n")


def test_more_lines_than_a_queue_holds_wait_for_the_program(server: Served, tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(
        "from inferlet import session\nasync def main(input):\n    n = 0\n    try:\n        while True:\n"
        "            await session.receive()\n            n += 1\n    except session.SessionClosed:\n        return n\n"
    )
    assert pie("run", "count.py", "--server", server.url, cwd=tmp_path, stdin="line\n" * 5_000).stdout == "5000\n"


def test_errors_have_the_same_form_as_here(server: Served, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def main(input):\n    return {}['x']\n")
    here = pie("run", "bad.py", "--dummy", "--seed", "1", cwd=tmp_path)
    there = pie("run", "bad.py", "--server", server.url, "--seed", "1", cwd=tmp_path)
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert here.returncode == 1


@pytest.mark.rows("SES-042..044")
def test_standard_error_reaches_the_terminal_and_the_log_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "warn.py").write_text("import sys\ndef main(input):\n    print('on stdout')\n    print('mind the gap', file=sys.stderr)\n")
    with serving(tmp_path) as served:
        for where in (["--dummy"], ["--server", served.url]):
            done = pie("run", "warn.py", *where, "--seed", "1", cwd=tmp_path)
            assert (done.returncode, done.stdout, done.stderr) == (0, "on stdout\n", "mind the gap\n")
        line = served.logged("mind the gap")
        assert 'program="warn.py (sha256:' in line
        assert " WARN pie::program: " in line


def test_a_server_tells_of_each_launch_and_each_end(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def main(input):\n    return 1\n")
    (tmp_path / "bad.py").write_text("def main(input):\n    return {}['x']\n")
    with serving(tmp_path / "server") as served:
        to = ("--server", served.url, "--user", "heidi")
        assert pie("run", "one.py", *to, cwd=tmp_path).stdout == "1\n"
        assert "one.py (sha256:" in served.logged("launched: one.py")
        ended = served.logged("(return): one.py")
        assert "pie::process: process " in ended
        assert ended.endswith(" of heidi")
        assert pie("run", "bad.py", *to, cwd=tmp_path).returncode == 1
        assert "(return)" not in served.logged("): bad.py")
        assert pie("install", "one.py", "--version", "2.0", *to, cwd=tmp_path).returncode == 0
        assert pie("run", "one@2.0", *to, cwd=tmp_path).returncode == 0
        served.logged("launched: one@2.0 of heidi")


@pytest.mark.parametrize(
    ("options", "has_lines"), [(["--quiet"], False), (["--log-level", "error"], False), (["--log-level", "warn"], True)]
)
def test_a_server_is_as_quiet_as_it_is_told(tmp_path: Path, options: list[str], has_lines: bool) -> None:
    (tmp_path / "warn.py").write_text("import sys\ndef main(input):\n    print('mind the gap', file=sys.stderr)\n")
    with serving(tmp_path / "server", "--dummy", "--port", "0", *options) as served:
        done = pie("run", "warn.py", "--server", served.url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        if has_lines:
            served.logged("(return): warn.py")
        served.signal(signal.SIGTERM)
        assert served.wait() == 0
        assert ("mind the gap" in served.stderr) == has_lines
        assert ("pie::process" in served.stderr) == has_lines


def test_uploads_are_listed_by_the_names_of_their_files(server: Served, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(ECHO)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "main.py").write_text(ECHO + "\n")
    to = ("--server", server.url, "--user", "ivan")
    names = ("waits.py", "folder")
    pids = [pie("run", name, "--detach", *to, cwd=tmp_path).stdout.strip() for name in names]
    rows = [line.split() for line in pie("ps", *to).stdout.splitlines()[1:]]
    assert [row[:2] for row in rows] == [list(row) for row in zip(pids, names, strict=True)]
    listed = json.loads(pie("ps", "--json", *to).stdout)
    assert [(row["name"], row["program"].partition(":")[0]) for row in listed] == [(name, "sha256") for name in names]
    assert pie("kill", *pids, *to).returncode == 0
    assert len(pie("ps", *to).stdout.splitlines()) == 1


def test_an_address_may_be_written_as_it_is_known(server: Served) -> None:
    for address in (f"127.0.0.1:{server.port}", f"http://127.0.0.1:{server.port}", f"localhost:{server.port}"):
        done = pie("ps", "--server", address)
        assert (done.returncode, done.stderr) == (0, ""), address


def test_an_installed_program_runs_in_the_server_of_the_configuration(server: Served, tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text("def main(input):\n    return 'hello ' + input['name']\n")
    configured = environment() | {"PIE_CLIENT__URL": server.url, "PIE_CLIENT__USER": "judy"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(arguments), cwd=tmp_path, env=configured, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    assert run("install", "greet.py", "--version", "1.0").stdout == "greet@1.0\n"
    assert run("run", "greet@1.0", "--", "--name", "you").stdout == "hello you\n"
    watched = run("run", "greet@1.0", "--watch")
    assert (watched.returncode, watched.stdout) == (1, "")
    assert "leave --watch out" in watched.stderr


def test_shells_are_offered_what_a_server_has(server: Served, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(ECHO)
    to = ("--server", server.url, "--user", "kim")
    assert pie("install", "waits.py", "--version", "3.0", *to, cwd=tmp_path).returncode == 0
    pid = pie("run", "waits.py", "--detach", *to, cwd=tmp_path).stdout.strip()

    def offered(line: str, **variables: str) -> list[str]:
        words = environment() | {"_PIE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))} | variables
        done = subprocess.run(command([]), cwd=tmp_path, env=words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.split()

    known = {"PIE_CLIENT__URL": server.url, "PIE_CLIENT__USER": "kim"}
    assert offered("pie stop ", **known) == [pid]
    assert offered(f"pie logs --server {server.url} --user kim {pid[0]}") == [pid]
    assert offered("pie run wa", **known) == ["waits.py", "waits@3.0"]
    assert offered("pie uninstall ", **known) == ["waits@3.0"]
    assert offered("pie stop ", PIE_CLIENT__URL="ws://127.0.0.1:1") == []
    assert "server.port" in offered("pie config set server.p")
    assert pie("stop", pid, *to).returncode == 0


@scenario
async def test_a_program_that_is_called_by_its_file_is_told_of_uploads(server: Served) -> None:
    async with client_of(server) as client:
        error = await refused(client.launch("story.py"))
    assert error.code == "unknown-program"
    assert "`run(path, input)` uploads and launches it, and `upload(path)` returns what can be launched" in error.message


@scenario
async def test_an_upload_that_is_not_built_is_told_of_pie_build(server: Served) -> None:
    async with client_of(server) as client:
        process = await client.launch(await client.upload(b"def main(input):\n    return 1\n"))
        error = await refused(process.result())
    assert error.code == "invalid-program"
    assert "is not WebAssembly" in error.message
    assert "give what `pie build` makes of a program" in error.message


@scenario
async def test_the_digest_of_another_connection_is_told_how_long_an_upload_lasts(server: Served) -> None:
    async with client_of(server) as client:
        digest = await client.upload(b"anything", name="story.py")
    async with client_of(server) as client:
        error = await refused(client.launch(digest))
    assert error.code == "unknown-program"
    assert "an upload lasts as long as the connection that sent it" in error.message


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 129, "\x1b[31m"])
@scenario
async def test_a_name_that_cannot_be_shown_is_refused(server: Served, name: str) -> None:
    async with client_of(server) as client:
        error = await refused(client.upload(b"anything", name=name))
        assert error.code == "invalid-name"
        await client.upload(b"anything", name="größer.py")


def test_a_browser_is_told_what_the_port_is(server: Served) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    connection.request("GET", "/", headers={"Accept": "text/html"})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert (answer.status, answer.getheader("Content-Type")) == (426, "text/plain; charset=utf-8")
    assert f"pie ps --server 127.0.0.1:{server.port} " in body


def test_ctrl_c_ends_the_program_in_the_server(server: Served, tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(SPIN)
    to = ("--server", server.url, "--user", "erin")
    running = start(["run", "spin.py", *to], tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "spinning\n"
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, stderr) == (130, "")
    [pid] = [line.split()[0] for line in pie("ps", "--all", *to).stdout.splitlines()[1:]]
    assert pie("logs", pid, "--follow", *to).stdout == "spinning\n"
    assert "ended (cancelled)" in pie("ps", "--all", *to).stdout


def test_a_reader_that_goes_away_ends_the_program(server: Served, tmp_path: Path) -> None:
    (tmp_path / "flood.py").write_text("def main(input):\n    while True:\n        print('x' * 1000)\n")
    to = ("--server", server.url, "--user", "frank")
    line = " ".join([*command(["run", "flood.py", *to]), "| head -c 100 > /dev/null; exit ${PIPESTATUS[0]}"])
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    [pid] = [line.split()[0] for line in pie("ps", "--all", *to).stdout.splitlines()[1:]]
    assert pie("logs", pid, "--follow", *to).returncode == 0
    assert "ended (cancelled)" in pie("ps", "--all", *to).stdout


def test_where_the_server_is_may_be_configured(server: Served, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'[client]\nurl = "{server.url}"\nuser = "grace"\n')
    configured = environment() | {"PIE_CONFIG": str(tmp_path / "c.toml")}
    done = subprocess.run(command(["ps"]), env=configured, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["PID", "PROGRAM"])


def test_options_that_mean_nothing_with_a_server(server: Served, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    return 1\n")
    for options in (["--dummy", "--server", server.url], ["--detach"]):
        done = pie("run", "p.py", *options, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error[invalid-argument]")


def test_what_run_reports_of_a_remote_run(server: Served, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    return 1\n")
    done = pie("run", "p.py", "--server", server.url, "--seed", "9", "--verbose", cwd=tmp_path)
    assert json.loads(done.stderr)["launch_seed"] == 9


def test_adapters_are_listed_and_deleted(tmp_path: Path) -> None:
    source = 'from inferlet import Adapter, Model\n\n\ndef main(input):\n    Adapter.create(Model.load("default"), "terse", rank=2)\n'
    (tmp_path / "make.py").write_text(source)
    with serving(tmp_path / "served", server__operators="root") as served:
        ann, root = (("--server", served.url, "--user", user) for user in ("ann", "root"))
        made = pie("run", "make.py", *ann, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        columns, row = (line.split() for line in pie("adapter", "list", *ann).stdout.splitlines())
        assert (columns, row[:2]) == (["MODEL", "NAME", "SIZE"], [MODEL, "terse"])
        assert json.loads(pie("adapter", "list", "--json", *root).stdout) == []
        [listed] = json.loads(pie("adapter", "list", "--all-users", "--json", *root).stdout)
        assert (listed["user"], listed["model"], listed["name"], listed["bytes"] > 0) == ("ann", MODEL, "terse", True)
        # Of another user it is not there, unless an operator says whose it is.
        absent = pie("adapter", "delete", MODEL, "terse", *root)
        assert absent.returncode == 1
        assert absent.stderr == 'error[adapter-missing]: there is no adapter "terse"; this user has no adapters of this model\n'
        mistyped = pie("adapter", "delete", MODEL, "tarse", *ann)
        assert 'did you mean "terse"? The adapters of this user are "terse"' in mistyped.stderr
        assert pie("adapter", "delete", MODEL, "terse", "--of", "ann", *root).returncode == 0
        assert json.loads(pie("adapter", "list", "--json", *ann).stdout) == []
        # The name is free again.
        assert pie("run", "make.py", *ann, cwd=tmp_path).returncode == 0
        unknown = pie("adapter", "delete", "nothing", "terse", *ann)
        assert unknown.stderr.startswith("error[unknown-model]")
