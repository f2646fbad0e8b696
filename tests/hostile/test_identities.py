"""What belongs to another user is answered as if it were not there, byte for byte; and nothing that one may ask for
tells of others.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from support.command import PATIENCE_S
from support.serving import MODEL, Served, serving
from support.verbs import documented, verbs

# Saves a context, leaves a message, tells so, and waits for a message.
KEEPER = """
from inferlet import Adapter, Context, Model, messaging, session


async def main(input):
    ctx = Context(Model.load("default")).user("a secret of 1968")
    await ctx.flush()
    ctx.save("vault")
    if Adapter.open(Model.load("default"), "vault") is None:
        Adapter.create(Model.load("default"), "vault", rank=1)
    messaging.push("jobs", "a secret of 1969")
    session.send("ready")
    await session.receive()
"""

# Looks for what it is told by each way that programs have to names.
SPY = """
import asyncio

from inferlet import Context, Model, messaging


async def main(input):
    model = Model.load("default")
    told = []
    for look in (Context.open, Context.take, Context.delete):
        try:
            told.append(str(look(model, input["snapshot"])))
        except Exception as error:
            told.append(f"{getattr(error, 'code', None)} {error}")
    try:
        told.append(await asyncio.wait_for(messaging.pull(input["topic"]), 0.2))
    except asyncio.TimeoutError:
        told.append("nothing")
    return told
