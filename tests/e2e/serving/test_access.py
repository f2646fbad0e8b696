"""Who may come in, as whom, and what operators see."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect as raw_connect

from pie import _engine
from pie.client import Client, PieError, PrivateKey, connect
from support.command import PATIENCE_S, command
from support.serving import ECHO, MODEL, Served, install_source, refused, scenario, server_environment, serving
from support.verbs import verbs

CLIENT = {"type": "hello", "protocol": 1}

# What only looks, or says what was taken. The audit says nothing of it.
LOOKS = {"ping", "programs", "processes", "snapshots", "adapters", "topics", "connections", "logs", "outcome", "stats", "detach"}

PUSH = """
from inferlet import messaging


def main(input):
    for _ in range(3):
        messaging.push("jobs", "x" * 100)
"""


def run(folder: Path, *arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """A command with the data folder of the server of `folder`."""
    return subprocess.run(
        command(arguments),
        env=server_environment(folder, **settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def add_key(folder: Path, user: str, **options: Any) -> tuple[str, str]:
    """A key in the data folder: its id and its text."""
    record, text = _engine.add_key(str(folder / "data"), "test", user, **options)
    return json.loads(record)["id"], text or ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """A key of each scope."""
    return {scope: add_key(folder, f"{scope}-1", scope=scope)[1] for scope in ("read", "user", "operator")}


@pytest.fixture(scope="module")
def closed(folder: Path, keys: dict[str, str]) -> Iterator[Served]:
    """A server that has to know its clients."""
    assert keys
    with serving(folder, server__auth="on", server__audit_log=folder / "audit.jsonl") as served:
        yield served


async def pinging(client: Client) -> None:
    """Goes on until the connection ends."""
    while True:
        await client.ping()
        await asyncio.sleep(0.01)


def code_of(served: Served, **options: Any) -> str:
    """How an attempt to come in ends."""

    async def attempt() -> str:
        try:
            async with connect(served.url, **options) as client:
                return client.role
        except PieError as error:
            return error.code

    return asyncio.run(attempt())


def test_keys_open_what_their_scope_says(closed: Served, keys: dict[str, str]) -> None:
    assert code_of(closed) == code_of(closed, user="alice") == "authentication-required"
    assert {scope: code_of(closed, key=key) for scope, key in keys.items()} == {scope: scope for scope in keys}
    assert code_of(closed, key=keys["user"], user="user-1") == "user"
    assert code_of(closed, key=keys["user"], user="bob") == "authentication-failed"


def test_a_key_is_made_used_and_revoked_by_commands(closed: Served, folder: Path) -> None:
    made = run(folder, "key", "add", "laptop", "--user", "carol", "--expires", "30d")
    assert made.returncode == 0, made.stderr
    key, key_id = made.stdout.strip(), made.stderr.split()[1]
    assert key.startswith(f"pie_{key_id}_")
    listed = run(folder, "key", "list").stdout
    assert [line.split()[:4] for line in listed.splitlines() if key_id in line] == [[key_id, "laptop", "carol", "user"]]
    assert key[20:] not in listed + run(folder, "key", "list", "--json").stdout + (folder / "data/keys.json").read_text()
    (folder / "key").write_text(f"{key}\n")
    to = {"client__url": closed.url}
    for settings in ({"key": key}, {"client__key": key}, {"client__key_file": folder / "key"}):
        done = run(folder, "stats", **to, **settings)
        assert (done.returncode, json.loads(done.stdout or "{}").get("user")) == (0, "carol"), done.stderr
        shown = run(folder, "config", "show", **to, **settings)
        assert (shown.returncode, key in shown.stdout) == (0, False)
    assert run(folder, "programs", "--key", key, **to).returncode == 0

    async def stays() -> None:
        async with connect(closed.url, key=key) as client:
            revoked = await asyncio.to_thread(run, folder, "key", "revoke", key_id)
            assert revoked.returncode == 0, revoked.stderr
            error = await refused(pinging(client))
            assert error.code == "authentication-failed"
            assert "revoked or has expired; ask the operator" in error.message

    asyncio.run(asyncio.wait_for(stays(), PATIENCE_S))
    assert code_of(closed, key=key) == "authentication-failed"
    assert run(folder, "key", "revoke", key_id).stderr.startswith("error[unknown-key]")


def test_a_key_is_revoked_by_its_id_and_its_name_says_which_that_is(tmp_path: Path) -> None:
    key_id = run(tmp_path, "key", "add", "laptop", "--user", "carol").stderr.split()[1]
    by_name = run(tmp_path, "key", "revoke", "laptop")
    told = f'"laptop" is the name of a key and not its ID: {key_id} of "carol"; write `pie key revoke {key_id}`'
    assert (by_name.returncode, by_name.stderr) == (1, f"error[unknown-key]: {told}\n")
    assert run(tmp_path, "key", "revoke", key_id).returncode == 0
    assert run(tmp_path, "key", "revoke", "laptop").stderr.endswith("`pie key list` lists them\n")


def test_a_key_that_is_added_twice_is_told_of_with_the_first(tmp_path: Path) -> None:
    add = ("key", "add", "laptop", "--user", "carol")
    first = run(tmp_path, *add)
    first_id = first.stderr.split()[1]
    assert "warning" not in first.stderr
    again = run(tmp_path, *add)
    assert (again.returncode, again.stdout.startswith("pie_")) == (0, True)
    assert f"warning: 'carol' has another key 'laptop', {first_id} (user, secret, made " in again.stderr
    assert f"`pie key revoke {first_id}` takes it away" in again.stderr
    for other in (("key", "add", "laptop", "--user", "dave"), ("key", "add", "desktop", "--user", "carol")):
        assert "warning" not in run(tmp_path, *other).stderr
    public = tmp_path / "id.pub"
    public.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH me\n")
    signing = ("key", "add", "ssh", "--user", "carol", "--public-key", str(public))
    signing_id = run(tmp_path, *signing).stderr.split()[1]
    refused_again = run(tmp_path, *signing)
    assert (refused_again.returncode, refused_again.stdout) == (1, "")
    told = f'that public key is there already: {signing_id}, "ssh" of "carol" (user); `pie key revoke {signing_id}` takes it away'
    assert refused_again.stderr == f"error[invalid-argument]: {told}\n"


@pytest.mark.parametrize(
    ("command_line", "needed"),
    [
        (["stop", "1"], '`pie stop` needs the role "user"'),
        (["attach", "1", "--no-stdin"], '`pie attach` needs the role "user"'),
        (["run", "greet@1"], '`pie run` needs the role "user"'),
        (["uninstall", "greet@1"], '`pie uninstall` needs the role "user"'),
        (["topic", "discard", "jobs"], '`pie topic discard` needs the role "user"'),
        (["snapshot", "delete", "default", "s"], '`pie snapshot delete` needs the role "user"'),
        (["adapter", "delete", "default", "a"], '`pie adapter delete` needs the role "user"'),
        (["connection", "end", "1"], '`pie connection end` needs the role "operator"'),
        (["connection", "list"], '`pie connection list` needs the role "operator"'),
        (["ps", "--all-users"], '`--all-users` needs the role "operator"'),
    ],
)
def test_a_command_that_needs_another_role_is_told_as_it_is_typed(
    closed: Served, folder: Path, keys: dict[str, str], command_line: list[str], needed: str
) -> None:
    done = run(folder, *command_line, "--server", closed.url, client__key=keys["read"])
    told = f'{needed}, and yours is "read"; ask the operator of the server for a key of that scope'
    assert (done.returncode, done.stderr) == (1, f"error[not-permitted]: {told}\n")


def test_mistakes_are_told_without_the_key(closed: Served, folder: Path, keys: dict[str, str]) -> None:
    damaged = keys["user"][:-1] + ("0" if keys["user"][-1] != "0" else "1")
    for options in (["--key", damaged], ["--key", f"{keys['user']}x"]):
        done = run(folder, "ps", *options, client__url=closed.url)
        assert (done.returncode, done.stderr.split("]")[0]) == (1, "error[invalid-argument")
        assert keys["user"][20:60] not in done.stderr
    nobody = run(folder, "ps", "--private-key", "/nowhere", client__url=closed.url)
    told = "a private key counts together with a user; add --user NAME, or set client.user"
    assert (nobody.returncode, nobody.stderr) == (1, f"error[invalid-argument]: {told}\n")
    a_folder = run(folder, "ps", "--user", "dora", "--private-key", ".", client__url=closed.url)
    assert a_folder.stderr == "error[invalid-argument]: '.' is a folder; give the file with the private key\n"
    both = run(folder, "ps", client__url=closed.url, client__key=keys["user"], client__private_key="/nowhere")
    assert both.stderr.startswith("error[invalid-config]")
    for arguments, code in (
        (["add", "x", "--user", "../x"], "invalid-name"),
        (["add", "x", "--user", "a", "--expires", "soon"], "invalid-argument"),
        (["add", "x", "--user", "a", "--public-key", "/dev/null"], "invalid-argument"),
    ):
        assert run(folder, "key", *arguments).stderr.startswith(f"error[{code}]")
    assert keys["user"] not in closed.stderr


@pytest.mark.parametrize("kind", [["ed25519"], ["ecdsa", "-b", "256"], ["ecdsa", "-b", "384"], ["rsa", "-b", "2048"]])
def test_a_signature_opens(closed: Served, folder: Path, tmp_path: Path, kind: list[str]) -> None:
    made = ["ssh-keygen", "-q", "-t", *kind, "-N", "", "-C", "me@home", "-f", str(tmp_path / "id")]
    subprocess.run(made, check=True, timeout=PATIENCE_S)
    added = run(folder, "key", "add", "ssh", "--user", "dora", "--scope", "read", "--public-key", str(tmp_path / "id.pub"))
    assert (added.returncode, added.stdout) == (0, ""), added.stderr
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", str(tmp_path / "id.pub")], check=True, capture_output=True, text=True
    ).stdout.split()[1]
    assert fingerprint in added.stderr
    assert code_of(closed, user="dora", private_key=tmp_path / "id") == "read"
    assert code_of(closed, user="carol", private_key=PrivateKey.load(tmp_path / "id")) == "authentication-failed"
    done = run(folder, "ps", "--user", "dora", "--private-key", str(tmp_path / "id"), client__url=closed.url)
    assert done.returncode == 0, done.stderr
    public = run(folder, "ps", "--user", "dora", "--private-key", str(tmp_path / "id.pub"), client__url=closed.url)
    half = "this is the public half of a key, which the operator of a server adds"
    told = f"{half}; give the private half, which lies in the file without .pub"
    assert (public.returncode, public.stderr) == (1, f"error[invalid-argument]: {told}\n")
    assert run(folder, "key", "add", "again", "--user", "x", "--public-key", str(tmp_path / "id")).stderr.startswith(
        "error[invalid-argument]"
    )


def test_a_signature_is_for_one_challenge(closed: Served, folder: Path, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "id")], check=True, timeout=PATIENCE_S)
    assert run(folder, "key", "add", "ssh", "--user", "erin", "--public-key", str(tmp_path / "id.pub")).returncode == 0
    key = PrivateKey.load(tmp_path / "id")
    old = ""

    def enter(host: str, nonce: str = "") -> str:
        nonlocal old
        with raw_connect(closed.url) as one:
            one.send(json.dumps(CLIENT | {"user": "erin", "public_key": key.public_line}))
            challenge = json.loads(one.recv(PATIENCE_S))
            assert challenge.keys() == {"type", "nonce"}
            old = old or challenge["nonce"]
            signature = key.sign_hello(host=host, user="erin", nonce=nonce or challenge["nonce"])
            one.send(json.dumps({"type": "proof", "signature": signature}))
            answer = json.loads(one.recv(PATIENCE_S))
            return str(answer.get("role") or answer["error"]["code"])

    host = closed.url.removeprefix("ws://")
    assert enter(host) == "user"
    assert enter(host, nonce=old) == "authentication-failed"
    assert enter("evil.example:80") == "authentication-failed"


@scenario
async def test_roles_bound_what_may_be_asked(closed: Served, keys: dict[str, str], tmp_path: Path) -> None:
    async with (
        connect(closed.url, key=keys["read"]) as reader,
        connect(closed.url, key=keys["user"]) as user,
        connect(closed.url, key=keys["operator"]) as operator,
    ):
        program = await install_source(user, tmp_path, ECHO, "echo")
        process = await user.launch(program, detached=True)
        assert (await reader.list(), await reader.programs(), await reader.snapshots(), await reader.adapters()) == ([], [], [], [])
        assert "server" not in await reader.stats()
        for call in (
            reader.launch("x"),
            reader.attach(1),
            reader.terminate(1),
            reader.uninstall("x", "1"),
            reader.delete_snapshot("m", "n"),
            reader.delete_adapter("m", "n"),
        ):
            assert (await refused(call)).code == "not-permitted"
        for call in (user.list(all_users=True), user.programs(all_users=True), user.snapshots(all_users=True)):
            assert (await refused(call)).code == "not-permitted"
        assert (await refused(user.uninstall("x", "1", user="other"))).code == "not-permitted"
        assert [(one.pid, one.user) for one in await operator.list(all_users=True)] == [(process.pid, "user-1")]
        assert [one.user for one in await operator.programs(all_users=True)] == ["user-1"]
        whole = (await operator.stats())["server"]
        assert (whole["n_live"], whole["users"]["user-1"]["n_live"]) == (1, 1)
        assert (await operator.logs(process.pid, follow=True)).text == "ready"
        assert (await refused(operator.attach(process.pid))).code == "unknown-process"
        await operator.terminate(process.pid)
        with pytest.raises(PieError, match="operator"):
            await process.result()
        await operator.uninstall("echo", "0.1.0", user="user-1")
        assert await user.programs() == []


def test_the_audit_names_who_did_what(closed: Served, folder: Path, keys: dict[str, str]) -> None:
    assert code_of(closed) == "authentication-required"
    key_id = keys["operator"].split("_")[1]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
        told = {(line["user"], line["key"], line["verb"], line["outcome"]) for line in lines}
        if ("operator-1", key_id, "uninstall", "ok") in told or time.monotonic() > deadline:
            break
    assert {
        ("operator-1", key_id, "terminate", "ok"),
        ("operator-1", key_id, "uninstall", "ok"),
        ("read-1", keys["read"].split("_")[1], "launch", "not-permitted"),
        ("user-1", keys["user"].split("_")[1], "launch", "ok"),
        ("", None, "hello", "authentication-required"),
        (None, None, "keys", "ok"),
    } <= told
    assert (folder / "audit.jsonl").stat().st_mode & 0o777 == 0o600


@scenario
async def test_the_audit_tells_of_every_verb_that_changes_something(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    with serving(tmp_path, server__audit_log=audit, server__operators="root") as served:
        async with connect(served.url, user="alice") as alice, connect(served.url, user="bob") as bob:
            program = await install_source(alice, tmp_path, ECHO, "echo")
            process = await alice.launch(program, detached=True)
            for _ in range(20):
                await process.send("x")
            await process.signal("y")
            await process.transfer_file(b"z")
            for _ in range(3):
                assert (await refused(bob.terminate(process.pid))).code == "unknown-process"
            await process.detach()
            again = await alice.attach(process.pid)
            await again.close_input()
            assert (await refused(again.send("late"))).code == "session-closed"
            await alice.terminate(process.pid)
            await alice.uninstall("echo", "0.1.0")
            assert (await refused(alice.delete_snapshot(MODEL, "none"))).code == "snapshot-missing"
            assert (await refused(alice.delete_adapter(MODEL, "none"))).code == "adapter-missing"
            assert await alice.discard_topic("jobs") == 0
            await alice.register_mcp_server("files", "unused")
            await alice.unregister_mcp_server("files")
            async with connect(served.url, user="root") as root:
                number = next(one.connection for one in await root.connections() if one.user == "alice")
                await root.disconnect(number)
            assert (await refused(pinging(alice))).code == "cancelled"
        deadline, told = time.monotonic() + PATIENCE_S, Counter[tuple[str, str, str]]()
        while told["root", "disconnect", "ok"] == 0 and time.monotonic() < deadline:
            lines = [json.loads(line) for line in audit.read_text().splitlines()]
            told = Counter((line["user"], line["verb"], line["outcome"]) for line in lines)
    assert told == {
        ("alice", "upload", "ok"): 1,
        ("alice", "install", "ok"): 1,
        ("alice", "launch", "ok"): 1,
        ("alice", "send", "ok"): 1,
        ("alice", "send", "session-closed"): 1,
        ("alice", "signal", "ok"): 1,
        ("alice", "file", "ok"): 1,
        ("alice", "attach", "ok"): 1,
        ("alice", "close_input", "ok"): 1,
        ("alice", "terminate", "ok"): 1,
        ("bob", "terminate", "unknown-process"): 3,
        ("alice", "uninstall", "ok"): 1,
        ("alice", "delete_snapshot", "snapshot-missing"): 1,
        ("alice", "delete_adapter", "adapter-missing"): 1,
        ("alice", "discard_topic", "ok"): 1,
        ("alice", "register_mcp_server", "ok"): 1,
        ("alice", "unregister_mcp_server", "ok"): 1,
        ("root", "disconnect", "ok"): 1,
    }
    assert {verb for _, verb, _ in told} == verbs() - LOOKS


@scenario
async def test_operators_see_and_end_connections_and_messages(tmp_path: Path) -> None:
    with serving(tmp_path, server__operators="root") as served:
        to = {"client__url": served.url}

        async def done(*arguments: str) -> subprocess.CompletedProcess[str]:
            return await asyncio.to_thread(run, tmp_path, *arguments, **to)

        async with connect(served.url, user="alice") as alice:
            await install_source(alice, tmp_path, PUSH, "push")
            await (await alice.launch("push")).result()
            [topic] = await alice.topics()
            assert (topic.topic, topic.queued, topic.queued_bytes, topic.user) == ("jobs", 3, 300, None)
            for call in (alice.connections(), alice.disconnect(1), alice.topics(all_users=True), alice.discard_topic("jobs", user="bob")):
                assert (await refused(call)).code == "not-permitted"
            listed = await done("topic", "list", "--all-users", "--json", "--user", "root")
            assert [(row["user"], row["topic"], row["queued"]) for row in json.loads(listed.stdout)] == [("alice", "jobs", 3)], (
                listed.stderr
            )
            assert (await done("topic", "list", "--user", "alice")).stdout.split()[-6:] == ["jobs", "3", "300", "0", "0", "0"]
            absent = await done("topic", "discard", "jobs", "--user", "bob")
            told = "warning: 'bob' has no topic 'jobs' in use, which `pie topic list` would list\n"
            assert (absent.returncode, absent.stdout, absent.stderr) == (0, "0\n", told)
            near = await done("topic", "discard", "job", "--of", "alice", "--user", "root")
            told = "'alice' has no topic 'job' in use, which `pie topic list --all-users` would list; did you mean 'jobs'?"
            assert (near.stdout, near.stderr) == ("0\n", f"warning: {told}\n")
            discarded = await done("topic", "discard", "jobs", "--of", "alice", "--user", "root")
            assert (discarded.stdout, discarded.stderr) == ("3\n", "")
            assert await alice.topics() == []
            clients = json.loads((await done("connection", "list", "--json", "--user", "root")).stdout)
            told = [(row["user"], row["role"], row["address"], row["key"]) for row in clients]
            # Commands of before may be about to go.
            assert (told[0], told[-1]) == (("alice", "user", "127.0.0.1", None), ("root", "operator", "127.0.0.1", None))
            shown = await done("connection", "list", "--user", "root")
            assert shown.stdout.splitlines()[1].split()[1:3] == ["alice", "user"]
            number = str(clients[0]["connection"])
            process = await alice.launch("push", detached=True)
            ended = await done("connection", "end", number, "--user", "root")
            assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
            error = await refused(pinging(alice))
            assert (error.code, "operator" in error.message) == ("cancelled", True)
            again = await done("connection", "end", number, "--user", "root")
            assert (again.returncode, again.stderr.split()[0]) == (1, "error[invalid-argument]:")
        async with connect(served.url, user="alice") as alice:
            assert await alice.outcome(process.pid) is not None or process.pid in [one.pid for one in await alice.list()]


def test_a_trusted_proxy_names_the_user(tmp_path: Path) -> None:
    def enter(served: Served, headers: list[tuple[str, str]], **fields: str) -> str:
        with raw_connect(served.url, additional_headers=headers) as one:
            one.send(json.dumps(CLIENT | fields))
            answer = json.loads(one.recv(PATIENCE_S))
            return f"{answer['user']} {answer['role']}" if "user" in answer else str(answer["error"]["code"])

    with serving(tmp_path / "proxied", server__trusted_proxies="127.0.0.1,10.0.0.0/8", server__operators="root") as served:
        assert enter(served, [("X-Pie-User", "alice")]) == "alice user"
        assert enter(served, [("x-pie-user", "root")], user="root") == "root operator"
        assert enter(served, [("X-Pie-User", "alice")], user="bob") == "authentication-failed"
        assert enter(served, []) == "authentication-required"
        with pytest.raises(Exception, match="403"):
            enter(served, [("X-Pie-User", "alice"), ("X-Pie-User", "bob")])
    with serving(tmp_path / "plain") as served:
        assert enter(served, [], user="alice") == "alice user"
        with pytest.raises(Exception, match="403") as caught:
            enter(served, [("X-Pie-User", "alice")])
        assert json.loads(caught.value.response.body)["error"]["code"] == "untrusted-header"  # type: ignore[attr-defined]


def test_a_bearer_is_a_key(closed: Served, keys: dict[str, str]) -> None:
    with raw_connect(closed.url, additional_headers=[("Authorization", f"Bearer {keys['user']}")]) as one:
        one.send(json.dumps(CLIENT))
        assert json.loads(one.recv(PATIENCE_S))["user"] == "user-1"


def test_an_address_that_others_reach_needs_a_way_in(tmp_path: Path) -> None:
    serve = ("serve", "--dummy", "--host", "0.0.0.0", "--port", "0")
    done = run(tmp_path, *serve)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[invalid-config]")
    assert "pie key add" in done.stderr
    off = run(tmp_path, *serve, server__auth="off")
    assert "server.allow_anonymous" in off.stderr
    add_key(tmp_path, "alice")
    with serving(tmp_path, *serve[1:]) as served:
        assert code_of(Served(f"ws://127.0.0.1:{served.port}", served.process, served.folder)) == "authentication-required"


def test_many_bad_keys_have_to_wait(tmp_path: Path) -> None:
    _, good = add_key(tmp_path, "alice")
    _, other = add_key(tmp_path / "elsewhere", "alice")
    with serving(tmp_path, server__auth="on") as served:
        assert [code_of(served, key=other) for _ in range(11)] == ["authentication-failed"] * 10 + ["limit-attempts"]
        assert code_of(served, key=good) == "limit-attempts"


def test_doctor_finds_what_is_wrong(tmp_path: Path) -> None:
    done = run(tmp_path, "doctor", "--dummy", server__port=0)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()}
    assert {found.pop(what) for what in ("gpu", "toolchain")} <= {"ok", "warn"}  # what this machine has, or has not
    parts = "configuration versions processor folder keys access port memory model compiler program workers"
    assert found == dict.fromkeys(parts.split(), "ok")
    done = run(tmp_path, "doctor", "--dummy", server__host="0.0.0.0", engine__cache_dir="/proc/nowhere")
    assert done.returncode == 1
    assert [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("fail")][:2] == [
        ["fail", "folder"],
        ["fail", "access"],
    ]


def test_doctor_shows_who_holds_what(closed: Served, folder: Path, keys: dict[str, str]) -> None:
    mine = run(folder, "doctor", "--server", closed.url, "--key", keys["user"])
    assert mine.returncode == 0, mine.stderr
    assert "for operators" in mine.stdout
    whole = run(folder, "doctor", "--server", closed.url, "--key", keys["operator"])
    assert whole.returncode == 0, whole.stderr
    assert "budget" in whole.stdout