"""
MANIFEST = '[package]\nname = "keeper"\nversion = "1.0.0"\n'
ABSENT_DIGEST = "sha256:" + "0a" * 32


class Raw:
    """A client that speaks the raw protocol."""

    def __init__(self, served: Served, user: str) -> None:
        self._open = ExitStack()
        self._socket: ClientConnection = self._open.enter_context(connect(served.url, max_size=None, ping_interval=None))
        self._socket.send(json.dumps({"type": "hello", "protocol": 1, "user": user}))
        self.hello = json.loads(self._socket.recv(PATIENCE_S))
        assert self.hello["user"] == user

    def ask(self, kind: str, **fields: Any) -> str:
        """The text of the answer to a request; its `id` is always 7."""
        self._socket.send(json.dumps({"id": 7, "type": kind, **fields}))
        return self._answer()

    def ask_binary(self, kind: str, payload: bytes, **fields: Any) -> str:
        """The same of a request with bytes."""
        header = json.dumps({"id": 7, "type": kind, **fields}).encode()
        self._socket.send(struct.pack("<I", len(header)) + header + payload)
        return self._answer()

    def ok(self, kind: str, **fields: Any) -> Any:
        """What is answered where nothing is wrong."""
        answer = json.loads(self.ask(kind, **fields))
        assert "ok" in answer, answer
        return answer["ok"]

    def ask_after_ack(self, pid: int) -> str:
        """The answer to an attachment behind an event."""
        self._socket.send(json.dumps({"type": "ack", "pid": pid, "seq": 1}))
        return self.ask("attach", pid=pid)

    def close(self) -> None:
        self._open.close()

    def _answer(self) -> str:
        while True:
            frame = self._socket.recv(PATIENCE_S)
            if isinstance(frame, str) and json.loads(frame).get("id") == 7:
                return frame


@dataclass(frozen=True)
class Scene:
    """A server with things of vera, and somebody else at it."""

    served: Served
    vera: Raw
    spy: Raw
    digest: str
    running: int
    ended: int
    before: dict[str, str]
    """What the spy was told before vera came."""


LOOKS = ("programs", "processes", "snapshots", "adapters", "topics", "stats")


def looked(spy: Raw) -> dict[str, str]:
    """What the lists and the figures tell the spy, but for the time."""
    told = {kind: spy.ask(kind, **({"all": True} if kind == "processes" else {})) for kind in LOOKS}
    stats = json.loads(told["stats"])
    assert stats["ok"].pop("uptime_s") >= 0
    return told | {"stats": json.dumps(stats)}


def launched(client: Raw, program: str) -> int:
    """A detached process of the keeper, which has saved its context."""
    pid: int = client.ok("launch", program=program, detached=True)["pid"]
    while "ready" not in client.ok("logs", pid=pid, follow=True)["text"]:
        pass
    return pid


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    from pie.client.programs import read_package

    folder: Path = tmp_path_factory.mktemp("identities")
    (folder / "keeper.py").write_text(KEEPER)
    data = read_package(folder / "keeper.py", None).launchable()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    with serving(folder / "server") as served:
        spy = Raw(served, "spy")
        before = looked(spy)
        vera = Raw(served, "vera")
        assert '"ok"' in vera.ask_binary("upload", data, digest=digest, bytes=len(data), offset=0, last=True)
        vera.ok("install", name="keeper", version="1.0.0", digest=digest, manifest=MANIFEST)
        vera.ok("register_mcp_server", name="files")
        running, ended = launched(vera, "keeper"), launched(vera, "keeper")
        vera.ok("terminate", pid=ended)
        while not vera.ok("logs", pid=ended, after=2**40, follow=True)["ended"]:
            pass
        yield Scene(served, vera, spy, digest, running, ended, before)
        vera.close()
        spy.close()


def absent_pid(scene: Scene) -> int:
    """A number of as many digits that no process has."""
    taken = {scene.running, scene.ended}
    return next(pid for pid in range(10 ** (len(str(scene.running)) - 1), 2**40) if pid not in taken)


OF_PROCESSES: dict[str, dict[str, Any]] = {
    "attach": {},
    "attach with a window": {"window_bytes": 1},
    "detach": {},
    "send": {"text": "x"},
    "signal": {"text": "x"},
    "close_input": {},
    "terminate": {},
    "outcome": {},
    "logs": {},
    "logs followed": {"follow": True},
}


@pytest.mark.parametrize("verb", OF_PROCESSES)
@pytest.mark.parametrize("state", ["running", "ended"])
def test_a_process_of_another_is_none(scene: Scene, verb: str, state: str) -> None:
    foreign: int = getattr(scene, state)
    absent = absent_pid(scene)
    kind = verb.split(maxsplit=1)[0]
    there = scene.spy.ask(kind, pid=foreign, **OF_PROCESSES[verb])
    nowhere = scene.spy.ask(kind, pid=absent, **OF_PROCESSES[verb])
    assert there.replace(str(foreign), "PID") == nowhere.replace(str(absent), "PID")
    assert json.loads(there)["error"]["code"] == "unknown-process"


@pytest.mark.parametrize("state", ["running", "ended"])
def test_what_another_has_not_taken_cannot_be_acknowledged(scene: Scene, state: str) -> None:
    """A client that goes on behind a number acknowledges it and attaches: `attach(pid, after_seq=...)`."""
    foreign: int = getattr(scene, state)
    absent = absent_pid(scene)
    there, nowhere = (scene.spy.ask_after_ack(pid) for pid in (foreign, absent))
    assert there.replace(str(foreign), "PID") == nowhere.replace(str(absent), "PID")
    assert "ready" in scene.vera.ok("logs", pid=foreign)["text"]


@pytest.mark.parametrize("state", ["running", "ended"])
def test_a_file_for_a_process_of_another_goes_nowhere(scene: Scene, state: str) -> None:
    foreign: int = getattr(scene, state)
    absent = absent_pid(scene)
    there = scene.spy.ask_binary("file", b"x", pid=foreign)
    nowhere = scene.spy.ask_binary("file", b"x", pid=absent)
    assert there.replace(str(foreign), "PID") == nowhere.replace(str(absent), "PID")


OF_NAMES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "launch by name": ("launch", {"program": "keeper"}, {"program": "absent"}),
    "launch by version": ("launch", {"program": "keeper@1.0.0"}, {"program": "absent@1.0.0"}),
    "launch by digest": ("launch", {"program": "DIGEST"}, {"program": ABSENT_DIGEST}),
    "uninstall": ("uninstall", {"name": "keeper", "version": "1.0.0"}, {"name": "absent", "version": "1.0.0"}),
    "install by digest": (
        "install",
        {"name": "mine", "version": "1", "digest": "DIGEST"},
        {"name": "mine", "version": "1", "digest": ABSENT_DIGEST},
    ),
    "delete_snapshot": ("delete_snapshot", {"model": MODEL, "name": "vault"}, {"model": MODEL, "name": "vaulx"}),
    "delete_snapshot of": (
        "delete_snapshot",
        {"model": MODEL, "name": "vault", "user": "vera"},
        {"model": MODEL, "name": "vault", "user": "nobo"},
    ),
    "delete_adapter": ("delete_adapter", {"model": MODEL, "name": "vault"}, {"model": MODEL, "name": "vaulx"}),
    "delete_adapter of": (
        "delete_adapter",
        {"model": MODEL, "name": "vault", "user": "vera"},
        {"model": MODEL, "name": "vault", "user": "nobo"},
    ),
    "unregister_mcp_server": ("unregister_mcp_server", {"name": "files"}, {"name": "filez"}),
    "discard_topic": ("discard_topic", {"topic": "jobs"}, {"topic": "none"}),
    "discard_topic of": ("discard_topic", {"topic": "jobs", "user": "vera"}, {"topic": "jobs", "user": "nobo"}),
    "uninstall of": (
        "uninstall",
        {"name": "keeper", "version": "1.0.0", "user": "vera"},
        {"name": "keeper", "version": "1.0.0", "user": "nobo"},
    ),
}


@pytest.mark.parametrize("case", OF_NAMES)
def test_a_name_of_another_is_none(scene: Scene, case: str) -> None:
    kind, foreign, absent = OF_NAMES[case]
    foreign = {name: scene.digest if value == "DIGEST" else value for name, value in foreign.items()}
    there, nowhere = scene.spy.ask(kind, **foreign), scene.spy.ask(kind, **absent)
    for one, other in zip(foreign.values(), absent.values(), strict=True):
        if one != other:
            there, nowhere = there.replace(one, "GIVEN"), nowhere.replace(other, "GIVEN")
    assert there == nowhere
    assert "error" in json.loads(there) or json.loads(there)["ok"] == {"dropped": 0}


def test_a_program_finds_nothing_of_another_by_its_name(scene: Scene, tmp_path: Path) -> None:
    from pie.client.programs import read_package

    (tmp_path / "spy.py").write_text(SPY)
    data = read_package(tmp_path / "spy.py", None).launchable()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    # Somebody else, so that the first spy has no process of its own.
    spy = Raw(scene.served, "reader")
    assert '"ok"' in spy.ask_binary("upload", data, digest=digest, bytes=len(data), offset=0, last=True)

    def looked_for(snapshot: str, topic: str) -> str:
        pid = spy.ok("launch", program=digest, input={"snapshot": snapshot, "topic": topic})["pid"]
        while not spy.ok("logs", pid=pid, after=2**40, follow=True)["ended"]:
            pass
        outcome = spy.ok("outcome", pid=pid)["outcome"]
        assert outcome["kind"] == "return", outcome
        return str(outcome["value"])

    there, nowhere = looked_for("vault", "jobs"), looked_for("vaulx", "none")
    assert there.replace("vault", "NAME") == nowhere.replace("vaulx", "NAME")
    assert "secret" not in there
    assert json.loads(there)[3] == "nothing"
    spy.close()


OF_OPERATORS: dict[str, dict[str, Any]] = {
    "programs": {"all_users": True},
    "processes": {"all_users": True},
    "snapshots": {"all_users": True},
    "adapters": {"all_users": True},
    "topics": {"all_users": True},
    "connections": {},
    "disconnect": {"connection": 1},
}


@pytest.mark.parametrize("kind", OF_OPERATORS)
def test_only_operators_see_everybody(scene: Scene, kind: str) -> None:
    assert json.loads(scene.spy.ask(kind, **OF_OPERATORS[kind]))["error"]["code"] == "not-permitted"


def test_every_verb_of_the_protocol_is_tried() -> None:
    tried = {case.split(maxsplit=1)[0] for case in (*OF_PROCESSES, *OF_NAMES)} | set(LOOKS) | set(OF_OPERATORS)
    # A file goes to a process by the test of its own. A ping names nothing, an upload only what it carries, and what is
    # registered is of the connection.
    assert verbs() == tried | {"file", "ping", "upload", "register_mcp_server"}
    assert verbs() | {"ack", "mcp_line", "mcp_end"} == documented()


def test_nothing_that_one_may_look_at_tells_of_others(scene: Scene) -> None:
    assert looked(scene.spy) == scene.before
    assert [process["pid"] for process in scene.vera.ok("processes")["processes"]] == [scene.running]
    assert [program["name"] for program in scene.vera.ok("programs")["programs"]] == ["keeper"]
    assert [snapshot["name"] for snapshot in scene.vera.ok("snapshots")["snapshots"]] == ["vault"]
    assert [adapter["name"] for adapter in scene.vera.ok("adapters")["adapters"]] == ["vault"]
    assert [(topic["topic"], topic["queued"]) for topic in scene.vera.ok("topics")["topics"]] == [("jobs", 2)]
    stats = scene.vera.ok("stats")
    assert (stats["n_live"], stats["n_ended"], stats["models"][MODEL]["n_snapshots"]) == (1, 1, 1)
    assert stats["n_tokens"] > 0
    assert "server" not in stats


def test_numbers_of_processes_do_not_count(scene: Scene) -> None:
    assert scene.running < 2**31
    assert abs(scene.ended - scene.running) != 1
    assert min(scene.ended, scene.running) > 10


def test_what_vera_has_is_as_it_was(scene: Scene) -> None:
    """Runs last in this file: all of the above tried to change it."""
    scene.vera.ok("send", pid=scene.running, text="go")
    while not (logs := scene.vera.ok("logs", pid=scene.running, after=2**40, follow=True))["ended"]:
        assert logs
    assert scene.vera.ok("outcome", pid=scene.running)["outcome"]["kind"] == "return"
    scene.vera.ok("delete_snapshot", model=MODEL, name="vault")
    scene.vera.ok("delete_adapter", model=MODEL, name="vault")
    assert scene.vera.ok("adapters") == {"adapters": []}
    scene.vera.ok("uninstall", name="keeper", version="1.0.0")
    assert scene.vera.ok("discard_topic", topic="jobs")["dropped"] == 2
